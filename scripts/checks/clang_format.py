"""C and C++ files are as clang-format 19 leaves them (./dev format)."""

import subprocess

CLANG_FORMAT = "clang-format-19"
FORMATTED = {".h", ".cpp", ".c"}


def formatted_files(tree):
    return [path for path in tree.files if path.suffix in FORMATTED]


def check(tree):
    files = formatted_files(tree)
    if not files:
        return []
    command = [CLANG_FORMAT, "--dry-run", "-Werror", "--ferror-limit=1", *map(str, files)]
    result = subprocess.run(command, cwd=tree.root, capture_output=True, text=True)
    if result.returncode == 0:
        return []
    bad = sorted({line.split(":")[0] for line in result.stderr.splitlines() if "-Wclang-format-violations" in line})
    return [f"{name}: not as clang-format leaves it: run ./dev format" for name in bad] or [result.stderr.strip()]
