"""A file includes its own room and the rooms it sees, nothing else (cmake/rooms.cmake). Tests are exempt."""

from .tree import is_test


def check(tree):
    problems = []
    for path in tree.sources:
        if is_test(path):
            continue
        room = tree.rooms.room_of(path.relative_to("src"))
        if room is None:
            problems.append(f"{path}: belongs to no room of cmake/rooms.cmake")
            continue
        for included, line in tree.includes(path):
            inside = (tree.root / "src" / included).exists()
            if inside and not tree.rooms.allows(room, included):
                problems.append(f"{path}:{line}: room {room} does not see {included}")
            elif not inside and (tree.root / path.parent / included).exists():
                problems.append(f'{path}:{line}: write "{included}" from src/, as in "ir/expr.h"')
    return problems
