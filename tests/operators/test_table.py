"""docs/operators.md says what is imported, and in_groups nothing that it was not given."""

import pytest

from scripts import operator_table
from tests.operators.claimed import CLAIMED


def test_dtypes_are_told_by_groups():
    assert operator_table.in_groups(["bool", "float16", "bfloat16", "float", "double", "int8"]) == "floats, bool, int8"
    assert operator_table.in_groups(["float16", "float"]) == "float16, float"


def test_every_claimed_operator_is_imported():
    found = operator_table.imported()
    assert set(CLAIMED) <= set(found), set(CLAIMED) - set(found)
    assert found["Cast"] == ([6, 9, 13, 19, 21, 23, 24, 25], "conversion")


@pytest.mark.full
def test_the_table_is_fresh():
    written = operator_table.TABLE.read_text()
    assert written == operator_table.text(), "python -m scripts.operator_table writes it anew"
