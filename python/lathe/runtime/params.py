"""Arrays by name as bytes: the parameters of a model, for instance.

The bytes, all little-endian: the magic, the version (u32), how many arrays (u32); for each the length of its name (u32)
and the name in UTF-8, the length of its dtype (u32) and the dtype's name, its rank (u32), its extents (u64 each), its
size in bytes (u64) and the elements in row-major order; at last the CRC-32 of everything before.
"""

import math
import struct
import zlib
from pathlib import Path

import numpy as np

from ..errors import ModelError
from .array import NDArray, array

MAGIC = b"LATHE arrays\n"
VERSION = 1
_OF_NUMPY = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
             "float64")  # fmt: skip
_NARROW = ("bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
           "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2",
           "uint2")  # fmt: skip
_MOST_DIMENSIONS = 32


def save_param_dict(params):
    """Arrays by name, of NumPy or of Lathe, as bytes that load_param_dict reads."""
    parts = [MAGIC, struct.pack("<II", VERSION, len(params))]
    for name, given in params.items():
        if not isinstance(name, str):
            raise TypeError(f"a parameter's name is a string, not {name!r}")
        data = np.asarray(given._data if isinstance(given, NDArray) else array(given)._data)
        if data.dtype.name not in _OF_NUMPY + _NARROW:
            raise TypeError(f"parameter '{name}' has elements of {data.dtype}, which is no dtype of arrays here")
        data = np.ascontiguousarray(data.astype(data.dtype.newbyteorder("<"), copy=False)).reshape(data.shape)
        parts += [_text(name), _text(data.dtype.name), struct.pack(f"<I{data.ndim}Q", data.ndim, *data.shape)]
        parts += [struct.pack("<Q", data.nbytes), data.tobytes()]
    whole = bytearray(b"".join(parts))
    return whole + struct.pack("<I", zlib.crc32(whole))


def _text(text):
    encoded = text.encode()
    return struct.pack("<I", len(encoded)) + encoded


def load_param_dict(param_bytes):
    """The arrays that save_param_dict wrote, by name."""
    if isinstance(param_bytes, str):
        raise TypeError("parameters are read from bytes, not from text")
    reader = _Reader(memoryview(param_bytes).cast("B"))
    if bytes(reader.take(len(MAGIC), "the magic")) != MAGIC:
        raise ModelError("these are no bytes of save_param_dict")
    version, count = reader.numbers("<II", "the version")
    if version > VERSION:
        raise ModelError(f"version {version} of the format is newer than this Lathe, which reads version {VERSION}")
    params = {}
    for number in range(count):
        name = reader.text(f"the name of parameter {number}")
        if name in params:
            raise ModelError(f"there are two parameters '{name}'")
        params[name] = NDArray(_elements(reader, name))
    end = reader.at
    (checksum,) = reader.numbers("<I", "the checksum")
    if reader.at != len(reader.data):
        raise ModelError(f"{len(reader.data) - reader.at} bytes follow the last parameter")
    if checksum != zlib.crc32(reader.data[:end]):
        raise ModelError("the bytes were changed: their checksum is another")
    return params


def _elements(reader, name):
    dtype = _dtype(reader.text(f"the dtype of '{name}'"), name)
    (ndim,) = reader.numbers("<I", f"the rank of '{name}'")
    if ndim > _MOST_DIMENSIONS:
        raise ModelError(f"parameter '{name}' has {ndim} dimensions; there are at most {_MOST_DIMENSIONS}")
    shape = reader.numbers(f"<{ndim}Q", f"the shape of '{name}'")
    (size,) = reader.numbers("<Q", f"the size of '{name}'")
    if size != math.prod(shape) * dtype.itemsize or max(shape, default=0) >= 2**48:
        raise ModelError(f"parameter '{name}' of {dtype}{list(shape)} does not have {size} bytes")
    elements = np.frombuffer(reader.take(size, f"the elements of '{name}'"), np.uint8)
    try:
        return elements.copy().view(dtype).reshape(shape)
    except ValueError as error:  # extents too large even without elements
        raise ModelError(f"there is no array '{name}' of {dtype}{list(shape)}: {error}") from None


def _dtype(text, name):
    if text in _OF_NUMPY:
        return np.dtype(text)
    if text in _NARROW:
        import ml_dtypes

        if hasattr(ml_dtypes, text):
            return np.dtype(getattr(ml_dtypes, text))
    raise ModelError(f"parameter '{name}' has elements of '{text}', which is no dtype here")


def save_param_dict_to_file(params, path):
    """Writes what save_param_dict gives into a file."""
    Path(path).write_bytes(save_param_dict(params))


def load_param_dict_from_file(path):
    """The arrays in a file of save_param_dict_to_file, by name."""
    return load_param_dict(Path(path).read_bytes())


class _Reader:
    """Takes from bytes what is there, and says what is missing."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size, what):
        """The next bytes; their number is compared with what remains before anything is made of them."""
        left = len(self.data) - self.at
        if size > left:
            raise ModelError(f"the bytes end inside {what}: {size} are needed and {left} are left")
        self.at += size
        return self.data[self.at - size : self.at]

    def numbers(self, form, what):
        """The next numbers, as struct names them."""
        return struct.unpack(form, self.take(struct.calcsize(form), what))

    def text(self, what):
        """The next text, after its length."""
        (size,) = self.numbers("<I", what)
        try:
            return bytes(self.take(size, what)).decode()
        except UnicodeDecodeError:
            raise ModelError(f"{what} is no UTF-8") from None
