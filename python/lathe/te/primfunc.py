"""te.extern_primfunc: tensors that a tensor function computes, its blocks left as they are."""

from .. import _lathe
from ..ir.node import NODE_CLASSES, _sizes_fixed
from ..tir.stmt_functor import ir_transform, post_order_visit, renew_defs
from .tensor import Tensor

BufferLoad, BufferStore = NODE_CLASSES["expr", "BufferLoad"], NODE_CLASSES["stmt", "BufferStore"]
Block, BlockRealize = NODE_CLASSES["stmt", "Block"], NODE_CLASSES["stmt", "BlockRealize"]


def split_parameters(primfunc):
    """The buffers that a function is given and those that it writes, in the order of its parameters."""
    written = []

    def note(node):
        if isinstance(node, BufferStore):
            written.append(node.buffer)
        elif isinstance(node, Block):
            written.extend(region.buffer for region in node.writes)

    post_order_visit(primfunc.body, note)
    given, made = [], []
    for param in primfunc.params:
        buffer = primfunc.buffer_map.get(param)
        if buffer is None:
            raise ValueError(f"'{param.name}' is a number: an extern function's parameters are buffers")
        (made if any(buffer.same_as(one) for one in written) else given).append(buffer)
    return given, made


def fitted(primfunc, tensors):
    """The function with its symbols told by the shapes of tensors, and definitions of its own: it may stand twice."""
    given, made = split_parameters(primfunc)
    if not made:
        raise ValueError("the function writes none of its buffers")
    if len(given) != len(tensors):
        raise ValueError(f"the function reads {len(given)} buffers, and {len(tensors)} tensors are given")
    changes = []
    for buffer, tensor in zip(given, tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"an extern function reads tensors, not a {type(tensor).__name__}")
        changes.extend(_sizes_fixed(buffer, tensor))
    for symbol, size in changes:
        before = next(known for one, known in changes if one.same_as(symbol))
        if not _lathe.structural_equal(before, size, False):
            raise ValueError(f"'{symbol.name}', which the function leaves open, would be {before} and {size}")
    return renew_defs(_lathe.substitute(primfunc, changes))


def body_over(primfunc, changes, name):
    """The function's body with buffers replaced, as pairs say; one that allocates is a block of that name."""

    def replaced(buffer):
        return next((new for old, new in changes if old.same_as(buffer)), buffer)

    def region(one):
        return one._with(buffer=replaced(one.buffer))

    def change(node):
        if isinstance(node, Block):
            matches = [match._with(source=region(match.source)) for match in node.match_buffers]
            return node._with(reads=list(map(region, node.reads)), writes=list(map(region, node.writes)),
                              match_buffers=matches)  # fmt: skip
        return node._with(buffer=replaced(node.buffer))

    body = ir_transform(primfunc.body, None, change, ["tir.BufferLoad", "tir.BufferStore", "tir.Block"])
    if not isinstance(body, BlockRealize) or body.block.name != "root":
        return body
    if not body.block.alloc_buffers:
        return body.block.body
    block = body.block._with(name=name)
    reads, writes = _lathe.infer_regions(block)
    return body._with(block=block._with(reads=reads, writes=writes))
