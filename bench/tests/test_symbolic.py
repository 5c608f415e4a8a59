"""Models of any size beside models of one."""

import json

from bench import symbolic


def test_rows(tmp_path):
    saved = tmp_path / "symbolic.json"
    rows = symbolic.main(["--quick", "--save", str(saved)])
    assert [row["likely"] for row in rows] == [True, False, True, False]
    assert all(row["ratio"] > 0 for row in rows)
    assert json.loads(saved.read_text()) == rows
