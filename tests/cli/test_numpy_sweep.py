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
        return np.array(values[:count]).astype(object).astype(np.uint64 if low == 0 else np.int64).astype(t)
    values = rng.standard_normal(count) * 2.0 ** rng.integers(-12, 12, count)
    special = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, 1.0, -1.0, 3.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 2.0**31, 1e-40]
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
            "T.copysign(a, b)", "T.nextafter(a, b)", "T.fma(a, b, a)", "T.if_then_else(a < b, a, b)",
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
    rows = [((t,), t, f"T.{name}(a)" if name not in ("cosh", "sinh", "exp", "exp2", "exp10", "expm1", "sin", "cos", "tan")
             else f"T.{name}(T.max(T.min(a, T.{t}(4)), T.{t}(-4)))") for name in names]  # fmt: skip
    rows += [((t, t), t, f"T.{name}(a, b)") for name in ("atan2", "hypot")]
    rows += [((t, t), t, f"T.pow(T.min(T.abs(a), T.{t}(4)), T.max(T.min(b, T.{t}(4)), T.{t}(-4)))")]
    sweep(lathe_cli, tmp_path, rows, exact=False)


def test_conversions(lathe_cli, tmp_path):
    kinds = ("bool", *INTEGERS, *FLOATS, *NARROW)
    rows = [((a,), b, f"T.Cast('{b}', a)") for a in kinds for b in kinds if a != b]
    rows += [((a,), b, f"T.reinterpret('{b}', a)") for a, b in
             [("int32", "float32"), ("float64", "int64"), ("uint8", "int8"), ("bfloat16", "uint16"), ("float16", "int16")]]  # fmt: skip
    sweep(lathe_cli, tmp_path, rows)


def test_bools(lathe_cli, tmp_path):
    both = ["a and b", "a or b", "a & b", "a | b", "a ^ b", "a == b", "a != b", "T.min(a, b)", "T.max(a, b)"]
    rows = [(("bool", "bool"), "bool", e) for e in both] + [(("bool",), "bool", e) for e in ["not a", "~a"]]
    rows += [(("bool",), "bool", "T.bitwise_not(T.bool(True))")]
    rows += [(("bool", "int32"), "int32", "T.if_then_else(a, b, 7)")]
    sweep(lathe_cli, tmp_path, rows)
