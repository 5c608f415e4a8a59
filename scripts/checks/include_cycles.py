"""No header includes itself through others, and no two folders of different rooms include each other."""

from pathlib import Path

from .tree import is_test


def cycles(graph):
    """One cycle for each strongly connected group of more than one node, as a list that ends where it starts."""
    found, done = [], set()
    for start in sorted(graph):
        trail, on_trail, stack = [], {}, [(start, iter(sorted(graph[start])))]
        if start in done:
            continue
        trail.append(start)
        on_trail[start] = 0
        while stack:
            node, following = stack[-1]
            step = next((target for target in following if target in graph and target not in done), None)
            if step is None:
                done.add(node)
                stack.pop()
                trail.pop()
                del on_trail[node]
            elif step in on_trail:
                found.append(trail[on_trail[step] :] + [step])
            else:
                on_trail[step] = len(trail)
                trail.append(step)
                stack.append((step, iter(sorted(graph[step]))))
    return found


def check(tree):
    files, rooms = {}, {}
    for path in tree.sources:
        if is_test(path):
            continue
        name = str(path.relative_to("src"))
        room = tree.rooms.room_of(name)
        files[name] = {included for included, _ in tree.includes(path) if included != name}
        targets = {tree.rooms.room_of(Path(included)) for included in files[name]} - {None, room}
        rooms.setdefault(room, set()).update(targets)
    problems = ["include cycle: " + " -> ".join(cycle) for cycle in cycles(files)]
    return problems + ["rooms in a cycle: " + " -> ".join(map(str, cycle)) for cycle in cycles(rooms)]
