"""Tensor programs written as loops over NumPy compute, bit for bit, what the interpreter computes."""

import ml_dtypes
import numpy as np
import pytest

import lathe
from lathe.script import from_source

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2")
NARROW = ("int4", "uint4", "int2", "uint2")


def numpy_dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def same(value, wanted, exact=True):
    """Equal bits but for NaN and for the sign of zero, which minimum and maximum may choose."""
    assert value.dtype == wanted.dtype and value.shape == wanted.shape
    if value.dtype.kind in "iub" or not exact and value.dtype.itemsize < 4:
        ulps = abs(value.astype(np.float64) - wanted.astype(np.float64)) if not exact else value != wanted
        bad = ulps > (0 if exact else abs(wanted.astype(np.float64)) * 0.02 + 1e-3)
    else:
        a, b = value.astype(np.float64), wanted.astype(np.float64)
        near = np.isclose(a, b, 0 if exact else 1e-6, 0 if exact else 1e-7, equal_nan=True)
        bad = ~(near | np.isnan(a) & np.isnan(b))
    assert not bad.any(), f"{int(bad.sum())} of {bad.size}: {value[bad][:4]}, wanted {wanted[bad][:4]}"


def check(lathe_cli, folder, module, calls, exact=True):
    """`module`, as text, is written as NumPy; `calls`: the arguments of each of its functions, outputs included."""
    program = module if isinstance(module, str) else module.script()
    (folder / "program.py").write_text(program)
    text = lathe_cli("opt", folder / "program.py", "--emit", "py").out
    (folder / "numpy_program.py").write_text(text)
    scope = {}
    exec(compile(text, "numpy_program.py", "exec"), scope)
    interpreted = lathe.build(from_source(program), target="interp")
    for name, arguments in calls.items():
        mine, wanted = ([a.copy() if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2))
        interpreted[name](*wanted)
        scope[name](*mine)
        for a, b in zip(mine, wanted, strict=True):
            if isinstance(a, np.ndarray):
                try:
                    same(a, b, exact)
                except AssertionError as e:
                    raise AssertionError(f"{name}: {e}\n{text[text.index('def ' + name + '('):][:600]}") from None


def numbers(dtype, rng, count=96):
    """Of every size, the extremes and what surrounds zero among them."""
    t = numpy_dtype(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if dtype in INTEGERS + NARROW:
        limits = (ml_dtypes if dtype in NARROW else np).iinfo(t)
        low, high = int(limits.min), int(limits.max)
        values = [low, low + 1, high, high - 1, 0, 1, 2, 3, *([-1, -2, -3] if low < -3 else [])]
        while len(values) < count:
            reach = 1 << int(rng.integers(1, max(high.bit_length(), 2)))
            values.append(int(rng.integers(max(low, -reach), min(high, reach))))
        return np.array(values[:count], object).astype(np.uint64 if low == 0 else np.int64).astype(t)
    values = rng.standard_normal(count) * 2.0 ** rng.integers(-12, 12, count)
    special = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, 1.0, -1.0, 3.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 2.0**31,
               1e-40]  # fmt: skip
    values[: len(special)] = special
    with np.errstate(all="ignore"):
        return values.astype(np.float32 if t.itemsize < 4 else t).astype(t)


def functions(rows):
    """A module with a function for each row: name, dtypes of a, b, c and of the result, expression."""
    text = ["@I.ir_module", "class M:"]
    for name, inputs, result, expression in rows:
        params = [f'{p}: T.Buffer((96,), "{t}")' for p, t in zip(("A", "B", "C"), inputs, strict=False)]
        text += ["    @T.prim_func", f'    def {name}({", ".join(params)}, out: T.Buffer((96,), "{result}")):',
                 "        for n in range(96):"]  # fmt: skip
        text += [f"            {p.lower()} = {p}[n]" for p, _ in zip(("A", "B", "C"), inputs, strict=False)]
        text += [f"            out[n] = {expression}"]
    return "\n".join(text) + "\n"


def arguments(inputs, result, rng, nonzero=False):
    arrays = [numbers(t, rng) for t in inputs]
    for k, a in enumerate(arrays):
        rng.shuffle(a)
        if nonzero and k == 1:
            a[a == 0] = 1
    return [*arrays, np.zeros(96, numpy_dtype(result))]


def sweep(lathe_cli, folder, rows, exact=True, seed=3):
    rng = np.random.default_rng(seed)
    rows = [(f"f{k}", *row) for k, row in enumerate(rows)]
    nonzero = ("//", "%", "truncdiv", "truncmod")
    calls = {name: arguments(inputs, result, rng, any(word in e for word in nonzero))
             for name, inputs, result, e in rows}  # fmt: skip
    with np.errstate(all="ignore"):
        check(lathe_cli, folder, functions(rows), calls, exact)


@pytest.mark.parametrize("t", INTEGERS)
def test_integers_wrap_as_they_do_here(lathe_cli, tmp_path, t):
    both = ["a + b", "a - b", "a * b", "a // b", "a % b", "T.truncdiv(a, b)", "T.truncmod(a, b)", "T.min(a, b)",
            "T.max(a, b)", "a & b", "a | b", "a ^ b", "T.shift_left(a, b)", "T.shift_right(a, b)",
            "T.pow(a, b % T.{t}(7))", "(a + b) * a - b // T.{t}(3)", "T.if_then_else(a < b, a * b, b)",
            "T.Select(a >= b, a, b * a)", "T.Let(z * z + a, where={{z: a - b}})"]  # fmt: skip
    one = ["~a", "T.abs(a)", "T.popcount(a)", "T.clz(a)", "T.floor(a)", "a * T.{t}(100) + T.{t}(27)",
           "T.Cast('{t}', n * 40000) + a", "T.Cast('{t}', n) * T.Cast('{t}', n) * a", "T.Cast('{t}', n) * T.{t}(97)",
           "T.pow(a, T.{t}(3))", "T.Cast('{t}', n) * T.Cast('{t}', n + 120) // T.{t}(7)"]  # fmt: skip
    rows = [((t, t), t, e.format(t=t)) for e in both] + [((t,), t, e.format(t=t)) for e in one]
    rows += [((t, t), "bool", e) for e in ["a < b", "a == b", "not (a <= b)", "a > b and a != b", "a > b or b < a"]]
    if t.startswith("int"):
        rows += [((t, t), t, f"T.if_then_else(a != T.{t}(0), T.pow(a, b // T.{t}(30)), b)")]
    sweep(lathe_cli, tmp_path, rows)


@pytest.mark.parametrize("t", FLOATS)
def test_floats_round_as_they_do_here(lathe_cli, tmp_path, t):
    both = ["a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "T.fmod(a, b)", "T.min(a, b)", "T.max(a, b)",
            "T.copysign(a, T.if_then_else(b == b, b, a))", "T.nextafter(a, b)", "T.fma(a, b, a)",
            "T.if_then_else(a < b, a, b)",
            "T.Select(a >= b, a, b)", "a * T.{t}(0.5) + b"]  # fmt: skip
    one = ["T.abs(a)", "T.ceil(a)", "T.floor(a)", "T.trunc(a)", "T.round(a)", "T.nearbyint(a)", "T.sqrt(a)",
           "T.rsqrt(a)", "-a", "T.ldexp(a, 3)"]  # fmt: skip
    rows = [((t, t), t, e.format(t=t)) for e in both] + [((t,), t, e.format(t=t)) for e in one]
    rows += [((t, t), "bool", e) for e in ["a < b", "a == b", "a != b", "a >= b"]]
    rows += [((t,), "bool", f"T.{e}(a)") for e in ["isnan", "isinf", "isfinite"]]
    sweep(lathe_cli, tmp_path, rows)


@pytest.mark.parametrize("t", ["float32", "float64", "float16", "bfloat16"])
def test_functions_of_reals(lathe_cli, tmp_path, t):
    names = ("acos acosh asin asinh atan atanh cos cosh erf exp exp2 exp10 expm1 log log10 log1p log2 sigmoid sin sinh "
             "tan tanh").split()  # fmt: skip
    steep = "cosh sinh exp exp2 exp10 expm1 sin cos tan".split()
    held = f"T.max(T.min(a, T.{t}(4)), T.{t}(-4))"
    rows = [((t,), t, f"T.{name}({held if name in steep else 'a'})") for name in names]
    rows += [((t, t), t, f"T.{name}(a, b)") for name in ("atan2", "hypot")]
    rows += [((t, t), t, f"T.pow(T.min(T.abs(a), T.{t}(4)), T.max(T.min(b, T.{t}(4)), T.{t}(-4)))")]
    sweep(lathe_cli, tmp_path, rows, exact=False)


def test_conversions(lathe_cli, tmp_path):
    kinds = ("bool", *INTEGERS, *FLOATS, *NARROW)
    rows = [((a,), b, f"T.Cast('{b}', a)") for a in kinds for b in kinds if a != b]
    same_size = ["int32 float32", "float64 int64", "uint8 int8", "bfloat16 uint16", "float16 int16"]
    rows += [((a,), b, f"T.reinterpret('{b}', a)") for a, b in map(str.split, same_size)]
    sweep(lathe_cli, tmp_path, rows)


def test_bools(lathe_cli, tmp_path):
    both = ["a and b", "a or b", "a & b", "a | b", "a ^ b", "a == b", "a != b", "T.min(a, b)", "T.max(a, b)"]
    rows = [(("bool", "bool"), "bool", e) for e in both] + [(("bool",), "bool", e) for e in ["not a", "~a"]]
    rows += [(("bool",), "bool", "T.bitwise_not(T.bool(True))")]
    rows += [(("bool", "int32"), "int32", "T.if_then_else(a, b, 7)")]
    sweep(lathe_cli, tmp_path, rows)


def test_integers_of_fewer_than_eight_bits(lathe_cli, tmp_path):
    both = ["a + b", "a - b", "a * b", "a // b", "a % b", "T.min(a, b)", "a ^ b", "T.shift_left(a, b)",
            "T.shift_right(a, b)", "~a"]  # fmt: skip
    rows = [((t, t), t, e) for t in NARROW for e in both]
    sweep(lathe_cli, tmp_path, rows + [((t, t), "bool", "a < b") for t in NARROW])


VECTORS = """
@I.ir_module
class M:
    @T.prim_func
    def lanes(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "int32"), out: T.Buffer((64,), "float32")):
        for i in range(16):
            v: T.float32x4 = A[T.Ramp(i * 4, 1, 4)]
            w: T.int32x4 = B[T.Ramp(60 - i * 4, 1, 4)]
            x: T.float32x4 = T.Select(v > T.Broadcast(T.float32(0), 4), v * v, T.Cast("float32x4", w))
            out[T.Ramp(i * 4, 1, 4)] = x + T.Broadcast(T.float32(i), 4)
    @T.prim_func
    def masks(A: T.Buffer((64,), "int32"), out: T.Buffer((64,), "int32")):
        for i in range(16):
            out.vstore([T.Ramp(i * 4, 1, 4)], T.Broadcast(T.int32(0), 4))
            T.buffer_store(out, A.vload([T.Ramp(i * 4 + 1, 1, 4)], predicate=T.Ramp(i * 4, 1, 4) < T.Broadcast(63, 4)),
                           [T.Ramp(i * 4, 1, 4)], predicate=A[T.Ramp(i * 4, 1, 4)] > T.Broadcast(0, 4))
    @T.prim_func
    def shuffled(A: T.Buffer((64,), "int8"), S: T.Buffer((16,), "int8"), out: T.Buffer((16,), "int32")):
        for i in range(16):
            v: T.int8x4 = A[T.Ramp(i * 4, 1, 4)]
            S[i] = T.vector_reduce_add(v) + T.vector_reduce_max(v)
            out[i] = T.reinterpret("int32", T.Shuffle([v, v + T.Broadcast(T.int8(100), 4)], [7, 0, 5, 2]))
    @T.prim_func
    def wide(out: T.Buffer((8,), "int32")):
        out[T.Ramp(0, 1, 8)] = T.Ramp(T.int32(2147483640), 3, 8) * T.Broadcast(T.int32(7), 8)
"""
LAYOUTS = """
@I.ir_module
class M:
    @T.prim_func
    def two_ways(A: T.Buffer((6, 5), "float32"), out: T.Buffer((6, 5), "float32")):
        memory = T.allocate([64], "float32", "global")
        wide = T.decl_buffer((6, 5), "float32", data=memory, strides=(9, 1), elem_offset=2)
        turned = T.decl_buffer((5, 6), "float32", data=memory, strides=(1, 9), elem_offset=2)
        for i, j in T.grid(6, 5):
            wide[i, j] = A[i, j] * T.float32(3)
        for j, i in T.grid(5, 6):
            out[i, j] = turned[j, i]
    @T.prim_func
    def bits(A: T.Buffer((12,), "float32"), out: T.Buffer((12,), "int32")):
        other = T.decl_buffer((12,), "int32", data=A.data)
        for i in range(12):
            out[i] = other[i]
    @T.prim_func
    def rows_apart(A: T.Buffer((6, 5), "int32"), out: T.Buffer((6, 5), "int32")):
        apart = T.alloc_buffer((6, 5), "int32", strides=(8, 1))
        for i, j in T.grid(6, 5):
            with T.block("in"):
                vi, vj = T.axis.remap("SS", [i, j])
                apart[vi, vj] = A[vi, vj] + T.Cast("int32", vi * vj)
        for i, j in T.grid(6, 5):
            with T.block("out"):
                vi, vj = T.axis.remap("SS", [i, j])
                out[vi, vj] = apart[vi, vj]
    @T.prim_func
    def views(A: T.Buffer((6, 5), "int32"), out: T.Buffer((6, 5), "int32")):
        for i, j in T.grid(3, 5):
            with T.block("view"):
                vi, vj = T.axis.remap("SS", [i, j])
                s = T.int64()
                o = T.int64()
                a = T.match_buffer(A[vi * 2 : vi * 2 + 2, vj], (2, 1), "int32", strides=[s, 1], elem_offset=o)
                c = T.match_buffer(out[vi * 2, vj], (), "int32")
                c[()] = a[1, 0]
                out[vi * 2 + 1, vj] = T.Cast("int32", s * 1000 + o)
    @T.prim_func
    def add_row(x: T.Buffer((5,), "int32"), n: T.int32, y: T.Buffer((5,), "int32")):
        for j in range(5):
            y[j] = x[j] * n + y[j]
    @T.prim_func
    def scaled(x: T.handle, y: T.handle):
        n = T.int64()
        m = T.int64()
        X = T.match_buffer(x, (n, m), "int32")
        Y = T.match_buffer(y, (n, m), "int32")
        for i, j in T.grid(n, m):
            Y[i, j] = X[i, j] * T.Cast("int32", m * n)
    @T.prim_func
    def calls(A: T.Buffer((6, 5), "int32"), out: T.Buffer((6, 5), "int32")):
        cls.scaled(A, out)
        for i in range(6):
            cls.add_row(T.address_of(A[i, 0]), T.Cast("int32", i + 3), T.address_of(out[5 - i, 0]))
    @T.prim_func
    def constants(out: T.Buffer((4,), "float32")):
        data = T.allocate_const([1.5, -0.0, 3.25, 1e30], "float32", [4])
        C = T.decl_buffer((4,), "float32", data=data)
        for i in range(4):
            out[i] = C[3 - i]
    @T.prim_func
    def numbers(n: T.int32, x: T.float32, on: T.bool, out: T.Buffer((4,), "float32")):
        for i in range(4):
            out[i] = T.if_then_else(on, T.Cast("float32", n * 70000 * (i + 1)) * x, x)
"""


def integers(*shape):
    return np.random.default_rng(5).integers(-50, 50, shape).astype(np.int32)


def reals(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def test_vectors(lathe_cli, tmp_path):
    signed = integers(64).astype(np.int8)
    calls = {"lanes": [reals(64), integers(64), np.zeros(64, np.float32)],
             "masks": [integers(64), np.zeros(64, np.int32)],
             "shuffled": [signed, np.zeros(16, np.int8), np.zeros(16, np.int32)],
             "wide": [np.zeros(8, np.int32)]}  # fmt: skip
    check(lathe_cli, tmp_path, VECTORS, calls)


def test_layouts_and_calls(lathe_cli, tmp_path):
    out = np.zeros((6, 5), np.int32)
    calls = {"two_ways": [reals(6, 5), np.zeros((6, 5), np.float32)], "bits": [reals(12), np.zeros(12, np.int32)],
             "rows_apart": [integers(6, 5), out], "views": [integers(6, 5), out], "calls": [integers(6, 5), out],
             "constants": [np.zeros(4, np.float32)],
             "numbers": [40000, 0.3, True, np.zeros(4, np.float32)]}  # fmt: skip
    check(lathe_cli, tmp_path, LAYOUTS, calls)


# The passes from a schedule of the rules to what code is generated for.
LOWERING = ("schedule_functions skip_zeros lower_loop_exits inline_calls compact_buffers lower_init convert_blocks "
            "flatten_buffers join_axis_groups simplify partition_loops simplify_partitions vectorize_loops "
            "unroll_loops simplify_vectors legalize_registers lower_intrinsics legalize_dtypes "
            "nest_parallel").split()  # fmt: skip


def derived(name):
    from lathe import te, topi

    a, b = te.placeholder((7, 19), "float32", "a"), te.placeholder((19, 33), "float32", "b")
    image, weights = te.placeholder((1, 3, 9, 11), "float32", "x"), te.placeholder((8, 3, 3, 3), "float32", "w")
    tensors = {"product": [a, b, topi.nn.relu(topi.nn.matmul(a, b))], "sums": [a, topi.sum(a, 1)],
               "convolution": [image, weights, topi.nn.conv2d(image, weights, 1, 1, 1)],
               "turned": [b, topi.transpose(b)], "pool": [image, topi.nn.pool2d(image, (3, 3), (2, 2), (1, 1),
                                                                               (1, 1, 1, 1), "max")]}[name]  # fmt: skip
    arrays = [reals(*(int(e) for e in t.shape)) for t in tensors]
    return te.create_prim_func(tensors), arrays


@pytest.mark.parametrize("name", ["product", "sums", "convolution", "turned", "pool"])
@pytest.mark.parametrize("passes", [LOWERING[:1], LOWERING])
def test_scheduled_and_lowered_functions(lathe_cli, tmp_path, name, passes):
    function, arrays = derived(name)
    (tmp_path / "source.py").write_text(lathe.IRModule({"main": function}).script())
    text = lathe_cli("opt", tmp_path / "source.py", "--passes", ",".join(passes)).out
    if passes == LOWERING:
        arrays = [a.reshape(-1) for a in arrays]
    check(lathe_cli, tmp_path, text, {"main": arrays})
