"""Schedules made of several primitives."""

from ...names import refuser
from ..tensor_intrin import TensorIntrin
from .analysis import get_tensorize_loop_mapping


def tile_with_tensor_intrin(sch, block, intrin_name, allow_padding=False):
    """Cuts the loops around a block so that the innermost ones are those of an intrinsic: the outermost of these, which
    `tensorize` takes, or None where the intrinsic does not fit.

    With allow_padding the block's axes are padded (pad_einsum) where the intrinsic does not divide them; the copies
    that this makes are inlined where they can be.
    """
    info = get_tensorize_loop_mapping(sch, block, TensorIntrin.get(intrin_name).desc, allow_padding)
    if info is None:
        return None
    if info.block_iter_paddings is not None:
        sch.pad_einsum(block, info.block_iter_paddings)
        info = get_tensorize_loop_mapping(sch, block, TensorIntrin.get(intrin_name).desc)
        if info is None:
            return None
    loops = sch.get_loops(block)
    inner, at = [], {}
    for number, size in info.pairs:
        outer, part = sch.split(loops[number], [None, size])
        at[number] = outer
        inner.insert(0, part)
    rest = [at.get(number, loop) for number, loop in enumerate(loops)]
    sch.reorder(*rest, *inner)
    return inner[0]


__all__ = ["tile_with_tensor_intrin"]

__getattr__ = refuser("tir.schedule.transform", globals())
