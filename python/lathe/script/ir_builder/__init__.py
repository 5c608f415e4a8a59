"""Programs made by calls instead of text: each `with` is a frame, and what is called inside becomes part of it.

    from lathe.script.ir_builder import IRBuilder, tir as T

    with IRBuilder() as ib:
        with T.prim_func():
            T.func_name("main")
            A = T.arg("A", T.Buffer((8,), "float32"))
            with T.serial(0, 8) as i:
                T.buffer_store(A, A[i] + T.float32(1), [i])
    function = ib.get()
"""

from . import ir, tir
from .frames import Frame, IRBuilder

__all__ = ["Frame", "IRBuilder", "ir", "tir"]

