"""The figures of compile time over the size of a model."""

import json

from bench import compile_time


def test_every_aim_has_a_figure(tmp_path, capsys):
    saved = tmp_path / "figures.json"
    found = compile_time.main(["--quick", "--save", str(saved)])
    assert compile_time.AIMS.keys() <= found.keys() and all(value > 0 for value in found.values())
    assert json.loads(saved.read_text()) == found
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(found) + 1 and lines[0].split()[:2] == ["aim", "lathe"]
