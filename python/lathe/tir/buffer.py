"""Buffers: regions of memory with a shape."""

from ..ir.node import NODE_CLASSES, as_expr, name_function

Buffer = NODE_CLASSES["buffer", "Buffer"]
BufferLoad = NODE_CLASSES["expr", "BufferLoad"]
BufferStore = NODE_CLASSES["stmt", "BufferStore"]
Ramp = NODE_CLASSES["expr", "Ramp"]
Var = NODE_CLASSES["expr", "Var"]


class ScopeName(str):
    """The name of a memory scope; the vocabulary calls it: buffer.scope()."""

    def __call__(self):
        return str(self)


_scope = Buffer.scope


def _indices(buffer, index):
    index = list(index) if isinstance(index, (tuple, list)) else [index]
    if len(index) != len(buffer.shape):
        raise IndexError(f"buffer '{buffer.name}' has {len(buffer.shape)} dimensions, not {len(index)}")
    return [_vector(item) if isinstance(item, slice) else item for item in index]


def _vector(item):
    if not isinstance(item.start, int) or not isinstance(item.stop, int):
        raise TypeError("a slice in an index has constant bounds here")
    step = item.step or 1
    return Ramp(as_expr(item.start), as_expr(step), (item.stop - item.start) // step)


def _load(self, index):
    return BufferLoad(self, _indices(self, index))


def _vload(self, begin, dtype=None, predicate=None):
    """The element at `begin`, or a vector where the last index is one."""
    return BufferLoad(self, _indices(self, begin), predicate)


def _vstore(self, begin, value, predicate=None):
    """The statement that stores `value` at `begin`."""
    return BufferStore(self, as_expr(value, self.dtype), _indices(self, begin), predicate)


def _scope_name(self):
    """The memory scope's name."""
    return ScopeName(_scope.fget(self))


def _ndim(self):
    """How many dimensions there are."""
    return len(self.shape)


_METHODS = {"__getitem__": _load, "vload": _vload, "vstore": _vstore, "scope": _scope_name, "ndim": _ndim}
for _name, _made in _METHODS.items():
    name_function(_made, Buffer.__module__, "Buffer", _name)
Buffer.scope = property(_scope_name)
Buffer.ndim = property(_ndim)
Buffer.__getitem__ = _load
Buffer.vload = _vload
Buffer.vstore = _vstore


def decl_buffer(shape, dtype="float32", name="buffer", data=None, strides=None, elem_offset=None, scope="",
                data_alignment=-1, offset_factor=0, buffer_type="", axis_separators=None, span=None):  # fmt: skip
    """A buffer; without `data` it has an address of its own."""
    shape = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    return Buffer(
        name=name,
        data=data if data is not None else Var(name, "handle"),
        dtype=str(dtype),
        shape=shape,
        strides=list(strides or []),
        elem_offset=elem_offset,
        scope=scope or "global",
        data_alignment=data_alignment if data_alignment > 0 else 64,
        offset_factor=max(offset_factor, 0),
        axis_separators=list(axis_separators or []),
    )
