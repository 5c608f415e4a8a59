"""A file has at most 800 lines (tables of rows excepted) and a folder at most 40 files; lines fit in 120 columns."""

from collections import Counter

MAX_LINES = 800
MAX_FILES = 40
MAX_COLUMNS = 120
CODE = {".h", ".cpp", ".c", ".py", ".cmake", ".sh"}


def check(tree):
    problems = []
    for path in tree.files:
        if path.suffix not in CODE:
            continue
        lines = tree.text(path).splitlines()
        if len(lines) > MAX_LINES:
            problems.append(f"{path}: {len(lines)} lines, at most {MAX_LINES}: it is several things, split it")
        if path.suffix == ".py":  # clang-format keeps the others
            for number, line in enumerate(lines, 1):
                if len(line) > MAX_COLUMNS:
                    problems.append(f"{path}:{number}: {len(line)} columns, at most {MAX_COLUMNS}")
    folders = Counter(path.parent for path in tree.files if path.suffix in CODE | {".def"})
    for folder, count in sorted(folders.items()):
        if count > MAX_FILES:
            problems.append(f"{folder}: {count} files, at most {MAX_FILES}: make families into folders")
    return problems
