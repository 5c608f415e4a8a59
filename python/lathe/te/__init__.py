"""Tensor expressions: tensors computed element by element, and the tensor functions made of them.

    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    f = te.create_prim_func([A, B, C])
"""

import inspect

from .. import _lathe
from ..ir.node import NODE_CLASSES, Range, as_expr
from ..names import refuser as _refuser
from ..tir import op as _op
from ..tir.index_map import AXIS_SEPARATOR
from ..tir.op import all, any, const, indexdiv, indexmod, power  # noqa: A004
from . import primfunc as _primfunc
from .tensor import Tensor, TensorSlice, tensors_read

globals().update((name, made) for name, made in _op.FUNCTIONS.items() if name[0].islower())

Var = NODE_CLASSES["expr", "Var"]
IterVar = NODE_CLASSES["iter_var", "IterVar"]


def var(name="tindex", dtype="int64", span=None):
    """A symbolic size. Sizes and indices are int64 here."""
    return Var(name, str(dtype))


def size_var(name="size", dtype="int64", span=None):
    """A symbolic size that is known to be at least zero."""
    return Var(name, str(dtype), True)


def placeholder(shape, dtype=None, name="placeholder"):
    """A tensor given from outside."""
    return Tensor(_lathe.te_placeholder(_shape(shape), str(dtype or "float32"), name))


def _shape(shape):
    return list(shape) if isinstance(shape, (tuple, list)) else [shape]


def compute(shape, fcompute, name="compute", tag="", attrs=None, varargs_names=None):
    """The tensor whose element at (i, j, …) is fcompute(i, j, …); a tuple of them where that gives a tuple."""
    shape = _shape(shape)
    parameters = list(inspect.signature(fcompute).parameters.values())
    any_count = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
    if not any_count and len(parameters) != len(shape):
        raise ValueError(f"'{name}' has {len(shape)} dimensions, and its function takes {len(parameters)} indices")

    def body(indices):
        value = fcompute(*indices)
        if isinstance(value, (tuple, list)):
            return [_element(item) for item in value]
        return _element(value)

    states = _lathe.te_compute(shape, body, lambda e: [t._state for t in tensors_read(e)], name, tag)
    tensors = [Tensor(state) for state in states]
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _element(value):
    return value.asobject() if isinstance(value, TensorSlice) else value


def reduce_axis(dom, name="rv", thread_tag="", span=None):
    """An axis to reduce over: (begin, end), a Range, or the extent."""
    if not isinstance(dom, Range):
        dom = Range(*dom) if isinstance(dom, (tuple, list)) else Range(dom)
    return _lathe.te_reduce_axis(dom.min, dom.extent, name)


def _reducer(kind, meaning):
    def reduce(expr, axis, where=None, init=None):
        return _lathe.te_reduce(kind, _element(expr), axis, where, init)

    reduce.__name__ = reduce.__qualname__ = kind
    reduce.__doc__ = meaning
    return reduce


sum = _reducer("sum", "The sum over axes, where a condition holds.")  # noqa: A001
prod = _reducer("prod", "The product over axes.")


def _scalar_or_reduce(kind, scalar):
    reduce = _reducer(kind, "")

    def made(expr, axis, where=None, init=None, span=None):
        if not isinstance(axis, (IterVar, list, tuple)) and where is None and init is None:
            return scalar(_element(expr), _element(axis))
        return reduce(expr, axis, where, init)

    made.__name__ = made.__qualname__ = kind
    made.__doc__ = f"{kind}(a, b) of two numbers, or {kind}(expr, axis=…) over axes."
    return made


max = _scalar_or_reduce("max", _op.FUNCTIONS["max"])  # noqa: A001
min = _scalar_or_reduce("min", _op.FUNCTIONS["min"])  # noqa: A001


def comm_reducer(fcombine, fidentity, name="reduce"):
    """A reducer made of two functions: fcombine(x, y), and fidentity(dtype), which gives what changes nothing.

    Several values at once are tuples.
    """

    def reduce(expr, axis, where=None, init=None):
        if where is not None or init is not None:
            raise ValueError("a reducer of one's own takes neither where nor init")
        expr = [_element(item) for item in expr] if isinstance(expr, (tuple, list)) else _element(expr)
        return _lathe.te_comm_reduce(fcombine, fidentity, expr, axis)

    reduce.__name__ = name
    return reduce


def einsum(subscripts, *operands):
    """Einstein's summation: te.einsum("bij,bjk->bik", A, B).

    "..." are dimensions without a letter; a letter twice in one operand is its diagonal. More than two operands are
    multiplied pair by pair, in the order that multiplies least.
    """
    return Tensor(_lathe.te_einsum(str(subscripts), [_state_of(operand, "an operand") for operand in operands]))


def _state_of(tensor, what):
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{what} is a tensor, not a {type(tensor).__name__}")
    return tensor._state


def _listed(thing):
    return list(thing) if isinstance(thing, (tuple, list)) else [thing]


def scan(init, update, state_placeholder, inputs=None, name="scan", tag="", attrs=None):
    """A recurrence over the first dimension: `init` gives its first steps, `update` each later one from earlier ones of
    `state_placeholder`, which stands for the result. Lists of them are states side by side.

        X = te.placeholder((m, n)); s = te.placeholder((m, n))
        first = te.compute((1, n), lambda _, i: X[0, i])
        next = te.compute((m, n), lambda t, i: s[t - 1, i] + X[t, i])
        sums = te.scan(first, next, s, inputs=[X])
    """
    states = list(zip(*map(_listed, (init, update, state_placeholder)), strict=True))
    made = _lathe.te_scan([[_state_of(part, "a part of a scan") for part in row] for row in states], name)
    tensors = [Tensor(state) for state in made]
    return tensors[0] if len(tensors) == 1 else tensors


def extern(shape, inputs, fcompute, name="extern", dtype=None, in_buffers=None, out_buffers=None, tag="", attrs=None):
    """Tensors written by a statement over whole buffers: fcompute(input buffers, output buffers) gives it.

    shape: of the output, or a list of shapes; dtype: as many, or that of the inputs where they agree.
    """
    if in_buffers is not None or out_buffers is not None:
        raise ValueError("the buffers of an extern operation are its tensors' own")
    several = isinstance(shape, (tuple, list)) and len(shape) > 0 and isinstance(shape[0], (tuple, list))
    shapes = [list(one) for one in shape] if several else [_shape(shape)]
    if dtype is None:
        found = {tensor.dtype for tensor in inputs}
        if len(found) != 1:
            raise ValueError("the dtype of an extern operation is said where its inputs do not have one and the same")
        dtype = found.pop()
    dtypes = [str(one) for one in dtype] if isinstance(dtype, (tuple, list)) else [str(dtype)] * len(shapes)
    if len(dtypes) != len(shapes):
        raise ValueError(f"{len(dtypes)} dtypes for {len(shapes)} shapes")
    made = _lathe.te_extern(
        list(zip(shapes, dtypes)), [_state_of(tensor, "an input") for tensor in inputs], fcompute, name
    )
    tensors = [Tensor(state) for state in made]
    return tensors[0] if len(tensors) == 1 else tensors


def extern_primfunc(input_tensors, primfunc, **kwargs):
    """The tensors that a tensor function writes, where it reads these; its blocks stay, and can be scheduled.

    input_tensors: one for each buffer that the function only reads, in their order; kwargs: name, tag and attrs, as in
    te.extern. Symbols in the function's shapes are told by those of the tensors.
    """
    unknown = sorted(set(kwargs) - {"name", "tag", "attrs"})
    if unknown:
        raise TypeError(f"extern_primfunc takes name, tag and attrs, and not {unknown[0]}")
    function = _primfunc.fitted(primfunc, list(input_tensors))
    given, made = _primfunc.split_parameters(function)
    name = kwargs.get("name", "extern_primfunc")

    def body(ins, outs):
        return _primfunc.body_over(function, list(zip([*given, *made], [*ins, *outs])), name)

    return extern([list(one.shape) for one in made], list(input_tensors), body, dtype=[one.dtype for one in made],
                  **{**kwargs, "name": name})  # fmt: skip


def create_prim_func(ops, index_dtype_override=None):
    """The tensor function whose parameters are these tensors, in this order."""
    tensors = list(ops) if isinstance(ops, (tuple, list)) else [ops]
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"a function is made of tensors, not of a {type(tensor).__name__}")
    if not tensors:
        raise ValueError("a function is made of at least one tensor")
    return _lathe.te_create_prim_func([t._state for t in tensors]).with_attr("global_symbol", "main")


__all__ = [
    "Tensor", "TensorSlice", "all", "any", "as_expr", "comm_reducer", "compute", "const", "create_prim_func",
    "einsum", "extern", "extern_primfunc", "indexdiv", "indexmod", "max", "min", "placeholder", "power", "prod",
    "reduce_axis", "scan", "size_var", "sum", "var",
]  # fmt: skip

__getattr__ = _refuser("te", globals())
