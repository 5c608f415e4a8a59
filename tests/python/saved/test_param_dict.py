"""Arrays by name as bytes: all dtypes and shapes come back, and damage is told."""

import random
import struct
import zlib

import ml_dtypes
import numpy as np
import pytest

import lathe
from lathe import runtime

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4",
]  # fmt: skip
SHAPES = [(), (0,), (7,), (3, 1, 5), (2, 0, 4)]


def arrays():
    generator = np.random.default_rng(3)
    for dtype in DTYPES:
        numpy = np.dtype(getattr(ml_dtypes, dtype, dtype) if dtype not in np.sctypeDict else dtype)
        for shape in SHAPES:
            yield f"{dtype} of {shape}", generator.integers(0, 4, shape).astype(numpy)


def test_every_dtype_and_shape():
    given = dict(arrays())
    saved = runtime.save_param_dict(given)
    assert isinstance(saved, bytearray)
    for read in (saved, bytes(saved), memoryview(saved)):
        params = runtime.load_param_dict(read)
        assert list(params) == list(given)
        for name, array in params.items():
            assert isinstance(array, runtime.NDArray) and array.shape == given[name].shape
            assert array.numpy().dtype == given[name].dtype
            assert array.numpy().tobytes() == given[name].tobytes(), name
    params["int8 of (7,)"].copyfrom(np.zeros(7, "int8"))  # its memory is its own
    assert runtime.save_param_dict(runtime.load_param_dict(saved)) == saved


def test_arrays_as_they_lie_in_memory():
    square = np.arange(12, dtype=np.float32).reshape(3, 4)
    odd = np.array([np.nan, -0.0, np.inf])
    given = {"": square.T, "été": square[:, ::2], "big": square.astype(">f4"), "odd": odd}
    given["own"] = lathe.nd.array(square)
    params = runtime.load_param_dict(runtime.save_param_dict(given))
    for name, array in given.items():
        assert np.array_equal(params[name].numpy(), np.asarray(array), equal_nan=True)
    assert params["odd"].numpy().tobytes() == odd.tobytes()
    assert runtime.load_param_dict(runtime.save_param_dict({})) == {}


STRANGERS = [{1: np.zeros(3)}, {"a": np.array([object()])}, {"a": np.zeros(2, complex)}, {"a": "b"}]


@pytest.mark.parametrize("given", STRANGERS)
def test_what_is_no_array_by_name_is_refused(given):
    with pytest.raises(TypeError):
        runtime.save_param_dict(given)


SAVED = bytes(runtime.save_param_dict({"weights": np.ones((2, 3), np.float32), "mask": np.zeros(5, bool)}))


def test_cut_off_anywhere():
    for size in range(len(SAVED)):
        with pytest.raises(lathe.ModelError, match="the bytes end inside|the magic"):
            runtime.load_param_dict(SAVED[:size])
    with pytest.raises(lathe.ModelError, match="1 bytes follow the last parameter"):
        runtime.load_param_dict(SAVED + b"x")


def test_any_byte_changed():
    choose = random.Random(5)
    for at in range(len(SAVED)):
        for _ in range(8):
            changed = SAVED[:at] + bytes([SAVED[at] ^ choose.randrange(1, 256)]) + SAVED[at + 1 :]
            with pytest.raises(lathe.ModelError):
                runtime.load_param_dict(changed)


def with_checksum(data):
    return data + struct.pack("<I", zlib.crc32(data))


def one(name=b"a", dtype=b"float32", shape=(2,), size=8, data=b"\0" * 8, version=1, count=1):
    text = struct.pack("<I", len(name)) + name + struct.pack("<I", len(dtype)) + dtype
    text += struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<Q", size) + data
    return with_checksum(b"LATHE arrays\n" + struct.pack("<II", version, count) + text * count)


@pytest.mark.parametrize(
    "saved, message",
    [
        (b"", "the bytes end inside the magic"),
        (b"x" * 100, "no bytes of save_param_dict"),
        (one(version=2), "newer than this Lathe"),
        (one(count=2), "two parameters 'a'"),
        (one(name=b"\xff"), "no UTF-8"),
        (one(dtype=b"object"), "no dtype here"),
        (one(dtype=b"complex64"), "no dtype here"),
        (one(dtype=b"float8_e9m9"), "no dtype here"),
        (one(shape=(1,) * 33), "33 dimensions"),
        (one(shape=(3,)), "does not have 8 bytes"),
        (one(shape=(2**62, 8)), "does not have 8 bytes"),
        (one(shape=(2**63, 2**63, 0), size=0, data=b""), "does not have 0 bytes"),
        (one(shape=(2**40, 2**40, 0), size=0, data=b""), "there is no array 'a'"),
        (one(shape=(2**40,), size=2**42), "4398046511104 are needed"),
    ],
)
def test_what_is_wrong_is_told(saved, message):
    with pytest.raises(lathe.ModelError, match=message):
        runtime.load_param_dict(saved)


def test_texts_are_no_bytes():
    with pytest.raises(TypeError):
        runtime.load_param_dict("text")
