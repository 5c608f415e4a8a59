"""No marks of unfinished work, and no path of one machine, in any text file."""

import re

# In pieces, so that this file does not find itself.
MARKS = re.compile("|".join([r"\bTO" + r"DO\b", r"\bFIX" + r"ME\b", r"\bX" + r"XX\b", "not " + "implemented"]))
PATHS = re.compile(r"(?<![\w.$}])/(home|Users|ro" + r"ot|wo" + r"rk|workspace)/\w")
TEXT = {".h", ".cpp", ".c", ".def", ".py", ".md", ".cmake", ".txt", ".json", ".toml", ".sh", ".yml", ".yaml", ""}


def check(tree):
    problems = []
    for path in tree.files:
        if path.suffix not in TEXT:
            continue
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            for pattern, what in ((MARKS, "mark of unfinished work"), (PATHS, "path of one machine")):
                if match := pattern.search(line):
                    problems.append(f"{path}:{number}: {what}: {match[0]}")
    return problems
