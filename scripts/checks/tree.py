"""The files that the checks look at: a checkout's files, its C++ includes and its table of rooms."""

import re
import subprocess
from functools import cached_property
from pathlib import Path

SOURCE_SUFFIXES = {".h", ".cpp", ".c", ".def"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
ROW = re.compile(r'^\s*"([^":]+):([^"]*)"\s*$', re.MULTILINE)


class Tree:
    def __init__(self, root):
        self.root = Path(root)

    @cached_property
    def files(self):
        """Paths relative to the root: what git tracks or would track; every file where there is no git."""
        if (self.root / ".git").exists():
            command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
            listed = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True).stdout
            paths = [Path(name) for name in set(listed.split("\0")) if name and (self.root / name).is_file()]
        else:
            paths = [path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file()]
        return sorted(paths)

    @cached_property
    def sources(self):
        """C and C++ files under src/."""
        return [path for path in self.files if path.parts[0] == "src" and path.suffix in SOURCE_SUFFIXES]

    def text(self, path):
        return (self.root / path).read_text(errors="replace")

    def includes(self, path):
        """The quoted includes of a file, with the line of each; they are written from src/.

        Headers of abi are copied out alone and name their siblings without a folder; here they get it.
        """
        text, result = self.text(path), []
        for match in INCLUDE.finditer(text):
            name = match[1]
            if path.parts[:2] == ("src", "abi") and (self.root / path.parent / name).exists():
                name = f"abi/{name}"
            result.append((name, text.count("\n", 0, match.start(1)) + 1))
        return result

    @cached_property
    def rooms(self):
        return Rooms(self.text("cmake/rooms.cmake"), {path.parent.relative_to("src") for path in self.sources})


class Rooms:
    """The rows of cmake/rooms.cmake: each room and what it sees."""

    def __init__(self, table, folders):
        table = re.search(r"set\(LATHE_ROOMS\s*\n(.*?)^\)", table, re.DOTALL | re.MULTILINE)[1]
        rows = [(name.strip(), seen.split()) for name, seen in ROW.findall(table)]
        listed = {name for name, _ in rows}
        self.sees = {}
        for name, seen in rows:
            if name.endswith("/*"):
                depth = name.count("/") + 1
                inner = {"/".join(folder.parts[:depth]) for folder in folders if str(folder).startswith(name[:-1])}
                self.sees.update({room: seen for room in sorted(inner) if room not in listed})
            else:
                self.sees[name] = seen

    def room_of(self, path):
        """The room of a path relative to src/: the longest row above it, or None."""
        for end in range(len(Path(path).parts), 0, -1):
            prefix = "/".join(Path(path).parts[:end])
            if prefix in self.sees:
                return prefix
        return None

    def seen_from(self, room):
        """The folders that a room may include, its own among them."""
        seen, pending = set(), [room]
        while pending:
            folder = pending.pop()
            if folder in seen:
                continue
            seen.add(folder)
            pending += self.sees.get(folder, [])
            if folder not in self.sees:
                owner = self.room_of(folder)
                pending += self.sees[owner] if owner else [r for r in self.sees if r.startswith(folder + "/")]
        return seen

    def allows(self, room, included):
        """Whether `room` may include the path `included`, relative to src/."""
        inner = self.room_of(included)
        for folder in self.seen_from(room):
            if included.startswith(folder + "/") and (inner is None or inner == folder or folder.startswith(inner)):
                return True
        return False


def is_test(path):
    return path.stem.endswith(("_test", "_fuzz"))
