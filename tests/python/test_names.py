"""docs/names.md is fresh: every name of the vocabulary has a test, or an error that says what to use instead."""

import pytest

import lathe
from lathe import tir
from lathe.script import tir as T
from scripts import names
from scripts.names import signatures
from scripts.names.spaces import SPACES
from scripts.names.uses import pieces_of

FILE = '''
import numpy as np
import lathe as tvm
from lathe import tir
from lathe.script import tir as T
from lathe.tir.transform import Simplify

TABLE = ["sample_categorical"]


def test_one():
    schedule = tir.Schedule(program)  # and not te.einsum
    schedule.split(loop, "te.einsum", reason="Trace.insts is not asked for")
    assert np.Var is schedule.reorder
    getattr(schedule, TABLE[0])()


def test_two():
    tvm.cpu()
    run("T.exp(x)", "a text about T.log and others")
    return Simplify()
'''


def test_every_name_has_a_test_or_a_reason():
    assert list(names.problems(names.sections())) == []


def test_the_table_is_fresh():
    text = names.TABLE.read_text()
    assert list(names.stale(text, names.sections())) == [], "python -m scripts.names writes it anew"
    first = "| `T.prim_func` | "
    begin = text.index(first)
    other = text[:begin] + first + "`tests/python/test_names.py` |\n" + text[text.index("\n", begin) + 1 :]
    assert list(names.stale(other, names.sections())) == ["T.prim_func is not used by `tests/python/test_names.py`"]
    gone = text[:begin] + text[text.index("\n", begin) + 1 :]
    assert list(names.stale(gone, names.sections())) == ["T.prim_func is not in the table"]


def test_the_reasons_are_fresh():
    assert names.REASONS.read_text() == names.reasons(names.sections()), "python -m scripts.names writes them anew"


@pytest.mark.parametrize(
    "get, error",
    [
        (lambda: tir.transform.MakePackedAPI, "there is no tir.transform.MakePackedAPI: compiled code has no calling"),
        (lambda: T.vscale, "there is no T.vscale: vectors have constant lengths here"),
        (lambda: lathe.arith.PresburgerSet, "there is no lathe.arith.PresburgerSet: sets of integer points"),
        (lambda: T.primfunc, "there is no T.primfunc; the nearest name is T.prim_func"),
    ],
)
def test_asking_for_what_is_left_out_says_why(get, error):
    with pytest.raises(AttributeError) as raised:
        get()
    assert str(raised.value).startswith(error)


def test_a_schedule_says_which_primitive_is_nearest():
    schedule = tir.Schedule(lathe.te.create_prim_func([lathe.te.compute((4,), lambda i: i, name="A")]))
    assert schedule.get(schedule.get_sblock("A")).same_as(schedule.get(schedule.get_block("A")))
    with pytest.raises(AttributeError, match="'reverse_compute_inlin'; the nearest name is 'reverse_compute_inline'"):
        schedule.reverse_compute_inlin("A")


def test_the_vocabulary_is_read_by_sections():
    (section,) = names.read("# what\n## One\nT: exp nothing\nT - it is not: nothing\n")
    read = [(one.space, one.name, one.reason) for one in section.names]
    assert read == [("T", "exp", ""), ("T", "nothing", "it is not")]
    assert names.error_of(section.names[0]) is None
    assert "the nearest name is T." in names.error_of(section.names[1])
    assert list(names.problems([section])) == []


def test_what_is_wrong_with_a_name_is_found():
    (section,) = names.read("## One\nT: exp nothing no_test_has_this\nT - there is one: exp\n")
    found = list(names.problems([section]))
    assert found[0] == "T.exp is there, and vocabulary.txt says why it is not"
    assert found[1] == "T.nothing is not there, and vocabulary.txt does not say why"


def test_signatures_are_as_documented():
    assert list(signatures.problems()) == []


def test_a_signature_that_differs_is_found():
    split = "tir.Schedule.split(loop, factors, preserve_unit_iters=True, disable_predication=False)"
    assert list(signatures.problems(split)) == []
    for wrong, message in [
        ("tir.Schedule.split(loop, parts)", "there is no parameter 'parts'"),
        ("tir.Schedule.split(factors, loop)", "'factors' is not parameter 0 by position"),
        ("tir.Schedule.split(loop, factors, preserve_unit_iters=False)", "'preserve_unit_iters' is True by default"),
        ("tir.Schedule.split(loop)", "'factors' has to be given"),
        ("tir.Schedule.split(*loop, factors)", "*loop is not taken"),
    ]:
        (found,) = signatures.problems(wrong)
        assert message in found
    assert list(signatures.problems(split + " - a reason")) == [
        "tir.Schedule.split is as documented, and the file says why it is not"
    ]


@pytest.mark.parametrize(
    "space, name, test",
    [
        ("tir", "Schedule", "test_one"),
        ("Schedule", "split", "test_one"),
        ("Schedule", "sample_categorical", "test_one"),  # by getattr
        ("Schedule", "reorder", None),  # not called
        ("tir", "Var", None),  # of another module
        ("te", "einsum", None),  # in a comment, in a message
        ("Trace", "insts", None),
        ("lathe", "cpu", "test_two"),
        ("runtime", "cpu", "test_two"),  # the same function
        ("T", "exp", "test_two"),  # in a text that is a program
        ("T", "log", None),
        ("tir.transform", "Simplify", "test_two"),
        ("tir.transform", "UnrollLoop", None),
    ],
)
def test_a_use_is_found_by_syntax(space, name, test):
    users = [piece.place for piece in pieces_of("f", FILE) if piece.uses(SPACES[space], name)]
    assert ("f::" + test in users) if test else users == []
