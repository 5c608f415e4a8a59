"""Executable.prepare: calls bound to their tensors give what plain calls give, and refuse what they cannot bind."""

import threading

import lathe
import numpy as np
import pytest

from tests.support import paths

ADD = """# lathe script 1
from lathe.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({sizes}), "{dtype}"), y: R.Tensor(({sizes}), "{dtype}")):
        with R.dataflow():
            total = R.add(x, y)
            R.output(total)
        return {result}
"""


def model(tmp_path, sizes="3, 5", dtype="float32", result="total"):
    path = tmp_path / "add.relax"
    path.write_text(ADD.format(sizes=sizes, dtype=dtype, result=result))
    return lathe.compile(path)


def test_reads_what_the_arrays_hold_when_it_runs(tmp_path):
    add = model(tmp_path)
    x, y, out = np.ones((3, 5), "float32"), np.ones((3, 5), "float32"), np.zeros((3, 5), "float32")
    call = add.prepare(x, y, out=out)
    assert (out == 0).all(), "it ran before it was called"
    for step in range(3):
        x[:] = step
        assert call() is out
        assert (out == step + 1).all()


def test_makes_arrays_for_results_that_are_not_given(tmp_path):
    add = model(tmp_path, sizes='"n", 5')
    for rows in (0, 1, 7):
        x = np.arange(rows * 5, dtype="float32").reshape(rows, 5)
        call = add.prepare(x=x, y=x)
        out = call()
        assert out.shape == (rows, 5) and (out == 2 * x).all()
        x += 1
        assert call() is out and (out == 2 * x).all()


def test_gives_several_results_as_a_tuple(tmp_path):
    add = model(tmp_path, result="total, x")
    x, y = np.full((3, 5), 2, "float32"), np.ones((3, 5), "float32")
    outs = [np.zeros((3, 5), "float32"), np.zeros((3, 5), "float32")]
    total, same = add.prepare(x, y, out=outs)()
    assert total is outs[0] and same is outs[1]
    assert (total == 3).all() and (same == 2).all()
    assert [array.tolist() for array in add.prepare(x, y)()] == [total.tolist(), same.tolist()]


def test_takes_strides_overlaps_and_narrow_floats(tmp_path):
    import ml_dtypes

    add = model(tmp_path)
    wide = np.arange(60, dtype="float32").reshape(6, 10)
    out = np.zeros((3, 5), "float32")
    assert (add.prepare(wide[::2, ::2], wide[1::2, ::2], out=out)() == wide[::2, ::2] + wide[1::2, ::2]).all()
    x = np.ones((3, 5), "float32")
    call = add.prepare(x, x, out=x)
    for power in (2, 4, 8):
        assert (call() == power).all()
    x = np.ones((3, 5), ml_dtypes.bfloat16)
    call = model(tmp_path, dtype="bfloat16").prepare(x, x)
    x[:] = 2
    assert (call().astype("float32") == 4).all()


def test_a_network_gives_what_its_plain_call_gives():
    digits = lathe.compile(str(paths.DIGITS_MODEL), dims={"batch": 3})
    rng = np.random.default_rng(1)
    x = rng.random([3 if not isinstance(size, int) else size for size in digits.inputs[0].shape]).astype("float32")
    call = digits.prepare(x)
    for _ in range(3):
        x[:] = rng.random(x.shape)
        assert (call() == digits(x)).all()


def test_outlives_the_name_of_its_model(tmp_path):
    add = model(tmp_path)
    x = np.ones((3, 5), "float32")
    call = add.prepare(x, x.copy())
    del add, x
    assert (call() == 2).all()


@pytest.mark.parametrize(
    ("arguments", "named", "words"),
    [
        (lambda x: (x,), {}, "the input 'y: float32 .3, 5.' is missing"),
        (lambda x: (x, x, x), {}, "the model takes 2 inputs, 3 are given"),
        (lambda x: (x, x[0]), {}, "input 'y' must fit"),
        (lambda x: (x, x), {"out": []}, "the model has 1 outputs, 0 are given"),
        (lambda x: (x, x), {"nothing": 1}, "the model has no input 'nothing'"),
        (lambda x: (x.astype(">f4"), x), {}, "'x' cannot be bound"),
    ],
)
def test_refuses_at_once(tmp_path, arguments, named, words):
    with pytest.raises(lathe.Error, match=words):
        model(tmp_path).prepare(*arguments(np.ones((3, 5), "float32")), **named)


def test_refuses_results_that_cannot_be_written(tmp_path):
    add, x = model(tmp_path), np.ones((3, 5), "float32")
    fixed = np.zeros((3, 5), "float32")
    fixed.flags.writeable = False
    with pytest.raises(lathe.Error, match="'.*' cannot be written to"):
        add.prepare(x, x, out=fixed)
    with pytest.raises(lathe.Error, match="the result is"):
        add.prepare(x, x, out=np.zeros((3, 4), "float32"))()
    with pytest.raises(lathe.Error, match="must be compact"):
        add.prepare(x, x, out=np.zeros((3, 10), "float32")[:, ::2])()
    with pytest.raises(lathe.Error, match="must be float32"):
        add.prepare(x.astype("float64"), x, out=x)()


def test_limits_hold(tmp_path):
    add, x = model(tmp_path), np.ones((3, 5), "float32")
    with pytest.raises(lathe.RunError, match="limit"):
        add.prepare(x, x, out=x.copy(), limits=lathe.Limits(max_steps=1))()
    with pytest.raises(lathe.Error, match="interpreters"):
        lathe.compile(tmp_path / "add.relax", "interp").prepare(x, x)


def test_each_thread_has_its_own(tmp_path):
    add, wrong = model(tmp_path), []

    def work(value):
        x, y = np.full((3, 5), value, "float32"), np.zeros((3, 5), "float32")
        call = add.prepare(x, y)
        for step in range(200):
            y[:] = step
            if not (call() == value + step).all():
                wrong.append((value, step))

    threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
