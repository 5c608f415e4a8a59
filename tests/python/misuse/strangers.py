"""Values that no function expects, and plausible ones by the name of a parameter."""

import inspect

import numpy as np

import lathe
from lathe import te, tir
from lathe.script import tir as T


@T.prim_func
def product(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for i, j, k in T.grid(8, 8, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * B[vk, vj]


@T.prim_func
def chain(A: T.Buffer((16, 12), "float32"), D: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16, 12), "float32")
    C = T.alloc_buffer((16, 12), "float32")
    for i, j in T.grid(16, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(16, 12):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.if_then_else(vi >= 1 and vj >= 1, B[vi - 1, vj - 1], T.float32(0))
    for i, j in T.grid(16, 12):
        with T.block("D"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                D[vi] = T.float32(0)
            D[vi] = D[vi] + C[vi, vj]


@T.prim_func
def symbolic(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 4), "int32")
    B = T.match_buffer(b, (n, 4), "int32")
    for i in range(n):
        with T.block("rows"):
            vi = T.axis.spatial(n, i)
            for j in range(4):
                with T.block("B"):
                    vj = T.axis.spatial(4, j)
                    B[vi, vj] = A[vi, 3 - vj] * 2


PROGRAMS = (product, chain, symbolic)


def deep(levels):
    """Lists in one another."""
    nested = []
    for _ in range(levels):
        nested = [nested]
    return nested


def raising(*arguments):
    """What a callback should not do."""
    raise KeyError("a callback that raises")


def strangers():
    """Values of every kind, wrong almost everywhere."""
    other = tir.Schedule(product)
    gone = tir.Schedule(product)
    loops = gone.get_loops("C")
    gone.fuse(*loops)
    inlined = tir.Schedule(chain)
    removed = inlined.get_block("B")
    inlined.compute_inline(removed)
    expression = tir.Var("x", "int64")
    for _ in range(4000):
        expression = expression + 1
    cycle = []
    cycle.append(cycle)
    return [
        None, True, 0, 1, -1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63), 2**63, 2**64, 2**70, 10**40, 1.5,
        float("nan"), float("inf"), -0.0, 1j, "", "C", "float32", "int32", "float32x4", "no such thing", "a\nb",
        "\x00", "C\x00", "\ud800", "é" * 100, "x" * 100_000, "lambda i: i", "(" * 3000, b"bytes", [], [None], [1, 2],
        [0, -1], [2**40, 2**40], (1, "a"), (), {}, {"a": 1}, {1: None}, {3}, object(), object, len, lambda: None,
        lambda *a: a, lambda *a: None, lambda i, j: (j, i), lambda i: i // 0, lambda i: "i", raising, np.float32(1),
        np.int64(3), np.zeros((2, 2)), np.zeros(0, "int64"), np.array(["a"]), np.zeros((8, 8), "float32"), range(3),
        iter([1]), deep(100), deep(5000), cycle, expression, tir.Var("h", "handle"),
        tir.Var("x", "int64"), tir.Var("b", "bool"), tir.IntImm("int32", 7), tir.IntImm("int64", 0),
        tir.FloatImm("float32", float("nan")), tir.StringImm("s"), tir.decl_buffer((8, 8), "float32"),
        tir.decl_buffer((), "int8"), tir.decl_buffer((2**62, 2**62), "float64"), tir.Evaluate(0), product, chain,
        product.body, product.body.block.body, lathe.IRModule({"main": product}), lathe.IRModule({}),
        lathe.IRModule({"f": chain, "g": symbolic}), te.placeholder((8, 8), name="p"),
        te.placeholder((0,), "int8", name="e"), te.reduce_axis((0, 8)), te.placeholder((8,), name="p")[0],
        other.get_block("C"), other.get_loops("C")[0], loops[0], removed, other, other.trace,
        tir.IndexMap.from_func(lambda i, j: (j, i)), tir.layout("NCHW4c"), tir.Range(0, 4), lathe.cpu(),
        lathe.nd.array(np.ones(4, "float32")), lathe.target.Target("llvm"), lathe.arith.Analyzer(), NotImplemented,
        ..., slice(0, 4), type, Exception("e"), lathe.arith.IntervalSet(tir.IntImm("int64", 0), 4),
    ]  # fmt: skip


def plausible(pick, pool):
    """What parameters of these names expect, more or less: so that what is wrong beside it is looked at."""
    x, y = tir.Var("x", "int64"), tir.Var("y", "int64")
    f = tir.Var("f", "float32")
    buffer = pool_of(pool, "Buffer")
    tensor = te.placeholder((4, 6), name="t")
    exprs = [x, y + 1, x // 3, x % 4 * 2, tir.IntImm("int64", 5), tir.IntImm("int32", 5), f, 3, x < y,
             tir.Cast("int8", x), tir.exp(f), tir.Select(x < y, x, y)]  # fmt: skip
    statements = [tir.Evaluate(0), product.body, product.body.block.body, chain.body,
                  tir.BufferStore(buffer, f, [x, y])]  # fmt: skip
    shapes = [(4, 6), [8], (), (x, 4), (0,), (2, 3, 4), 8]
    functions = [product, chain, symbolic]
    modules = [*functions, lathe.IRModule({"main": chain}), lathe.IRModule({"f": chain, "g": symbolic})]
    kinds = {
        ("expr", "lhs", "rhs", "a", "b", "value", "cond", "condition", "pred", "x", "src", "index", "true_value",
         "false_value", "begin", "end", "lower", "upper", "elem_offset", "extent", "min", "min_value", "base"): exprs,
        ("args", "indices", "exprs", "equations", "bindings", "initial_indices", "final_indices"):
            [[x], [y, x], [x + y, 3], [x < 3]],
        ("stmt", "body", "node", "obj"): statements + functions,
        ("func", "function", "f", "primfunc", "desc", "impl"): functions,
        ("mod", "func_or_mod", "stmt_or_mod", "inputs", "module"): modules,
        ("shape", "extents", "newshape", "output_shape"): shapes,
        ("dtype", "target_dtype", "index_dtype"): ["float32", "int8", "bool", "float16", "int64", "float8_e4m3fn"],
        ("buffer", "buf"): [buffer, tir.decl_buffer((16,), "int32")],
        ("var", "variable", "loop_var", "data"): [x, y, f],
        ("variables", "input_iters", "dom_map", "ranges", "sub_iters"):
            [[x, y], {x: tir.Range(0, 8)}, {x: tir.Range(0, 8), y: tir.Range(0, 3)}],
        ("axis", "axes"): [0, -1, 1, [0], (0, 1), te.reduce_axis((0, 4))],
        ("name", "key", "attr_key", "tag"): ["C", "name", "main", "T.kind"],
        ("A", "B", "data", "tensor", "lhs", "rhs", "x", "tensors", "a_tuple", "weight", "operands"):
            [tensor, te.placeholder((6, 4), "int32"), [tensor, tensor], te.compute((4, 6), lambda i, j: tensor[i, j])],
    }  # fmt: skip
    found = {}
    for names, values in kinds.items():
        for name in names:
            found.setdefault(name, []).extend(values)
    return found


def pool_of(pool, kind):
    """The first value of a class in the pool."""
    return next(value for value in pool if type(value).__name__ == kind)


def parameters_of(function):
    """The parameters of a function, or None where nothing says them."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
