"""Brings the dumps of docs/tour.md up to date: `python -m scripts.tour`; with --check, says whether they are.

The page is prose with two kinds of fenced blocks. A block `sh` holds commands, which run in order in one folder that
starts with the files of examples/02-tour; `lathe` is the one of the build folder. A comment `<!-- FILE FROM..TO -->`
before a block says what it shows: of FILE, the lines from the first that contains FROM to the next that contains TO,
both included; without FROM..TO all of it. A file named `output` is what the last `sh` block printed.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .setup import ROOT

PAGE = ROOT / "docs" / "tour.md"
MODEL = ROOT / "examples" / "02-tour"
BLOCK = re.compile(r"^(?:<!-- (?P<show>.+?) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def run(commands, folder, lathe):
    """What the commands print, together."""
    command = f"lathe() {{ '{lathe}' \"$@\"; }}\n{commands}"
    done = subprocess.run(["bash", "-ec", command], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the tour's command failed:\n{commands}\n{done.stdout}{done.stderr}")
    return done.stdout


def excerpt(show, text):
    _, _, span = show.partition(" ")
    lines = text.rstrip("\n").split("\n")
    if span:
        first, last = span.split("..")
        start = next((i for i, line in enumerate(lines) if first in line), None)
        if start is None:
            raise RuntimeError(f"the tour shows lines that are not there: {show}")
        rest = range(start + 1, len(lines))
        end = next((i for i in rest if last in lines[i]), len(lines) - 1) if last else len(lines) - 1
        lines = lines[start : end + 1]
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:].rstrip() for line in lines) + "\n"


def regenerated(page, lathe):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(MODEL, folder, dirs_exist_ok=True)
        output = ""

        def renew(block):
            nonlocal output
            show, kind, text = block["show"], block["kind"], block["text"]
            if show:
                file = show.split(" ")[0]
                text = excerpt(show, output if file == "output" else (folder / file).read_text())
                return f"<!-- {show} -->\n```{kind}\n{text}```"
            if kind == "sh":
                output = run(text, folder, lathe)
            return block[0]

        return BLOCK.sub(renew, page)


def main(arguments):
    page = PAGE.read_text()
    new = regenerated(page, ROOT / "build" / "bin" / "lathe")
    if "--check" in arguments:
        print(f"tour: {'up to date' if new == page else 'the dumps are old: python -m scripts.tour renews them'}")
        return new != page
    PAGE.write_text(new)
    print("tour: up to date" if new == page else "tour: renewed; review it with git diff")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
