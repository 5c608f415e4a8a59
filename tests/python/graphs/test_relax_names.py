"""Every name of R that the text of a graph function knows, run, against NumPy."""

import math

import numpy as np
import pytest

import lathe
from lathe.script import ir as I
from lathe.script import relax as R
from lathe.script import tir as T  # noqa: F401 - for texts

rng = np.random.default_rng(5)
X = rng.uniform(0.1, 0.9, (3, 4)).astype("float32")
Y = rng.uniform(-3, 3, (3, 4)).astype("float32")
V = rng.uniform(0.5, 1.5, 4).astype("float32")
I32, J32 = rng.integers(0, 3, (3, 4)).astype("int32"), rng.integers(1, 3, (3, 4)).astype("int32")
P = Y > 0
ERF = np.vectorize(math.erf)


def normalized(values, axis):
    return (values - values.mean(axis, keepdims=True)) / np.sqrt(values.var(axis, keepdims=True) + 1e-5)


def softmax(values):
    powers = np.exp(values - values.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


# What is written in the function (x in (0, 1), y, and v: floats; i in 0 to 2, j in 1 to 2; p: bool), and what comes.
EXPRESSIONS = {
    "R.abs(y)": np.abs(Y), "R.acos(x)": np.arccos(X), "R.acosh(R.add(x, v))": np.arccosh(np.maximum(X + V, 1)),
    "R.asin(x)": np.arcsin(X), "R.asinh(y)": np.arcsinh(Y), "R.atan(y)": np.arctan(Y), "R.atanh(x)": np.arctanh(X),
    "R.ceil(y)": np.ceil(Y), "R.cos(y)": np.cos(Y), "R.cosh(y)": np.cosh(Y), "R.erf(y)": ERF(Y), "R.exp(y)": np.exp(Y),
    "R.floor(y)": np.floor(Y), "R.log(x)": np.log(X), "R.negative(y)": -Y, "R.round(y)": np.rint(Y),
    "R.rsqrt(x)": 1 / np.sqrt(X), "R.sigmoid(y)": 1 / (1 + np.exp(-Y)), "R.sign(y)": np.sign(Y), "R.sin(y)": np.sin(Y),
    "R.sinh(y)": np.sinh(Y), "R.sqrt(x)": np.sqrt(X), "R.tan(x)": np.tan(X), "R.tanh(y)": np.tanh(Y),
    "R.isfinite(y)": np.isfinite(Y), "R.isinf(y)": np.isinf(Y), "R.isnan(y)": np.isnan(Y),
    "R.bitwise_not(i)": ~I32, "R.logical_not(p)": ~P,
    "R.add(x, y)": X + Y, "R.subtract(x, y)": X - Y, "R.multiply(x, v)": X * V, "R.divide(y, x)": Y / X,
    "R.mod(y, x)": np.fmod(Y, X), "R.floor_mod(y, x)": np.mod(Y, X), "R.power(x, y)": X**Y,
    "R.maximum(x, y)": np.maximum(X, Y), "R.minimum(x, y)": np.minimum(X, Y), "R.equal(i, j)": I32 == J32,
    "R.not_equal(i, j)": I32 != J32, "R.greater(x, y)": X > Y, "R.greater_equal(i, j)": I32 >= J32,
    "R.less(x, y)": X < Y, "R.less_equal(i, j)": I32 <= J32, "R.logical_and(p, R.less(i, j))": P & (I32 < J32),
    "R.logical_or(p, R.less(i, j))": P | (I32 < J32), "R.logical_xor(p, R.less(i, j))": P ^ (I32 < J32),
    "R.bitwise_and(i, j)": I32 & J32, "R.bitwise_or(i, j)": I32 | J32, "R.bitwise_xor(i, j)": I32 ^ J32,
    "R.left_shift(i, j)": I32 << J32, "R.right_shift(i, j)": I32 >> J32,
    "R.matmul(x, R.permute_dims(y, axes=[1, 0]))": X @ Y.T,
    "R.sum(x, axis=[1], keepdims=False)": X.sum(1), "R.mean(x, axis=[0], keepdims=True)": X.mean(0, keepdims=True),
    "R.max(y, axis=[1], keepdims=False)": Y.max(1), "R.min(y, axis=[1], keepdims=False)": Y.min(1),
    "R.prod(x, axis=[1], keepdims=False)": X.prod(1), "R.argmax(y, axis=1, keepdims=False)": Y.argmax(1),
    "R.argmin(y, axis=1, keepdims=False)": Y.argmin(1), 'R.astype(y, dtype="int32")': np.trunc(Y),
    "R.broadcast_to(v, R.shape([3, 4]))": np.broadcast_to(V, (3, 4)),
    "R.concat((x, y), axis=0)": np.concatenate([X, Y]),
    "R.expand_dims(x, axis=[0])": X[None], "R.reshape(x, R.shape([4, 3]))": X.reshape(4, 3),
    "R.squeeze(R.expand_dims(x, axis=[1]), axis=[1])": X, "R.take(v, i, axis=0)": V[I32],
    "R.tile(x, repeats=[2, 1])": np.tile(X, (2, 1)), "R.where(p, x, y)": np.where(P, X, Y),
    'R.full(R.shape([2, 2]), R.const(1.5, "float32"))': np.full((2, 2), 1.5), "R.emit(R.add(x, x))": X + X,
    'R.clip(y, R.const(-1.0, "float32"), R.const(1.0, "float32"))': np.clip(Y, -1, 1),
    "R.strided_slice(x, axes=[1], begin=[1], end=[3])": X[:, 1:3],
    'R.nn.pad(x, R.shape([0, 1]), R.shape([0, 2]), R.const(7.0, "float32"))':
        np.pad(X, ((0, 0), (1, 2)), constant_values=7),
    "R.nn.batch_norm(y, v, v, v, v, axis=1, training=False)[0]": (Y - V) / np.sqrt(V + 1e-5) * V + V,
    "R.shape_to_tensor(R.shape_of(x))": np.array([3, 4]), "R.reshape(x, R.ShapeExpr([2, 6]))": X.reshape(2, 6),
    "R.nn.relu(y)": np.maximum(Y, 0), "R.nn.silu(y)": Y / (1 + np.exp(-Y)), "R.nn.softmax(y, axis=-1)": softmax(Y),
    "R.nn.log_softmax(y, axis=-1)": np.log(softmax(Y)), "R.nn.softplus(y)": np.log1p(np.exp(Y)),
    "R.nn.gelu(y)": Y * (1 + ERF(Y / np.sqrt(2))) / 2,
    "R.nn.gelu_tanh(y)": Y * (1 + np.tanh(np.sqrt(2 / np.pi) * (Y + 0.044715 * Y**3))) / 2,
    "R.nn.leakyrelu(y, alpha=0.1)": np.where(Y > 0, Y, Y * 0.1), "R.nn.prelu(y, v)": np.where(Y > 0, Y, Y * V),
    "R.nn.selu(y)": 1.0507009873 * np.where(Y > 0, Y, 1.6732632423 * (np.exp(Y) - 1)),
    "R.nn.layer_norm(y, v, v, axes=[-1])": normalized(Y, -1) * V + V,
}  # fmt: skip

HEAD = '''
@R.function
def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32"), v: R.Tensor((4,), "float32"),
         i: R.Tensor((3, 4), "int32"), j: R.Tensor((3, 4), "int32"), p: R.Tensor((3, 4), "bool")):
'''


def run(body):
    function = lathe.script.from_source(HEAD + body)
    return lathe.compile(lathe.IRModule({"main": function}), target="interp")(X, Y, V, I32, J32, P)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_operators(expression):
    with np.errstate(all="ignore"):
        wanted = EXPRESSIONS[expression]
    got = run(f"    z = {expression}\n    return z\n")
    assert got.shape == np.shape(wanted)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5, equal_nan="acosh" in expression)


PROGRAMS = {
    "R.split": ("    z = R.split(x, sizes=[1, 3], axis=1)\n    return z\n", (X[:, :1], X[:, 1:])),
    "R.TupleGetItem": (
        "    t = R.tuple(x, R.add(x, y))\n    z = R.TupleGetItem(t, 1)\n    return (z, R.TupleGetItem(t, index=0))\n",
        (X + Y, X),
    ),
    "R.emit_match_cast": (
        "    n = T.int64()\n    t = R.shape_to_tensor(R.shape_of(x))\n"
        "    s = R.emit_match_cast(R.tensor_to_shape(t), R.Shape([n, 4]))\n"
        "    z = R.reshape(y, R.shape([4, n]))\n    return (z, x)\n",
        (Y.reshape(4, 3), X),
    ),
    "R.tuple": ("    z = R.tuple(x, R.add(x, y))\n    return z\n", (X, X + Y)),
    "R.dataflow": (
        "    with R.dataflow():\n        a = R.add(x, y)\n        b = R.add(a, a)\n        R.output(b)\n"
        "    return (b, x)\n",
        (2 * (X + Y), X),
    ),
    "R.match_cast": (
        "    n = T.int64()\n    s = R.tensor_to_shape(R.shape_to_tensor(R.shape_of(x)))\n"
        "    t = R.match_cast(s, R.Shape([n, 4]))\n    z = R.reshape(y, R.shape([n * 2, 2]))\n    return (z, x)\n",
        (Y.reshape(6, 2), X),
    ),
    "R.assert_op": (
        "    n = T.int64()\n    s = R.match_cast(R.tensor_to_shape(R.shape_to_tensor(R.shape([3]))), R.Shape([n]))\n"
        '    c = R.assert_op(n < 4, R.shape([n]), format="{} is not less than 4")\n    return (x, x)\n',
        (X, X),
    ),
    "R.func_attr": (
        '    R.func_attr({"num_input": 1})\n    z = (x, R.prim_value(3))\n    return z\n',
        (X, np.array(3)),
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program):
    text, wanted = PROGRAMS[program]
    got = run(text)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(np.squeeze(one), np.squeeze(other), rtol=1e-6)


CALLS = [
    'R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4,), "float32"))',
    'R.call_dps_packed("double", (x,), out_sinfo=R.Tensor((4,), "float32"))',
]


@pytest.mark.parametrize("call", CALLS)
def test_calls_of_tensor_functions(call):
    text = f'''
@I.ir_module
class Module:
    @T.prim_func
    def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                B[v] = A[v] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = {call}
        return y
'''
    np.testing.assert_allclose(lathe.compile(lathe.script.from_source(text), target="interp")(V), V * 2)


UPDATES = """
@I.ir_module
class Module:
    @T.prim_func
    def run(A: T.Buffer((4,), "float32"), S: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("S"):
                v = T.axis.spatial(4, i)
                S[v] = S[v] + A[v]
        for i in range(4):
            with T.block("B"):
                v = T.axis.spatial(4, i)
                B[v] = S[v] * T.float32(2)

    @T.prim_func
    def fill(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("A"):
                v = T.axis.spatial(4, i)
                A[v] = T.float32(1)

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Module
        fresh = R.builtin.alloc_tensor(R.shape([4]), dtype="float32", runtime_device_index=0)
        ones = R.call_tir_inplace(cls.fill, (fresh,), [0], R.Tensor((4,), "float32"))
        lv = R.call_tir_inplace(cls.run, (x, ones), inplace_indices=[1, -1],
                                out_sinfo=[R.Tensor((4,), "float32"), R.Tensor((4,), "float32")])
        lv1 = R.call_tir_inplace(cls.run, (x, x), [1, -1], [R.Tensor((4,), "float32"), R.Tensor((4,), "float32")])
        return (lv[0], lv[1], lv1[0], x)
"""


@pytest.mark.parametrize("options", [{"target": "interp"}, {}])
def test_calls_in_place(options):
    module = lathe.script.from_source(UPDATES)
    lathe.ir.assert_structural_equal(lathe.script.from_source(module.script()), module)
    given = V.copy()
    total, doubled, twice, same = lathe.compile(module, **options)(given)
    np.testing.assert_array_equal(total, V + 1)
    np.testing.assert_array_equal(doubled, 2 * (V + 1))
    # The caller's tensor is updated in a copy.
    np.testing.assert_array_equal(twice, 2 * V)
    np.testing.assert_array_equal(same, V)
    np.testing.assert_array_equal(given, V)


@pytest.mark.parametrize(
    "value, printed",
    [
        ('R.str("a word")', '"a word"'), ('R.dtype("float16")', 'R.dtype("float16")'),
        ('R.ExternFunc("there")', 'R.ExternFunc("there")'),
        ('R.call_pure_packed("there", x, sinfo_args=R.Tensor((3, 4), "float32"))', 'R.call_packed("there", x, '),
        ('R.call_packed("there", x, sinfo_args=R.Tensor((3, 4), "float32"))', 'R.call_packed("there", x, '),
    ],
)  # fmt: skip
def test_values_that_only_a_text_has(value, printed):
    function = lathe.script.from_source(HEAD + f"    z = {value}\n    return x\n")
    assert printed in function.script()
    lathe.ir.assert_structural_equal(lathe.script.from_source(function.script()), function)


@I.ir_module
class Written:
    @R.function
    def main(x: R.Tensor((4,), "float32"), s: R.Shape([4]), n: R.Prim("int64"), t: R.Tuple(R.Tensor, R.Object),
             f: R.Callable([R.Tensor], R.Tensor, True)) -> R.Tensor((4,), "float32"):  # fmt: skip
        y = R.add(x, x)
        return y


@R.function
def alone(x: R.Tensor((4,), "float32")):
    y = R.exp(x)
    return y


def test_functions_of_a_file():
    for kind in ("R.Shape([4])", 'R.Prim("int64")', "R.Tuple(", "R.Object", "R.Callable("):
        assert kind in Written.script()
    compiled = lathe.compile(lathe.IRModule({"main": alone}), target="interp")
    np.testing.assert_allclose(compiled(V), np.exp(V), rtol=1e-6)


@pytest.mark.parametrize("name, near", [("matmull", "matmul"), ("nn.rely", "nn.relu"), ("Emit", "emit")])
def test_a_name_that_is_not_there_gives_the_nearest(name, near):
    with pytest.raises(lathe.errors.ScriptError, match=f"there is no operator '{name}'") as caught:
        lathe.script.from_source(HEAD + f"    z = R.{name}(x)\n    return z\n")
    assert f"the nearest name is R.{near}" in str(caught.value)
