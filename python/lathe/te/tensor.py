"""Tensors of tensor expressions, and their elements."""

import weakref

from .. import _lathe
from ..ir.node import NODE_CLASSES, Node, PrimExpr
from ..tir.buffer import BufferLoad

IterVar = NODE_CLASSES["iter_var", "IterVar"]

# The tensors that are alive, by the buffers that elements of them name.
_TENSORS: weakref.WeakValueDictionary = weakref.WeakValueDictionary()


class Tensor:
    """A tensor: given from outside, or computed. A[i, j] is an element."""

    def __init__(self, state):
        self._state = state
        self.buffer = state.buffer
        _TENSORS[self.buffer] = self

    @property
    def shape(self):
        """The sizes."""
        return self.buffer.shape

    @property
    def dtype(self):
        """The elements' type."""
        return self.buffer.dtype

    @property
    def name(self):
        """The name."""
        return self.buffer.name

    @property
    def ndim(self):
        """How many dimensions there are."""
        return len(self.shape)

    @property
    def op(self):
        """How the tensor is made."""
        return Operation(self)

    def __call__(self, *indices):
        return self[indices]

    def astype(self, dtype, span=None):
        """Its elements converted, as another tensor."""
        return Tensor(_lathe.topi_cast(self._state, str(dtype)))

    def __add__(self, other):
        return combined("add", self, other)

    def __radd__(self, other):
        return combined("add", other, self)

    def __sub__(self, other):
        return combined("subtract", self, other)

    def __rsub__(self, other):
        return combined("subtract", other, self)

    def __mul__(self, other):
        return combined("multiply", self, other)

    def __rmul__(self, other):
        return combined("multiply", other, self)

    def __truediv__(self, other):
        return combined("divide", self, other)

    def __rtruediv__(self, other):
        return combined("divide", other, self)

    def __neg__(self):
        return Tensor(_lathe.topi_unary("negative", self._state))

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if len(index) > self.ndim:
            raise ValueError(f"tensor '{self.name}' has {self.ndim} dimensions, not {len(index)}")
        return TensorSlice(self, index)

    __iter__ = None  # Python would index without end

    def __eq__(self, other):
        return isinstance(other, Tensor) and self.buffer.same_as(other.buffer)

    def __hash__(self):
        return hash(self.buffer)

    def __repr__(self):
        return f"Tensor(shape={self.shape}, name={self.name}, dtype={self.dtype})"


class Operation:
    """How a tensor is made."""

    def __init__(self, tensor):
        self._tensor = tensor
        self.name = tensor.name
        self.tag = tensor._state.tag
        self.axis = tensor._state.axis
        self.reduce_axis = tensor._state.reduce_axis
        self.body = tensor._state.body

    @property
    def input_tensors(self):
        """The tensors that it reads."""
        return [_TENSORS.get(state.buffer) or Tensor(state) for state in self._tensor._state.inputs]

    def output(self, index):
        """The tensor made."""
        return self._tensor

    def __repr__(self):
        kind = "PlaceholderOp" if self._tensor._state.is_placeholder else "ComputeOp"
        return f"{kind}({self.name})"


class TensorSlice:
    """A tensor with some indices given: an element once all are."""

    def __init__(self, tensor, indices):
        self.tensor = tensor
        self.indices = tuple(index.var if isinstance(index, IterVar) else index for index in indices)

    def __getitem__(self, index):
        return self.tensor[self.indices + (index if isinstance(index, tuple) else (index,))]

    __iter__ = None

    @property
    def dtype(self):
        """The element's type."""
        return self.tensor.dtype

    def asobject(self):
        """The element as an expression."""
        if len(self.indices) != self.tensor.ndim:
            raise ValueError(
                f"tensor '{self.tensor.name}' has {self.tensor.ndim} dimensions, {len(self.indices)} indices are given"
            )
        return BufferLoad(self.tensor.buffer, [_index(index) for index in self.indices])

    __lathe_value__ = asobject

    def astype(self, dtype, span=None):
        """The element converted."""
        return self.asobject().astype(dtype)

    def __repr__(self):
        return f"{self.tensor.name}[{', '.join(map(repr, self.indices))}]"

    __hash__ = None  # type: ignore[assignment]


def combined(function, lhs, rhs):
    """A function of two operands by its name in topi, element by element; a number takes the tensor's dtype."""
    states = (one._state if isinstance(one, Tensor) else one for one in (lhs, rhs))
    return Tensor(_lathe.topi_binary(function, *states))


def _index(index):
    return index.asobject() if isinstance(index, TensorSlice) else index


def _forward(name):
    operator = getattr(PrimExpr, name)

    def apply(self, *others):
        return operator(self.asobject(), *others)

    apply.__name__, apply.__qualname__ = name, f"TensorSlice.{name}"
    return apply


for _name in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow neg lt le gt ge and or xor "
    "invert lshift rshift eq ne"
).split():
    setattr(TensorSlice, f"__{_name}__", _forward(f"__{_name}__"))


def _axis_operator(name):
    operator = getattr(PrimExpr, name)

    def apply(self, *others):
        return operator(self.var, *others)

    apply.__module__, apply.__name__, apply.__qualname__ = IterVar.__module__, name, f"IterVar.{name}"
    return apply


for _name in "add radd sub rsub mul rmul floordiv rfloordiv mod rmod lt le gt ge".split():
    setattr(IterVar, f"__{_name}__", _axis_operator(f"__{_name}__"))


def tensors_read(expression):
    """The tensors that an expression reads, each once."""
    found = {}

    def visit(node):
        if isinstance(node, BufferLoad) and node.buffer not in found:
            tensor = _TENSORS.get(node.buffer)
            if tensor is None:
                raise ValueError(f"buffer '{node.buffer.name}' belongs to no tensor of te")
            found[node.buffer] = tensor

    if isinstance(expression, Node):
        _lathe.post_order_visit(expression, visit)
    return list(found.values())
