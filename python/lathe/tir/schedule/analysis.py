"""Questions about schedules and their programs."""

from dataclasses import dataclass, field

from ...arith import IterMapLevel, detect_iter_map
from ...errors import ScheduleError
from ...ir.module import as_module
from ...ir.node import NODE_CLASSES, Range
from ...names import refuser
from ..index_map import IndexMap
from ..stmt_functor import post_order_visit

_stmt = {kind: made for (family, kind), made in NODE_CLASSES.items() if family == "stmt"}


def has_block(sch, block_name):
    """Whether the function that a schedule works on has one block of that name."""
    try:
        sch.copy().get_block(block_name)
    except ScheduleError:
        return False
    return True


def is_output_block(sch, block):
    """Whether a block writes a buffer that the blocks around it do not allocate."""
    sch = sch.copy()  # asking leaves no instruction
    own = sch.get(sch._block(block))
    around = _blocks_around(sch, own)
    written = {region.buffer for region in own.writes}
    return not written <= {buffer for outer in around for buffer in outer.alloc_buffers}


def suggest_index_map(buffer, indices, loops, predicate=True):
    """A layout in which loops walk a buffer in order, outer loops first: an IndexMap, or None.

    indices: where the loops access it. loops: their For nodes, outermost first. predicate: which iterations count.
    None where an index is no sum of loops and parts of loops that counts through its dimension, or a size is not known.
    """
    found = detect_iter_map(indices, {loop.loop_var: Range(loop.min, loop.extent) for loop in loops}, predicate,
                            check_level=IterMapLevel.NoCheck)  # fmt: skip
    order = {loop.loop_var: number for number, loop in enumerate(loops)}
    digits = []
    for dim, total in enumerate(found.indices):
        of_dim = _digits(total, dim, order, getattr(buffer.shape[dim], "value", None))
        if of_dim is None:
            return None
        digits += of_dim
    if not digits:
        return None
    joined = []
    for digit in sorted(digits, key=lambda one: (one.loop, one.scale * -1)):
        before = joined[-1] if joined else None
        if before and before.dim == digit.dim and before.scale == digit.scale * digit.extent:
            joined[-1] = _Digit(before.loop, digit.dim, digit.scale, before.extent * digit.extent, before.first)
        else:
            joined.append(digit)

    def moved(*at):
        parts = []
        for digit in joined:
            part = at[digit.dim] // digit.scale if digit.scale > 1 else at[digit.dim]
            parts.append(part if digit.first else part % digit.extent)
        return parts

    return IndexMap.from_func(moved, len(buffer.shape))


@dataclass
class _Digit:
    """A part of a dimension that one loop, or one part of a loop, counts through."""

    loop: int
    dim: int
    scale: int
    extent: int
    first: bool  # the outermost of its dimension


def _digits(total, dim, order, size):
    """The parts of a dimension, outermost first, where they count through it without a gap; else None."""
    if size is None or getattr(total.base, "value", None) != 0:
        return None
    pieces = [[getattr(one, "value", None) for one in (part.scale, part.extent)] for part in total.args]
    if any(number is None for piece in pieces for number in piece):
        return None
    made = []
    for (scale, extent), part in zip(pieces, total.args):
        if part.source.source not in order:
            return None
        made.append(_Digit(order[part.source.source], dim, scale, extent, False))
    made.sort(key=lambda one: -one.scale)
    reach = 1
    for digit in reversed(made):
        if digit.scale != reach:
            return None
        reach *= digit.extent
    if made:
        made[0].first = True
    return made if reach == size else None


@dataclass
class TensorizeInfo:
    """How the loops around a block meet those of an intrinsic's description.

    loop_map: the description's loop for each loop of the program that it is a part of. desc_loop_indexer: the number of
    each loop of the description. block_iter_paddings: what the block's axes have to be multiples of, None where they
    are.
    """

    loop_map: dict
    desc_loop_indexer: dict
    block_iter_paddings: list | None = None
    pairs: list = field(default_factory=list, repr=False)  # number of a loop around the block, extent of its inner part


def get_tensorize_loop_mapping(sch, block, desc_func, allow_padding=False):
    """Which loops around a block an intrinsic's description would take, from the innermost: a TensorizeInfo, or None.

    An axis of the description meets the last axis of the block that is left, of the same kind, and runs over one loop
    whose extent is a multiple of its own, or any extent with allow_padding.
    """
    sch = sch.copy()  # asking leaves no instruction
    loops = [sch.get(loop) for loop in sch.get_loops(block)]
    realize = _realize_of(sch, sch.get(sch._block(block)))
    desc, desc_loops = _description(desc_func)
    numbers = {loop.loop_var: number for number, loop in enumerate(loops)}
    desc_numbers = {loop.loop_var: number for number, loop in enumerate(desc_loops)}
    axes, left = realize.block.iter_vars, len(realize.block.iter_vars)
    info, paddings = TensorizeInfo({}, {loop: n for n, loop in enumerate(desc_loops)}), [1] * left
    for axis, value in reversed(list(zip(desc.block.iter_vars, desc.iter_values))):
        if value not in desc_numbers:
            return None
        desc_loop = desc_loops[desc_numbers[value]]
        size, number = getattr(desc_loop.extent, "value", None), None
        while left and number is None and size:
            left -= 1
            if axes[left].iter_type == axis.iter_type:
                number = _inner_loop(realize.iter_values[left], numbers, info.pairs)
        if number is None:
            return None
        extent = getattr(loops[number].extent, "value", None)
        if extent is None or extent % size and not allow_padding:
            return None
        if extent % size:
            paddings[left] = size
        info.loop_map[loops[number]] = desc_loop
        info.pairs.append((number, size))
    if any(amount != 1 for amount in paddings):
        info.block_iter_paddings = paddings
    return info


def _inner_loop(value, numbers, taken):
    """The innermost loop that an axis is the sum of and that is not taken yet."""
    used = []
    post_order_visit(value, lambda node: used.append(numbers[node]) if node in numbers else None)
    free = [number for number in used if number not in [pair[0] for pair in taken]]
    return max(free, default=None)


def _description(desc_func):
    """The innermost block of a description, as its BlockRealize, and the loops around it."""
    found, loops = [], []

    def visit(node):
        if isinstance(node, _stmt["BlockRealize"]) and not found:
            found.append(node)
        elif isinstance(node, _stmt["For"]) and found and len(found) == 1:
            loops.insert(0, node)

    post_order_visit(desc_func, visit)
    if not found:
        raise ValueError("the description of an intrinsic has a block")
    return found[0], loops


def _realize_of(sch, block):
    found = []

    def visit(node):
        if isinstance(node, _stmt["BlockRealize"]) and node.block == block:
            found.append(node)

    for function in _functions(sch):
        post_order_visit(function, visit)
    return found[0]


def _functions(sch):
    module = as_module(sch.mod, "what a schedule works on")
    return [module[name] for name, kind in module._kinds.items() if kind == "tir"]


def _blocks_around(sch, inner):
    """The blocks around a block, of its function."""
    around = []

    def holds(outer):
        found = []
        post_order_visit(outer.body, lambda node: found.append(node) if node == inner else None)
        return bool(found)

    def visit(node):
        if isinstance(node, _stmt["Block"]) and node != inner and holds(node):
            around.append(node)

    for function in _functions(sch):
        post_order_visit(function, visit)
    return around


__all__ = ["TensorizeInfo", "get_tensorize_loop_mapping", "has_block", "is_output_block", "suggest_index_map"]

__getattr__ = refuser("tir.schedule.analysis", globals())
