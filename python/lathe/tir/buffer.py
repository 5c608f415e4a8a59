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


def _no_elements(self):
    raise TypeError(f"the elements of buffer '{self.name}' are gone through by a loop over their indices")


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


def _access_ptr(self, access_mask, ptr_type="handle", content_lanes=1, offset=0, extent=None):
    """The address of the first element, or of one `offset` further on where there is one dimension.

    access_mask: what is done through it, "r", "w" or "rw", or 1, 2 or 3; a block's regions say where.
    """
    if access_mask not in ("r", "w", "rw", 1, 2, 3):
        raise ValueError(f'an access is "r", "w" or "rw", not {access_mask!r}')
    plain = isinstance(offset, int) and offset == 0
    if not plain and len(self.shape) != 1:
        raise ValueError(f"an offset is of a buffer of one dimension, not {len(self.shape)}: take an element's address")
    indices = [as_expr(0, "int64") for _ in self.shape]
    if indices:
        indices[-1] = as_expr(offset, "int64")
    from .op import FUNCTIONS

    return FUNCTIONS["address_of"](BufferLoad(self, indices))


def _offset_of(self, indices):
    """Where an element lies: elements from the buffer's address on, one number a group of axes that lie apart."""
    indices = _indices(self, indices)
    if len(self.strides) > 0 or self.elem_offset is not None:
        return [_flat(self, 0, len(indices), indices)]
    bounds = [0, *self.axis_separators, len(indices)]
    return [_flat(self, first, last, indices) for first, last in zip(bounds, bounds[1:])]


def _flat(buffer, first, last, indices):
    from .. import _lathe

    place = as_expr(0, "int64") if buffer.elem_offset is None else buffer.elem_offset
    if len(buffer.strides) > 0:
        for index, stride in zip(indices, buffer.strides):
            place = place + as_expr(index, "int64") * stride
    else:
        inside = as_expr(0, "int64")
        for axis in range(first, last):
            inside = inside * buffer.shape[axis] + as_expr(indices[axis], "int64")
        place = place + inside
    return _lathe.Analyzer().simplify(place)


def _flattened(self):
    """The buffer as FlattenBuffer makes it: one dimension for each group of axes, over the same memory."""
    from .. import _lathe

    if len(self.strides) > 0 or self.elem_offset is not None:
        last = _offset_of(self, [extent - 1 for extent in self.shape])[0]
        shape, separators = [_lathe.Analyzer().simplify(last + 1)], []
    else:
        bounds, shape = [0, *self.axis_separators, len(self.shape)], []
        for first, end in zip(bounds, bounds[1:]):
            count = as_expr(1, "int64")
            for extent in self.shape[first:end]:
                count = count * extent
            shape.append(_lathe.Analyzer().simplify(count))
        separators = list(range(1, len(shape)))
    return self._with(shape=shape, strides=[], elem_offset=None, axis_separators=separators)


_METHODS = {
    "__getitem__": _load, "vload": _vload, "vstore": _vstore, "scope": _scope_name, "ndim": _ndim,
    "access_ptr": _access_ptr, "offset_of": _offset_of, "get_flattened_buffer": _flattened,
}  # fmt: skip
for _name, _made in _METHODS.items():
    name_function(_made, Buffer.__module__, "Buffer", _name)
Buffer.scope = property(_scope_name)
Buffer.ndim = property(_ndim)
Buffer.__getitem__ = _load
Buffer.__iter__ = _no_elements  # else Python asks for elements without end
Buffer.vload = _vload
Buffer.vstore = _vstore
Buffer.access_ptr = _access_ptr
Buffer.offset_of = _offset_of
Buffer.get_flattened_buffer = _flattened


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
