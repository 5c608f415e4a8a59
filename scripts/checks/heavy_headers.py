"""A header adds at most 5,000 preprocessed lines to what the precompiled standard header already brings.

Measured by the preprocessor, without blank lines and comments; the result is kept by the content of the header and of
all it includes from src/, so that only changed headers are measured again.
"""

import hashlib
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MAX_LINES = 5000
STANDARD = "support/std.h"
# The one room that wraps LLVM, whose own headers are heavier than any limit.
EXEMPT = "src/codegen/llvm/"
KEPT = Path("build/header-lines.json")


def is_for_tests(header):
    """Headers that only test files include."""
    return "testing" in header.parts or header.stem.endswith(("_fixture", "_test"))


def content_key(tree, header, standard_text):
    """A hash over the header and everything it reaches in src/."""
    digest, seen, pending = hashlib.sha256(standard_text.encode()), set(), [header]
    while pending:
        path = pending.pop()
        if path in seen or not (tree.root / path).is_file():
            continue
        seen.add(path)
        digest.update(f"{path}\0{tree.text(path)}\0".encode())
        pending += sorted(Path("src") / included for included, _ in tree.includes(path))
    return digest.hexdigest()


def preprocessed_lines(tree, includes):
    text = "".join(f'#include "{name}"\n' for name in includes)
    folders = ["-Isrc", "-isystem", "build/generated/onnx_schema"]
    command = ["clang++-19", "-std=c++20", "-E", "-P", "-x", "c++", *folders, "-"]
    result = subprocess.run(command, input=text, cwd=tree.root, capture_output=True, text=True)
    if result.returncode != 0:
        return None, result.stderr.strip().splitlines()[0]
    return sum(1 for line in result.stdout.splitlines() if line.strip()), None


def check(tree):
    headers = [p for p in tree.sources if p.suffix == ".h" and not str(p).startswith(EXEMPT) and not is_for_tests(p)]
    standard = tree.text(Path("src") / STANDARD)
    kept_path = tree.root / KEPT
    kept = json.loads(kept_path.read_text()) if kept_path.exists() else {}
    keys = {header: content_key(tree, header, standard) for header in headers}
    missing = [header for header in headers if keys[header] not in kept]

    problems = []
    if missing:
        base, error = preprocessed_lines(tree, [STANDARD])
        if error:
            return [f"src/{STANDARD}: {error}"]
        with ThreadPoolExecutor() as pool:
            names = [[STANDARD, str(header.relative_to("src"))] for header in missing]
            for header, (lines, error) in zip(missing, pool.map(lambda n: preprocessed_lines(tree, n), names)):
                if error:
                    problems.append(f"{header}: does not preprocess by itself: {error}")
                else:
                    kept[keys[header]] = lines - base
        if kept_path.parent.is_dir():
            kept_path.write_text(json.dumps({key: kept[key] for key in keys.values() if key in kept}))
    for header in headers:
        added = kept.get(keys[header], 0)
        if added > MAX_LINES:
            problems.append(f"{header}: adds {added} preprocessed lines beyond {STANDARD}, at most {MAX_LINES}")
    return problems
