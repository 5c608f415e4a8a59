"""Decoders that keep their cache beside those that are handed it."""

import json

from bench import states


def test_rows(tmp_path):
    saved = tmp_path / "states.json"
    rows = states.main(["--quick", "--save", str(saved)])
    assert len(rows) == 1 and set(rows[0]["ms"]) == {"Kept", "Handed", "OnnxRuntime"}
    assert all(time > 0 for time in rows[0]["ms"].values())
    assert json.loads(saved.read_text()) == rows
