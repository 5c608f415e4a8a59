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


@dataclass
class GraphSpace(Space):
    """R, most of whose names the reader of a graph function's text knows, and Python never looks up."""

    # Ways to write a name that are right as they stand, where the first is told of as no operator.
    forms: tuple = (
        "    with R.{}():\n        y = R.exp(x)\n        R.output(y)\n", '    R.{}({{"a": 1}})\n',
        "    with R.dataflow():\n        y = R.exp(x)\n        R.{}(y)\n",
    )  # fmt: skip

    def get(self, name):
        """The thing of that name, or the name where a text may use it."""
        if name in vars(self.thing):
            return vars(self.thing)[name]
        error = self._error(f"    y = R.{name}()\n")
        if error.startswith("there is no operator") and all(self._error(form.format(name)) for form in self.forms):
            raise AttributeError(error)
        return name

    @staticmethod
    def _error(line):
        try:
            lathe.script.from_source("@R.function\ndef f(x: R.Tensor):\n" + line + "    return x\n")
        except lathe.Error as error:
            first = error.diagnostics[0]
            return " ".join([first.message, *filter(None, [first.help])])
        return ""


SPACES = {
    "R": GraphSpace(lathe.script.relax),
    "T": Space(lathe.script.tir),
    "I": Space(lathe.script.ir),
    "script": Space(lathe.script),
    "ir_builder": Space(ir_builder, False),
    "builder": Space(ir_builder.tir),
    "tir": Space(lathe.tir),
    "TensorIntrin": Space(lathe.tir.TensorIntrin, False),
    "IndexMap": Space(lathe.tir.IndexMap, False),
    "Layout": Space(lathe.tir.Layout, False),
    "BijectiveLayout": Space(lathe.tir.bijective_layout("NC", "NC4c"), False),
    "PrimFunc": Space(lathe.tir.PrimFunc, False),
    "Buffer": Space(lathe.tir.Buffer, False),
    "tir.stmt_functor": Space(lathe.tir.stmt_functor),
    "tir.functor": Space(lathe.tir.functor),
    "tir.analysis": Space(lathe.tir.analysis),
    "Schedule": Space(lathe.tir.Schedule, False),
    "tir.schedule": Space(lathe.tir.schedule),
    "tir.schedule.analysis": Space(lathe.tir.schedule.analysis),
    "tir.schedule.transform": Space(lathe.tir.schedule.transform),
    "tir.schedule.testing": Space(lathe.tir.schedule.testing),
    "Trace": Space(lathe.tir.Trace, False),
    "te": Space(lathe.te),
    "Tensor": Space(lathe.te.Tensor, False),
    "lathe": Space(lathe),
    "nd": Space(lathe.nd),
    "NDArray": Space(lathe.nd.empty((1,)), False),
    "runtime": Space(lathe.runtime),
    "Module": Space(lathe.runtime.Module, False),
    "Device": Space(lathe.cpu(), False),
    "relax": Space(lathe.relax),
    "VirtualMachine": Space(lathe.relax.VirtualMachine, False),
    "arith": Space(lathe.arith),
    "Analyzer": Space(lathe.arith.Analyzer, False),
    "transform": Space(lathe.transform),
    "instrument": Space(lathe.instrument),
    "ir": Space(lathe.ir),
    "IRModule": Space(lathe.IRModule, False),
    "tir.transform": Space(lathe.tir.transform),
}
