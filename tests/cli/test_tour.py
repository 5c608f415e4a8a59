"""The dumps of docs/tour.md are what the commands on the page print today."""

from scripts import tour
from tests.support.paths import LATHE


def test_the_tour_is_true():
    page = tour.PAGE.read_text()
    assert tour.regenerated(page, LATHE) == page, "python -m scripts.tour renews the page"


def test_a_dump_is_cut_and_unindented():
    text = "class A:\n    def f():\n        x\n    def g():\n        y\n"
    assert tour.excerpt("file def f..x", text) == "def f():\n    x\n"
    assert tour.excerpt("file def g..", text) == "def g():\n    y\n"
    assert tour.excerpt("file", text) == text
