"""The arithmetic of the coverage report."""

from scripts import coverage
from scripts.setup import ROOT


def export(**files):
    rows = [
        {"filename": str(ROOT / name.replace("__", "/").replace("_cpp", ".cpp")),
         "summary": {"lines": {"covered": covered, "count": count}}}
        for name, (covered, count) in files.items()
    ]  # fmt: skip
    return {"data": [{"files": rows}]}


def test_lines_are_added_up_by_room():
    files = coverage.lines_by_file(export(src__ir__a_cpp=(9, 10), src__ir__b_cpp=(0, 10), src__tir__c_cpp=(5, 5)))
    rooms = coverage.by_room(files)
    assert (rooms["ir"].covered, rooms["ir"].counted) == (9, 20)
    text, total = coverage.report(files)
    assert total.percent() == 56.0
    assert "45.0%" in text and "100.0%" in text
    assert text.index("10 of 10    src/ir/b.cpp") < text.index("1 of 10    src/ir/a.cpp")


def test_tests_and_what_is_generated_do_not_count():
    files = coverage.lines_by_file(
        export(src__ir__a_test_cpp=(9, 10), build__generated__x_cpp=(1, 9), src__ops__testing__y_cpp=(1, 2))
    )
    assert files == {}


def test_an_empty_room_is_no_division_by_zero():
    assert coverage.Lines().percent() == 100.0
