"""Tensors go in and come out without a copy, from anything with DLPack."""

import numpy as np
import pytest
from onnx import TensorProto, helper


@pytest.fixture(scope="module")
def negate(lathe):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "m"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "m"])
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "negate", [x], [y])
    return lathe.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


class Capsule:
    """Nothing but DLPack: an input that NumPy functions do not know. Counts how often its memory is asked for."""

    def __init__(self, array):
        self.array, self.asked = array, 0

    def __dlpack__(self, **options):
        self.asked += 1
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_takes_anything_with_dlpack(negate):
    x = Capsule(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.testing.assert_array_equal(negate(x), -x.array)
    assert x.asked == 1


def test_the_result_owns_its_memory(negate):
    x = np.ones((3, 5), np.float32)
    first = negate(x)
    kept = first.copy()
    for k in range(5):
        negate(x * k)
    np.testing.assert_array_equal(first, kept)
    assert first.flags.writeable and not np.shares_memory(first, x)
    first[:] = 7  # and may be written to


def test_a_large_result_is_not_copied(negate):
    """With 256 MB in and out, a copy of either would show in the peak of memory."""
    import resource

    x = np.ones((8192, 8192), np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    y = negate(x)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert y[5, 7] == -1
    assert grown < 256 * 1.6, f"{grown:.0f} MB for a result of 256 MB"


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T, lambda x: x[::2], lambda x: x[:, ::-1], lambda x: x[1:, 1:],
        lambda x: np.broadcast_to(x[:1], (4, 6)),
        lambda x: x[:0], lambda x: x[:, :0],
    ],
)  # fmt: skip
def test_strided_views_are_read_right(negate, view):
    x = view(np.arange(24, dtype=np.float32).reshape(4, 6))
    np.testing.assert_array_equal(negate(x), -x)


def test_unaligned_and_read_only_memory(negate):
    buffer = np.zeros(4 * 12 + 1, np.uint8)
    x = buffer[1:].view(np.float32).reshape(3, 4)
    x[:] = np.arange(12).reshape(3, 4)
    x.flags.writeable = False
    np.testing.assert_array_equal(negate(x), -x)
    assert (x == np.arange(12).reshape(3, 4)).all()


def test_the_input_is_not_written(negate):
    x = np.random.default_rng(0).random((37, 53), np.float32)
    kept = x.copy()
    negate(x)
    np.testing.assert_array_equal(x, kept)


def test_the_input_lives_as_long_as_the_result_needs_it(negate):
    results = [negate(np.full((64, 64), k, np.float32)) for k in range(50)]
    for k, y in enumerate(results):
        assert (y == -k).all()
