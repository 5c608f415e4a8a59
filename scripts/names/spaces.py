"""Where the vocabulary's names are looked up, and how tests write them."""

from dataclasses import dataclass
from typing import Any

import lathe
from lathe.script import ir_builder


@dataclass
class Space:
    """A namespace: the object, and a pattern of its uses in which NAME stands for the name."""

    thing: Any
    pattern: str
    helps: bool = True  # whether it names the nearest that is there

    def get(self, name):
        """The thing of that name."""
        return getattr(self.thing, name)

    def used(self, name):
        """The pattern of a use of the name."""
        return self.pattern.replace("NAME", name)


_METHOD = r"\.NAME\b"
SPACES = {
    "T": Space(lathe.script.tir, r"\b(T|T_text)\.NAME\b"),
    "I": Space(lathe.script.ir, r"\b(I|script)\.NAME\b"),
    "script": Space(lathe.script, r"(\bscript\.NAME\b|from lathe\.script import (\w+ as \w+, )*NAME\b)"),
    "ir_builder": Space(ir_builder, r"(\bNAME\(|ir_builder import.*\bNAME\b)", False),
    "builder": Space(ir_builder.tir, r"\b[TB]\.NAME\b"),
    "tir": Space(lathe.tir, r"(\btir\.NAME\b|from lathe\.tir import .*\bNAME\b)"),
    "TensorIntrin": Space(lathe.tir.TensorIntrin, r"\bTensorIntrin\.NAME\b", False),
    "IndexMap": Space(lathe.tir.IndexMap, _METHOD, False),
    "PrimFunc": Space(lathe.tir.PrimFunc, _METHOD, False),
    "Buffer": Space(lathe.tir.Buffer, _METHOD, False),
    "tir.stmt_functor": Space(lathe.tir.stmt_functor, r"\bstmt_functor\.NAME\b"),
    "tir.functor": Space(lathe.tir.functor, r"(\bfunctor\.NAME\b|\btir\.NAME\b)"),
    "tir.analysis": Space(lathe.tir.analysis, r"\banalysis\.NAME\b"),
    "Schedule": Space(lathe.tir.Schedule, r"(\.NAME\b|\"NAME\")", False),
    "Trace": Space(lathe.tir.Trace, _METHOD, False),
    "te": Space(lathe.te, r"\bte\.NAME\b"),
    "Tensor": Space(lathe.te.Tensor, _METHOD, False),
    "lathe": Space(lathe, r"\b(lathe|tvm)\.NAME\b"),
    "nd": Space(lathe.nd, r"\b(nd|runtime)\.NAME\b"),
    "NDArray": Space(lathe.nd.empty((1,)), _METHOD, False),
    "runtime": Space(lathe.runtime, r"\b(runtime|lathe|tvm)\.NAME\b"),
    "Module": Space(lathe.runtime.Module, _METHOD, False),
    "arith": Space(lathe.arith, r"\barith\.NAME\b"),
    "Analyzer": Space(lathe.arith.Analyzer, _METHOD, False),
    "transform": Space(lathe.transform, r"\btransform\.NAME\b"),
    "instrument": Space(lathe.instrument, r"\binstrument\.NAME\b"),
    "ir": Space(lathe.ir, r"\b(lathe|tvm)\.ir\.NAME\b"),
    "IRModule": Space(lathe.IRModule, _METHOD, False),
    "tir.transform": Space(lathe.tir.transform, r"\btransform\.NAME\b"),
}
