"""Where the vocabulary's names are looked up."""

from dataclasses import dataclass
from typing import Any

import lathe
from lathe.script import ir_builder


@dataclass
class Space:
    """A namespace: a module, a class, or one thing of a class."""

    thing: Any
    helps: bool = True  # whether it names the nearest that is there

    def get(self, name):
        """The thing of that name."""
        return getattr(self.thing, name)


SPACES = {
    "T": Space(lathe.script.tir),
    "I": Space(lathe.script.ir),
    "script": Space(lathe.script),
    "ir_builder": Space(ir_builder, False),
    "builder": Space(ir_builder.tir),
    "tir": Space(lathe.tir),
    "TensorIntrin": Space(lathe.tir.TensorIntrin, False),
    "IndexMap": Space(lathe.tir.IndexMap, False),
    "PrimFunc": Space(lathe.tir.PrimFunc, False),
    "Buffer": Space(lathe.tir.Buffer, False),
    "tir.stmt_functor": Space(lathe.tir.stmt_functor),
    "tir.functor": Space(lathe.tir.functor),
    "tir.analysis": Space(lathe.tir.analysis),
    "Schedule": Space(lathe.tir.Schedule, False),
    "Trace": Space(lathe.tir.Trace, False),
    "te": Space(lathe.te),
    "Tensor": Space(lathe.te.Tensor, False),
    "lathe": Space(lathe),
    "nd": Space(lathe.nd),
    "NDArray": Space(lathe.nd.empty((1,)), False),
    "runtime": Space(lathe.runtime),
    "Module": Space(lathe.runtime.Module, False),
    "arith": Space(lathe.arith),
    "Analyzer": Space(lathe.arith.Analyzer, False),
    "transform": Space(lathe.transform),
    "instrument": Space(lathe.instrument),
    "ir": Space(lathe.ir),
    "IRModule": Space(lathe.IRModule, False),
    "tir.transform": Space(lathe.tir.transform),
}
