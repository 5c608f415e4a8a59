"""docs/operators.md says what is imported, and in_groups nothing that it was not given."""

import pytest

from scripts import operator_table
from tests.operators.claimed import CLAIMED, WITHOUT_SAMPLES
from tests.operators.sample import last_opset, schema


def test_dtypes_are_told_by_groups():
    assert operator_table.in_groups(["bool", "float16", "bfloat16", "float", "double", "int8"]) == "floats, bool, int8"
    assert operator_table.in_groups(["float16", "float"]) == "float16, float"


def test_every_operator_that_is_imported_has_samples():
    found = operator_table.imported()
    without = set(found) - set(CLAIMED) - set(WITHOUT_SAMPLES)
    assert not without, f"no generator of samples in tests/operators: {sorted(without)}"
    assert {*CLAIMED, *WITHOUT_SAMPLES} <= set(found), {*CLAIMED, *WITHOUT_SAMPLES} - set(found)
    assert not set(CLAIMED) & set(WITHOUT_SAMPLES)
    assert found["Cast"] == ([6, 9, 13, 19, 21, 23, 24, 25], "conversion")


@pytest.mark.parametrize("op", CLAIMED)
def test_samples_choose_among_the_listed_types(op):
    listed = any("(" not in formal.type_str for formal in schema(op, last_opset(op)).inputs)
    assert bool(operator_table.dtypes_of(op)) or not listed


@pytest.mark.full
def test_the_table_is_fresh():
    written = operator_table.TABLE.read_text()
    assert written == operator_table.text(), "python -m scripts.operator_table writes it anew"
