"""What the sweep calls: the functions of the namespaces, the methods of live objects, and whole programs made wrong."""

import inspect

import numpy as np

import lathe
from lathe import te, tir, topi
from lathe.script import tir as T
from lathe.script.ir_builder import IRBuilder
from lathe.script.ir_builder import ir as built_I
from lathe.script.ir_builder import tir as built_T
from tests.python.misuse.strangers import PROGRAMS, chain, product, symbolic

# What ends, prints or waits, by design.
LEFT_OUT = {"show", "vscode", "main", "input", "exit"}
OPERATORS = (
    "__call__ __getitem__ __setitem__ __delitem__ __contains__ __len__ __iter__ __eq__ __lt__ __add__ __radd__ __sub__ "
    "__mul__ __truediv__ __floordiv__ __mod__ __pow__ __lshift__ __rshift__ __and__ __or__ __xor__ __invert__ __neg__ "
    "__bool__ __int__ __float__ __index__ __hash__ __repr__ __str__ __array__ __dlpack__ __copy__ __deepcopy__ "
    "__enter__"
).split()


def members(space, name, depth=1):
    """The public callables of a module or namespace, with their names."""
    for key in dir(space):
        if key.startswith("_") or key in LEFT_OUT:
            continue
        try:
            value = getattr(space, key)
        except AttributeError:
            continue
        if inspect.ismodule(value):
            known = getattr(space, "__all__", ())  # modules that are no names for users hold what is swept elsewhere
            if depth and value.__name__.startswith("lathe.") and (key in known or key in ("schedule", "nn")):
                yield from members(value, f"{name}.{key}", depth - 1)
        elif callable(value) and value is not space:
            yield f"{name}.{key}", value


def methods(name, make):
    """The methods, properties and operators of what `make` makes anew for each call."""
    thing = make()
    for key in dir(type(thing)):
        if key in LEFT_OUT or (key.startswith("_") and key not in OPERATORS):
            continue

        def call(*args, key=key, **named):
            member = getattr(make(), key)
            if not callable(member):
                return member
            made = member(*args, **named)
            if key == "__enter__":
                type(thing).__exit__(make(), None, None, None)
            return made

        if callable(getattr(type(thing), key, None)):
            try:
                call.__signature__ = inspect.signature(getattr(thing, key))
            except (TypeError, ValueError, AttributeError):
                pass
        yield f"{name}.{key}", call


def built():
    """A compiled module, once."""
    if not hasattr(built, "kept"):
        built.kept = lathe.build(lathe.IRModule({"main": chain, "other": symbolic}))
    return built.kept


def traced():
    """The trace of some steps."""
    sch = tir.Schedule(product, seed=3)
    factors = sch.sample_perfect_tile(sch.get_loops("C")[0], 2)
    sch.split(sch.get_loops("C")[0], factors)
    sch.annotate("C", "note", 1)
    sch.transform_block_layout("C", lambda i, j, k: (j, i, k))
    return sch.trace


def objects():
    """The live objects whose methods are called, by name."""
    tensor = te.placeholder((4, 6), name="t")
    r = te.reduce_axis((0, 6), "r")
    total = te.compute((4,), lambda i: te.sum(tensor[i, r], axis=r), name="total")
    x = tir.Var("x", "int64")
    sch = tir.Schedule(chain)
    return {
        "PrimFunc": lambda: chain, "IRModule": lambda: lathe.IRModule({"main": chain, "f": product}),
        "Block": lambda: product.body.block, "For": lambda: product.body.block.body, "Var": lambda: x,
        "Expr": lambda: x // 3 + 1, "Condition": lambda: x < 3, "Comparison": lambda: x == 3,
        "IntImm": lambda: tir.IntImm("int32", 7), "FloatImm": lambda: tir.FloatImm("float32", 0.5),
        "Buffer": lambda: tir.decl_buffer((8, 8), "float32"), "Range": lambda: tir.Range(0, 8),
        "BufferLoad": lambda: tir.decl_buffer((8, 8), "float32")[x, 0],
        "IndexMap": lambda: tir.IndexMap.from_func(lambda i, j: (j, i // 4, i % 4)),
        "TensorIntrin": lambda: tir.TensorIntrin(product, product), "Layout": lambda: tir.layout("NCHW4c"),
        "BijectiveLayout": lambda: tir.bijective_layout("NCHW", "NCHW4c"), "Analyzer": lathe.arith.Analyzer,
        "IntervalSet": lambda: lathe.arith.IntervalSet(tir.IntImm("int64", 0), tir.IntImm("int64", 4)),
        "BlockRV": lambda: sch.get_block("B"), "LoopRV": lambda: sch.get_loops("B")[0], "Trace": traced,
        "Instruction": lambda: traced().insts[0], "ScheduleState": lambda: tir.Schedule(product).state,
        "Tensor": lambda: total, "TensorSlice": lambda: tensor[0, 1], "PartOfTensor": lambda: tensor[0],
        "Operation": lambda: total.op, "reduce_axis": lambda: r, "Module": built,
        "Function": lambda: built()["main"], "NDArray": lambda: lathe.nd.array(np.ones((3, 4), "float32")),
        "times": lambda: built().time_evaluator("main", lathe.cpu(), number=1),
        "Device": lathe.cpu, "Target": lambda: lathe.target.Target("llvm"), "PassContext": tir.transform.PassContext,
        "Sequential": lambda: lathe.transform.Sequential([tir.transform.Simplify()]),
        "Pass": tir.transform.VectorizeLoop, "Visitor": tir.PyStmtExprVisitor, "Mutator": tir.PyStmtExprMutator,
        "PassTimingInstrument": lathe.instrument.PassTimingInstrument, "Diagnostic": diagnostic,
        "IRBuilder": IRBuilder, "GlobalVar": lambda: lathe.ir.GlobalVar("f"),
    }  # fmt: skip


def diagnostic():
    """What a refusal says."""
    try:
        tir.Schedule(product).get_block("no such block")
    except lathe.Error as error:
        return error.diagnostics[0]


def all_methods():
    """Those of all objects."""
    for name, make in objects().items():
        yield from methods(name, make)


def schedule_methods():
    """The primitives, on a schedule on which some steps were taken. Where a loop or a block is expected, one comes."""
    for key in dir(tir.Schedule):
        if key.startswith("_") or key in LEFT_OUT:
            continue

        def call(*args, key=key, **named):
            sch = tir.Schedule(PROGRAMS[len(args) % len(PROGRAMS)])
            block = sch.get_block(next(b for b in ("C", "B", "rows") if f'T.block("{b}")' in sch.mod.script()))
            loops = sch.get_loops(block)
            if len(args) == 2:
                sch.split(loops[0], [None, 3])
                loops = sch.get_loops(block)
            own = {"loop": loops[0], "block": block, "inner": loops[-1], "gone": loops[0]}
            args = [own.get(a, a) if isinstance(a, str) else a for a in args]
            named = {name: own.get(a, a) if isinstance(a, str) else a for name, a in named.items()}
            before = sch.mod
            member = getattr(sch, key)
            try:
                made = member(*args, **named) if callable(member) else None
            except Exception:
                assert sch.mod.same_as(before) or lathe.ir.structural_equal(sch.mod, before), "a refusal changed it"
                raise
            sch.mod.script()
            if not sch.mod.same_as(before):
                tir.analysis.verify_well_formed(sch.mod)
            return made

        call.__signature__ = inspect.signature(getattr(tir.Schedule(product), key)) if key not in (
            "mod", "state", "trace", "func_working_on") else inspect.Signature()  # fmt: skip
        yield f"Schedule.{key}", call


def frames():
    """The builder's functions, called inside a function that is built, and left in the order in which they came."""
    for space, name in ((built_T, "built.T"), (built_I, "built.I")):
        for path, value in members(space, name, 0):
            if inspect.isclass(value):
                continue

            def call(*args, value=value, **named):
                with IRBuilder() as ib:
                    with built_T.prim_func():
                        built_T.func_name("main")
                        A = built_T.arg("A", built_T.Buffer((16,), "float32"))
                        with built_T.serial(16) as i:
                            made = value(*args, **named)
                            if hasattr(made, "__enter__"):
                                with made:
                                    built_T.buffer_store(A, T.float32(0), [i])
                            built_T.buffer_store(A, T.float32(1), [i])
                lathe.build(ib.get(), target="interp")

            try:
                call.__signature__ = inspect.signature(value)
            except (TypeError, ValueError):
                pass
            yield path, call


def passes():
    """Every pass over modules of all kinds: what it is given comes first."""
    for path, value in members(tir.transform, "pass", 0):
        if inspect.isclass(value) or path.endswith((".prim_func_pass", ".Apply", ".Filter")):
            continue

        def call(module=None, *options, value=value):
            made = value(*options)
            return made(module) if callable(made) else made

        yield path, call


def changed(pick, function, pool):
    """The function with an expression, a statement or a field replaced by something else."""
    nodes = []
    tir.stmt_functor.post_order_visit(function.body, nodes.append)
    target = pick.choice(nodes)
    others = [node for node in pool if isinstance(node, (tir.PrimExpr, tir.Stmt, int, float))]
    replacement = pick.choice([pick.choice(nodes), pick.choice(others)])
    kind = pick.randint(0, 2)

    def mutate(node):
        if not node.same_as(target):
            return None
        if kind == 0:
            return replacement
        fields = type(node)._fields
        if not fields:
            return replacement
        field = pick.choice(fields)
        value = getattr(node, field)
        other = pick.choice([replacement, pick.choice(pool), value[:-1] if isinstance(value, list) else replacement,
                             value * 2 if isinstance(value, list) else value])  # fmt: skip
        return node._with(**{field: other})

    body = tir.stmt_functor.ir_transform(function.body, None, mutate)
    return function.with_body(body)


def uses_of(function):
    """What is done to a program."""
    yield lambda: function.script()
    yield lambda: lathe.ir.load_json(lathe.ir.save_json(function))
    yield lambda: lathe.ir.structural_hash(function)
    yield lambda: tir.analysis.verify_well_formed(function)
    for name in sorted(tir.analysis.__all__):
        if name not in ("verify_gpu_code", "get_block_access_region", "expr_deep_equal", "assert_pure_function"):
            yield lambda name=name: getattr(tir.analysis, name)(function)
    for name in sorted(tir.transform.__all__):
        if name not in ("Apply", "BindTarget", "Filter", "prim_func_pass", "PassContext"):
            yield lambda name=name: getattr(tir.transform, name)()(lathe.IRModule({"main": function}))
    yield lambda: tir.Schedule(function).get_loops("C")
    yield lambda: tir.Schedule(function).cache_read("C", 0, "local")
    yield lambda: tir.Schedule(function).fuse(*tir.Schedule(function).get_loops("C"))
    yield lambda: lathe.build(function, target="interp")
    yield lambda: lathe.build(function)


def programs(pick, pool):
    """Programs of which a part is another, and what is done to them."""
    while True:
        function = pick.choice(PROGRAMS)
        for _ in range(pick.randint(0, 3)):  # as some passes left it
            name = pick.choice(["ConvertBlocksToOpaque", "LowerInitBlock", "CompactBufferAllocation", "Simplify"])
            try:
                (function,) = (made for _, made in getattr(tir.transform, name)()(function).items())
            except lathe.CompileError:  # not in this order
                pass
        yield function


SPACES = {
    "tir": lambda: members(tir, "tir"),
    "te": lambda: members(te, "te"),
    "topi": lambda: members(topi, "topi"),
    "script": lambda: members(lathe.script, "script"),
    "T": lambda: members(T, "T", 0),
    "arith": lambda: members(lathe.arith, "arith"),
    "ir": lambda: [*members(lathe.ir, "ir"), *members(lathe.transform, "transform", 0)],
    "runtime": lambda: [*members(lathe.runtime, "runtime"), *members(lathe.target, "target", 0),
                        *((f"lathe.{name}", getattr(lathe, name)) for name in ("build", "register_func", "load",
                          "get_global_func", "compile", "device", "import_onnx"))],
    "objects": all_methods,
    "schedule": schedule_methods,
    "builder": frames,
    "passes": passes,
}  # fmt: skip
