"""A file includes its own room and the rooms it sees, nothing else (cmake/rooms.cmake). Tests are exempt.

Headers of an outside part that lie where every file could include them belong to the room that wraps the part.
"""

import re

from .tree import is_test

WRAPPED = {"isl": "arith/polyhedral"}
OUTSIDE = re.compile(rf"^\s*#\s*include\s+<({'|'.join(WRAPPED)})/", re.MULTILINE)


def check(tree):
    problems = []
    for path in tree.sources:
        if is_test(path):
            continue
        room = tree.rooms.room_of(path.relative_to("src"))
        if room is None:
            problems.append(f"{path}: belongs to no room of cmake/rooms.cmake")
            continue
        text = tree.text(path)
        for match in OUTSIDE.finditer(text):
            if room != WRAPPED[match[1]]:
                line = text.count("\n", 0, match.start(1)) + 1
                problems.append(f"{path}:{line}: headers of {match[1]} belong to room {WRAPPED[match[1]]}")
        for included, line in tree.includes(path):
            inside = (tree.root / "src" / included).exists()
            if inside and not tree.rooms.allows(room, included):
                problems.append(f"{path}:{line}: room {room} does not see {included}")
            elif not inside and (tree.root / path.parent / included).exists():
                problems.append(f'{path}:{line}: write "{included}" from src/, as in "ir/expr.h"')
    return problems
