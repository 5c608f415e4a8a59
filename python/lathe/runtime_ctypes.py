"""Runs saved artifacts through the runtime's C interface (src/abi/lathe.h), with ctypes and NumPy alone.

    artifact = Artifact("model.so")
    outputs = artifact.run({"x": array})        # or a list in the order of artifact.inputs

Neither the compiler nor the rest of the package is needed: this file works when loaded by its path. An Artifact may be
used from any thread; each thread gets a context of its own. bfloat16, float8 and 4-bit types need ml_dtypes.
Tensors of strings are arrays of str; sequences and tuples are lists; an optional without a value is None.
"""

import ctypes
import os
import threading
import weakref
from ctypes import POINTER, Structure, byref, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from pathlib import Path

import numpy as np

TENSOR, SCALAR, TUPLE, STRINGS, SEQUENCE, OPTIONAL = range(1, 7)
CPU = 1


class DLDataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]

    @property
    def key(self):
        return self.code, self.bits


class DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class DLManagedTensor(Structure):
    pass


DLManagedTensor._fields_ = [
    ("dl_tensor", DLTensor),
    ("manager_ctx", c_void_p),
    ("deleter", ctypes.CFUNCTYPE(None, POINTER(DLManagedTensor))),
]


class ErrorRecord(Structure):
    _fields_ = [("code", c_int32), ("message", c_char_p), ("node", c_char_p)]


class ValueInfo(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("kind", c_int32),
        ("dtype", DLDataType),
        ("rank", c_int32),
        ("dims", POINTER(c_int64)),
        ("symbols", POINTER(c_char_p)),
    ]


class ContextOptions(Structure):
    _fields_ = [
        ("size", c_uint64),
        ("threads", c_int32),
        ("flush_denormals", c_int32),
        ("max_memory", c_uint64),
        ("max_steps", c_uint64),
        ("timeout", c_uint64),
    ]


class RuntimeFailure(RuntimeError):
    """What the runtime refused or failed at: .code (a LatheStatus), .node (of the model, or "")."""

    def __init__(self, code, message, node):
        super().__init__(f"node '{node}': {message}" if node else message)
        self.code = code
        self.node = node


def _load_library():
    here = Path(__file__).resolve().parent
    build = Path(os.environ.get("LATHE_BUILD_DIR", here.parents[1] / "build"))
    candidates = [here / "lib" / "liblathe_runtime.so", build / "lib" / "liblathe_runtime.so"]
    for candidate in candidates:
        if candidate.is_file():
            return ctypes.CDLL(str(candidate))
    raise OSError("liblathe_runtime.so is in none of: " + ", ".join(str(candidate.parent) for candidate in candidates))


def _declare(library):
    values, infos, tensors = POINTER(c_void_p), POINTER(ValueInfo), POINTER(POINTER(DLTensor))
    managed = POINTER(POINTER(DLManagedTensor))
    signatures = {
        "lathe_last_error": (POINTER(ErrorRecord), []),
        "lathe_open": (c_int32, [c_char_p, c_void_p, POINTER(c_void_p)]),
        "lathe_close": (None, [c_void_p]),
        "lathe_input_count": (c_int32, [c_void_p]),
        "lathe_output_count": (c_int32, [c_void_p]),
        "lathe_input": (infos, [c_void_p, c_int32]),
        "lathe_output": (infos, [c_void_p, c_int32]),
        "lathe_metadata": (c_char_p, [c_void_p, c_char_p]),
        "lathe_metadata_count": (c_int32, [c_void_p]),
        "lathe_metadata_key": (c_char_p, [c_void_p, c_int32]),
        "lathe_create_context": (c_int32, [c_void_p, POINTER(ContextOptions), POINTER(c_void_p)]),
        "lathe_destroy_context": (None, [c_void_p]),
        "lathe_run": (c_int32, [c_void_p, tensors, c_int32, managed, c_int32]),
        "lathe_run_values": (c_int32, [c_void_p, values, c_int32, values, c_int32]),
        "lathe_value_kind": (c_int32, [c_void_p]),
        "lathe_value_release": (None, [c_void_p]),
        "lathe_value_from_tensor": (c_void_p, [POINTER(DLTensor)]),
        "lathe_value_tensor": (POINTER(DLTensor), [c_void_p]),
        "lathe_value_make_scalar": (c_void_p, [c_int64]),
        "lathe_value_scalar": (c_int64, [c_void_p]),
        "lathe_value_make_strings": (c_void_p, [c_int32, POINTER(c_int64)]),
        "lathe_value_strings_shape": (c_int32, [c_void_p, POINTER(c_int32), POINTER(POINTER(c_int64))]),
        "lathe_value_get_string": (c_void_p, [c_void_p, c_int64, POINTER(c_uint64)]),
        "lathe_value_set_string": (c_int32, [c_void_p, c_int64, c_char_p, c_uint64]),
        "lathe_value_make": (c_void_p, [c_int32, values, c_int64]),
        "lathe_value_count": (c_int64, [c_void_p]),
        "lathe_value_get": (c_void_p, [c_void_p, c_int64]),
        "lathe_profile": (None, [c_void_p, c_int32]),
        "lathe_state_count": (c_int32, [c_void_p]),
        "lathe_state": (infos, [c_void_p, c_int32]),
        "lathe_reset_states": (c_int32, [c_void_p]),
        "lathe_get_states": (c_int32, [c_void_p, managed, c_int32]),
        "lathe_set_states": (c_int32, [c_void_p, tensors, c_int32]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_library = _declare(_load_library())


def _check(status):
    if status != 0:
        error = _library.lathe_last_error().contents
        raise RuntimeFailure(error.code, error.message.decode(errors="replace"), error.node.decode(errors="replace"))


def _made(value):
    if not value:
        _check(_library.lathe_last_error().contents.code or 1)
    return value


# ---- element types ----


def _element_types():
    types = {(6, 8): np.dtype(np.bool_)}
    for code, letter, sizes in ((0, "i", (1, 2, 4, 8)), (1, "u", (1, 2, 4, 8)), (2, "f", (2, 4, 8)), (5, "c", (8, 16))):
        types.update({(code, 8 * size): np.dtype(f"{letter}{size}") for size in sizes})
    try:
        import ml_dtypes
    except ImportError:
        return types
    narrow = {
        (4, 16): "bfloat16",
        (0, 4): "int4",
        (1, 4): "uint4",
        (0, 2): "int2",
        (1, 2): "uint2",
        (7, 8): "float8_e3m4",
        (8, 8): "float8_e4m3",
        (9, 8): "float8_e4m3b11fnuz",
        (10, 8): "float8_e4m3fn",
        (11, 8): "float8_e4m3fnuz",
        (12, 8): "float8_e5m2",
        (13, 8): "float8_e5m2fnuz",
        (14, 8): "float8_e8m0fnu",
        (17, 4): "float4_e2m1fn",
    }
    types.update({key: np.dtype(getattr(ml_dtypes, name)) for key, name in narrow.items() if hasattr(ml_dtypes, name)})
    return types


_TYPE_OF_KEY = _element_types()
_KEY_OF_TYPE = {dtype: key for key, dtype in _TYPE_OF_KEY.items()}


def _pack(array, bits):
    """Elements of fewer than eight bits, low bits first; NumPy holds one a byte."""
    each = 8 // bits
    flat = array.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    flat = np.concatenate([flat, np.zeros(-len(flat) % each, np.uint8)]).reshape(-1, each)
    return np.bitwise_or.reduce(flat << (np.arange(each, dtype=np.uint8) * bits), axis=1).astype(np.uint8)


def _unpack(packed, bits, count, dtype):
    each = 8 // bits
    flat = (packed[:, None] >> (np.arange(each, dtype=np.uint8) * bits)).reshape(-1)[:count] & ((1 << bits) - 1)
    if dtype.kind == "i" or dtype.name.startswith("int"):
        sign = np.uint8(1 << (bits - 1))
        flat = (flat ^ sign) - sign
    return flat.astype(np.uint8).view(dtype)


def _tensor_view(array):
    """A DLTensor over the array's memory, and what must live as long as it."""
    array = np.asarray(array)
    if array.dtype.newbyteorder("=") != array.dtype:
        array = array.astype(array.dtype.newbyteorder("="))
    key = _KEY_OF_TYPE.get(array.dtype)
    if key is None:
        raise TypeError(f"arrays of {array.dtype} cannot be given to an artifact")
    shape, strides, kept = array.shape, None, array
    if key[1] < 8:
        kept = _pack(array, key[1])
    elif not array.flags.c_contiguous:
        if array.itemsize and all(step % array.itemsize == 0 for step in array.strides):
            strides = (c_int64 * array.ndim)(*(step // array.itemsize for step in array.strides))
        else:
            kept = np.ascontiguousarray(array)
    dims = (c_int64 * len(shape))(*shape)
    tensor = DLTensor(kept.ctypes.data, CPU, 0, len(shape), DLDataType(key[0], key[1], 1), dims, strides, 0)
    return tensor, (kept, dims, strides)


def _array_over(tensor, finalize):
    """The array over a DLTensor's memory; `finalize` is called when nothing looks at the memory any more."""
    dtype = _TYPE_OF_KEY.get(tensor.dtype.key)
    if dtype is None:
        finalize()
        raise TypeError(f"no NumPy type for DLPack type {tensor.dtype.key} (is ml_dtypes installed?)")
    shape = [tensor.shape[axis] for axis in range(tensor.ndim)]
    count = int(np.prod(shape, dtype=np.int64))
    size = (count * tensor.dtype.bits + 7) // 8
    if size == 0:
        finalize()
        return np.empty(shape, dtype)
    memory = (c_uint8 * size).from_address(tensor.data + tensor.byte_offset)
    weakref.finalize(memory, finalize).atexit = False
    if tensor.dtype.bits < 8:
        return _unpack(np.frombuffer(memory, np.uint8), tensor.dtype.bits, count, dtype).reshape(shape)
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)


# ---- values of any kind ----


def _to_value(thing, kind):
    if kind == OPTIONAL:
        members = [] if thing is None else [_guess_value(thing)]
    elif kind in (SEQUENCE, TUPLE):
        members = [_guess_value(member) for member in thing]
    elif kind == STRINGS:
        return _strings_value(np.asarray(thing))
    elif kind == SCALAR:
        return _made(_library.lathe_value_make_scalar(int(thing)))
    else:
        tensor, kept = _tensor_view(thing)
        value = _library.lathe_value_from_tensor(byref(tensor))
        del kept
        return _made(value)
    try:
        return _made(_library.lathe_value_make(kind, (c_void_p * len(members))(*members), len(members)))
    finally:
        for member in members:
            _library.lathe_value_release(member)


def _guess_value(thing):
    if isinstance(thing, (list, tuple)):
        return _to_value(thing, SEQUENCE)
    is_text = np.asarray(thing).dtype.kind in "OUS"
    return _to_value(thing, STRINGS if is_text else TENSOR)


def _strings_value(array):
    shape = (c_int64 * array.ndim)(*array.shape)
    value = _made(_library.lathe_value_make_strings(array.ndim, shape))
    for index, text in enumerate(array.reshape(-1)):
        data = text if isinstance(text, bytes) else str(text).encode()
        _check(_library.lathe_value_set_string(value, index, data, len(data)))
    return value


def _from_value(value):
    """Takes over the reference."""
    kind = _library.lathe_value_kind(value)
    if kind == TENSOR:
        tensor = _library.lathe_value_tensor(value).contents
        return _array_over(tensor, lambda: _library.lathe_value_release(value))
    try:
        if kind == SCALAR:
            return _library.lathe_value_scalar(value)
        if kind == STRINGS:
            return _strings_of(value)
        members = [_from_value(_library.lathe_value_get(value, i)) for i in range(_library.lathe_value_count(value))]
        if kind == OPTIONAL:
            return members[0] if members else None
        return tuple(members) if kind == TUPLE else members
    finally:
        _library.lathe_value_release(value)


def _strings_of(value):
    rank, shape, size = c_int32(), POINTER(c_int64)(), c_uint64()
    _check(_library.lathe_value_strings_shape(value, byref(rank), byref(shape)))
    array = np.empty([shape[axis] for axis in range(rank.value)], object)
    flat = array.reshape(-1)
    for index in range(flat.size):
        text = _library.lathe_value_get_string(value, index, byref(size))
        flat[index] = ctypes.string_at(text, size.value).decode(errors="surrogateescape")
    return flat.reshape(array.shape)


# ---- artifacts ----


class Port:
    """An input or output: name, kind, dtype (NumPy's or None), shape (sizes, symbols or None; None: any rank)."""

    def __init__(self, info):
        self.name = info.name.decode()
        self.kind = info.kind
        self.dtype = _TYPE_OF_KEY.get(info.dtype.key) if info.kind == TENSOR else None
        self.shape = None
        if info.rank >= 0:
            dims = [(info.dims[axis], info.symbols[axis].decode()) for axis in range(info.rank)]
            self.shape = tuple(size if size >= 0 else symbol or None for size, symbol in dims)

    def __repr__(self):
        return f"Port({self.name!r}, dtype={self.dtype}, shape={self.shape})"


class Artifact:
    """A saved artifact, opened. `threads` of a run, 0: the runtime's rule. Limits of a run, 0 for none: max_memory in
    bytes, max_steps in instructions, timeout in seconds."""

    def __init__(self, path, threads=0, max_memory=0, max_steps=0, timeout=0):
        model = c_void_p()
        _check(_library.lathe_open(os.fsencode(path), None, byref(model)))
        self._model = model
        self._finalizer = weakref.finalize(self, _library.lathe_close, model)
        size, nanoseconds = ctypes.sizeof(ContextOptions), int(timeout * 1e9)
        self._options = ContextOptions(size, threads, 0, max_memory, max_steps, nanoseconds)
        self._local = threading.local()
        self.inputs = [Port(_library.lathe_input(model, i).contents) for i in range(_library.lathe_input_count(model))]
        output_count = _library.lathe_output_count(model)
        self.outputs = [Port(_library.lathe_output(model, i).contents) for i in range(output_count)]
        self.states = [Port(_library.lathe_state(model, i).contents) for i in range(_library.lathe_state_count(model))]
        keys = [_library.lathe_metadata_key(model, i) for i in range(_library.lathe_metadata_count(model))]
        self.metadata = {key.decode(): _library.lathe_metadata(model, key).decode() for key in keys}

    def _context(self):
        holder = getattr(self._local, "holder", None)
        if holder is None:
            holder = self._local.holder = _Context(self._model, self._options)
        return holder.context

    def run(self, feeds):
        """The outputs as a list, for inputs as a dict by name or a sequence in order."""
        ordered = self._in_order(feeds)
        if all(port.kind == TENSOR for port in self.inputs + self.outputs):
            return self._run_tensors(ordered)
        return self._run_values(ordered)

    def reset_states(self):
        """What the model keeps for the calling thread is empty again."""
        _check(_library.lathe_reset_states(self._context()))

    def get_states(self):
        """Copies of what the model keeps for the calling thread, by name."""
        states = (POINTER(DLManagedTensor) * len(self.states))()
        _check(_library.lathe_get_states(self._context(), states, len(states)))
        arrays = [_array_over(held.contents.dl_tensor, _deleter_of(held)) for held in states]
        return {port.name: array for port, array in zip(self.states, arrays)}

    def set_states(self, arrays):
        """Copies of these are kept for the calling thread: a dict by name, of all states."""
        views = [_tensor_view(array) for array in self._in_order(dict(arrays), self.states)]
        states = (POINTER(DLTensor) * len(views))(*(ctypes.pointer(tensor) for tensor, _ in views))
        _check(_library.lathe_set_states(self._context(), states, len(views)))

    def _in_order(self, feeds, ports=None):
        if not isinstance(feeds, dict):
            return list(feeds)
        names = [port.name for port in (self.inputs if ports is None else ports)]
        missing = [name for name in names if name not in feeds]
        unknown = [name for name in feeds if name not in names]
        if missing or unknown:
            raise ValueError(f"inputs missing: {missing}, unknown: {unknown}; the artifact takes {names}")
        return [feeds[name] for name in names]

    def _run_tensors(self, ordered):
        views = [_tensor_view(array) for array in ordered]
        inputs = (POINTER(DLTensor) * len(views))(*(ctypes.pointer(tensor) for tensor, _ in views))
        outputs = (POINTER(DLManagedTensor) * len(self.outputs))()
        _check(_library.lathe_run(self._context(), inputs, len(views), outputs, len(outputs)))
        return [_array_over(held.contents.dl_tensor, _deleter_of(held)) for held in outputs]

    def _run_values(self, ordered):
        kinds = [port.kind for port in self.inputs] + [TENSOR] * len(ordered)
        values = []
        try:
            for thing, kind in zip(ordered, kinds):
                values.append(_to_value(thing, kind))
            inputs = (c_void_p * len(values))(*values)
            outputs = (c_void_p * len(self.outputs))()
            _check(_library.lathe_run_values(self._context(), inputs, len(values), outputs, len(outputs)))
        finally:
            for value in values:
                _library.lathe_value_release(value)
        return [_from_value(value) for value in outputs]


class _Context:
    """A thread's context; freed with the thread's locals."""

    def __init__(self, model, options):
        self.context = c_void_p()
        _check(_library.lathe_create_context(model, byref(options), byref(self.context)))
        weakref.finalize(self, _library.lathe_destroy_context, self.context).atexit = False


def _deleter_of(held):
    return lambda: held.contents.deleter(held)
