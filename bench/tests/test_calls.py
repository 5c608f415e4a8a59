"""What a call costs, from Python and from C."""

import json
import shutil

import pytest

from bench import calls


@pytest.mark.skipif(not shutil.which(calls.COMPILER), reason="there is no C compiler")
def test_rows(tmp_path):
    saved = tmp_path / "calls.json"
    rows = calls.main(["--quick", "--save", str(saved)])
    assert [row["aim"] for row in rows] == [2000, None, 200]
    assert all(row["nanoseconds"] > 0 and len(row["rounds"]) == 3 for row in rows)
    assert json.loads(saved.read_text()) == rows
