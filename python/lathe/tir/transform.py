"""Passes over tensor functions, under the vocabulary's names. Each is a pass of the compiler's own pipeline."""

from .. import _lathe
from ..ir.transform import Pass, PassContext, PassInfo, Sequential, function_pass_of
from ..names import refuser
from .statement_passes import PASSES as _STATEMENT_PASSES

globals().update(_STATEMENT_PASSES)

prim_func_pass = function_pass_of("tir")

# The pass's name here, its name in the compiler, and what it does.
_PASSES = {
    "LowerLoopExits": ("lower_loop_exits", "Loops that are left early note it, and ask: all passes see such loops."),
    "InlineCalls": ("inline_calls", "A call of a function of the module becomes that function's statements."),
    "CompactBufferAllocation": ("compact_buffers", "Intermediate buffers move inward and shrink to what is used."),
    "LowerInitBlock": ("lower_init", "A block's init becomes a guarded statement before its body."),
    "ConvertBlocksToOpaque": ("convert_blocks_to_opaque", "Blocks lose their variables to the values bound to them."),
    "RemoveNoOp": ("remove_no_op", "Statements that do nothing go."),
    "PlanAndUpdateBufferAllocationLocation": ("place_allocations", "Intermediate buffers move inward."),
    "LowerMatchBuffer": ("lower_match_buffer", "Accesses of views inside blocks become accesses of what they name."),
    "ConvertSSA": ("convert_ssa", "Each variable is defined in one place."),
    "CommonSubexprElimTIR": ("share_expressions", "What several statements compute gets a name."),
    "StorageRewrite": ("share_storage", "Allocations that are not used at the same time share memory."),
    "NarrowDataType": ("narrow_dtypes", "Loops, subscripts and comparisons that are shown to fit become int32."),
    "HoistIfThenElse": ("hoist_branches", "An if that is all of a loop's body, and the same in it, goes around it."),
    "LowerOpaqueBlock": ("convert_blocks", "Blocks become plain statements: bindings, conditions, allocations."),
    "FlattenBuffer": ("flatten_buffers", "Every group of a buffer's axes becomes one dimension."),
    "JoinAxisGroups": ("join_axis_groups", "Buffers of several dimensions get one, row by row."),
    "Simplify": ("simplify", "Arithmetic and control flow that are decided by what is known of loop variables."),
    "LoopPartition": ("partition_loops", "Loops are split at the ends of their guards."),
    "VectorizeLoop": ("vectorize_loops", "Vectorized loops become vector expressions."),
    "UnrollLoop": ("unroll_loops", "Unrolled loops of constant extent are written out."),
    "LowerIntrin": ("lower_intrinsics", "Scalar functions that only help reasoning become plain arithmetic."),
    "BF16ComputeLegalize": ("legalize_dtypes", "float16 and bfloat16 arithmetic through float32."),
    "LegalizeRegisters": ("legalize_registers", "Buffers in scope register are checked to have constant indices."),
    "NestParallel": ("nest_parallel", "A parallel loop inside a parallel loop runs serially."),
}  # fmt: skip


class _CompilerPass(Pass):
    """A pass of the pipeline, with its options."""

    def __init__(self, name, row, **config):
        self.info, self._row, self._config = PassInfo(0, "tir." + name), row, config

    def transform_module(self, mod, ctx):
        """Runs it."""
        return _lathe.run_tir_pass(self._row, mod, self._config)


class _Nothing(Pass):
    """A pass that is told not to do anything."""

    def __init__(self, name):
        self.info = PassInfo(0, "tir." + name)

    def transform_module(self, mod, ctx):
        """The module."""
        return mod


class _Vectorize(_CompilerPass):
    """Vectorised loops, or serial ones where the pass is told not to."""

    def __init__(self, enable_vectorize):
        super().__init__("VectorizeLoop", "vectorize_loops")
        self._enabled = bool(enable_vectorize)

    def transform_module(self, mod, ctx):
        """Runs it; else every vectorised loop becomes a serial one."""
        if self._enabled and not ctx.config.get("tir.disable_vectorize"):
            return super().transform_module(mod, ctx)
        return _serial_vectors(mod)


def _serial_vectors(mod):
    from ..ir.node import ForKind
    from .stmt_functor import ir_transform

    def serial(node):
        return node._with(kind=ForKind.SERIAL) if node.kind == ForKind.VECTORIZED else None

    for name, kind in mod._kinds.items():
        if kind == "tir":
            mod[name] = mod[name].with_body(ir_transform(mod[name].body, None, serial, ["tir.For"]))
    return mod


def _maker(name, row, meaning):
    def made():
        return _CompilerPass(name, row)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = meaning
    return made


for _name, (_row, _meaning) in _PASSES.items():
    globals()[_name] = _maker(_name, _row, _meaning)


def VectorizeLoop(enable_vectorize=True):  # noqa: N802 - the vocabulary's name
    """Vectorized loops become vector expressions; without enable_vectorize, serial loops."""
    return _Vectorize(enable_vectorize)


def HoistIfThenElse(variant=None):  # noqa: N802
    """An if that is all of a loop's body, and is decided the same in every iteration, goes around the loop."""
    if variant not in (None, "basic"):
        raise ValueError(f"there is one kind of hoisting, 'basic', and not {variant!r}")
    return _CompilerPass("HoistIfThenElse", _PASSES["HoistIfThenElse"][0])


def CommonSubexprElimTIR(enable_cse_tir=True, identify_equiv_terms=False):  # noqa: N802
    """What several statements compute gets a name, also where only arithmetic shows it to be the same if that is asked.

    Nothing is computed that was not, and nothing earlier than memory allows.
    """
    if not enable_cse_tir:
        return _Nothing("CommonSubexprElimTIR")
    row = _PASSES["CommonSubexprElimTIR"][0]
    return _CompilerPass("CommonSubexprElimTIR", row, equivalent_terms=bool(identify_equiv_terms))


def NarrowDataType(target_bits=32):  # noqa: N802
    """Loops, subscripts and comparisons that are shown to fit get so many bits: 32, or the 64 that they have."""
    if target_bits not in (32, 64):
        raise ValueError(f"indices have 32 or 64 bits, and not {target_bits}")
    if target_bits == 64:
        return _Nothing("NarrowDataType")
    return _CompilerPass("NarrowDataType", _PASSES["NarrowDataType"][0])


def BF16Legalize():  # noqa: N802
    """bfloat16 arithmetic through float32."""
    return BF16ComputeLegalize()  # noqa: F821


def Apply(ftransform):  # noqa: N802
    """Applies ftransform(function) to every tensor function."""
    return prim_func_pass(lambda f, mod, ctx: ftransform(f), opt_level=0, name="tir.Apply")


def Filter(fcond):  # noqa: N802
    """Keeps the tensor functions for which fcond(function) holds."""
    return prim_func_pass(lambda f, mod, ctx: f if fcond(f) else None, opt_level=0, name="tir.Filter")


def AnnotateEntryFunc():  # noqa: N802
    """Marks the only tensor function of a module, or the one called main, as its entry."""

    def annotate(mod, ctx):
        names = [name for name, kind in mod._kinds.items() if kind == "tir"]
        entry = names[0] if len(names) == 1 else "main" if "main" in names else None
        if entry:
            mod[entry] = mod[entry].with_attr("tir.is_entry_func", True)
        return mod

    from ..ir.transform import ModulePass

    return ModulePass(annotate, PassInfo(0, "tir.AnnotateEntryFunc"))


def BindTarget(target):  # noqa: N802
    """Says in every tensor function what it is compiled for."""
    return prim_func_pass(lambda f, mod, ctx: f.with_attr("target", str(target)), opt_level=0, name="tir.BindTarget")


def default_tir_pipeline():
    """The compiler's own passes from loops and blocks to kernels, in its order."""
    names = {row: name for name, (row, _) in _PASSES.items()}

    def made(row):
        name = names.get("simplify" if row.startswith("simplify") else row, row)
        return VectorizeLoop() if row == "vectorize_loops" else _CompilerPass(name, row)

    return Sequential(map(made, _lathe.tir_passes()), name="tir.default_tir_pipeline")


__all__ = sorted([*_PASSES, *_STATEMENT_PASSES, "AnnotateEntryFunc", "Apply", "BF16Legalize", "BindTarget", "Filter",
                  "PassContext", "default_tir_pipeline", "prim_func_pass"])  # fmt: skip

__getattr__ = refuser("tir.transform", globals())
