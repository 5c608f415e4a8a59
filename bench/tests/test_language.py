"""The figures of tensor programs as a language."""

import json

import lathe
from bench import language


def test_every_aim_has_a_figure(tmp_path, capsys):
    saved = tmp_path / "figures.json"
    found = language.main(["--quick", "--save", str(saved)])
    assert found.keys() == language.AIMS.keys() and all(value > 0 for value in found.values())
    assert json.loads(saved.read_text()) == {"package": f"lathe {lathe.__version__}", "figures": found}
    first = capsys.readouterr().out.splitlines()[0]
    assert first.split() == ["aim", "lathe", lathe.__version__]


def test_columns_stand_side_by_side():
    text = language.table([("a 1", {"lines a second from text": 10.0}), ("b 2", {})])
    assert text.splitlines()[1].split()[-2:] == ["3e+05", "10"]
