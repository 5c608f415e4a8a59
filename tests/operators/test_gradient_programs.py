"""Gradients by name: the pass of the vocabulary, and a model with its gradients as one program."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import lathe

X = np.array([1.0, -2.0, 0.5], np.float32)
W = np.array([0.5, 2.0, -1.0], np.float32)

TEXT = '''
from lathe.script import ir as I
from lathe.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3,), "float32"), w: R.Tensor((3,), "float32")) -> R.Tensor((), "float32"):
        with R.dataflow():
            p = R.multiply(x, w)
            s = R.sum(R.multiply(p, w))
            R.output(s)
        return s
'''


def module():
    return lathe.script.from_source(TEXT)


def model():
    nodes = [helper.make_node("Mul", ["x", "w"], ["p"]), helper.make_node("ReduceSum", ["p"], ["loss"], keepdims=0)]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xw"]
    outputs = [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])]
    outputs += [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n"])]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_the_pass_adds_a_function_beside_the_first():
    both = lathe.relax.transform.Gradient("main")(module())
    assert "def main_adjoint(" in str(both) and "def main(" in str(both)
    only = lathe.relax.transform.Gradient("main", require_grads="w", target_index=0)(module())
    assert "R.Tuple(R.Tensor((), dtype=\"float32\"), R.Tuple(R.Tensor((3,), dtype=\"float32\")))" in str(only)


def test_a_program_gives_its_results_and_then_gradients():
    loss, dx, dw = lathe.compile(lathe.relax.gradient(module()))(X, W)
    np.testing.assert_allclose(loss, (X * W * W).sum(), rtol=1e-6)
    np.testing.assert_allclose(dx, W * W, rtol=1e-6)
    np.testing.assert_allclose(dw, 2 * X * W, rtol=1e-6)


def test_a_model_file_is_taken_and_symbols_stay():
    exe = lathe.compile(lathe.relax.gradient(model(), ["w"]))
    for n in (3, 1, 0):
        loss, p, dw = exe(X[:n], W[:n])
        np.testing.assert_allclose(dw, X[:n])
        np.testing.assert_allclose(p, X[:n] * W[:n])


def recurrent_model():
    body = onnx.parser.parse_graph("""b (float[k] h, float[k] a) => (float[k] n, float[k] o) {
        p = Mul(h, w)
        n = Add(p, a)
        o = Mul(n, n)
    }""")
    nodes = [
        helper.make_node("Scan", ["h", "a"], ["n", "o"], body=body, num_scan_inputs=1),
        helper.make_node("ReduceSum", ["n"], ["last"], keepdims=0),
        helper.make_node("ReduceSum", ["o"], ["squares"], keepdims=0),
        helper.make_node("Add", ["last", "squares"], ["loss"]),
    ]
    shapes = {"h": ["k"], "a": ["t", "k"], "w": ["k"]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("target", ["native", "interp"])
def test_loops_of_any_length_have_gradients(target):
    exe = lathe.compile(lathe.relax.gradient(recurrent_model()), target)
    for turns, extent in ((3, 2), (1, 3), (5, 1), (0, 2), (2, 0)):
        rng = np.random.default_rng(turns)
        h, a, w = (rng.normal(size=shape).astype(np.float32) for shape in (extent, (turns, extent), extent))
        states = [h]
        for part in a:
            states.append(states[-1] * w + part)
        adjoint, of_a, of_w = np.ones_like(h), np.zeros_like(a), np.zeros_like(w)
        for turn in reversed(range(turns)):
            of_a[turn] = adjoint + 2 * states[turn + 1]
            of_w += of_a[turn] * states[turn]
            adjoint = of_a[turn] * w
        found = exe(h, a, w)
        np.testing.assert_allclose(found[0], states[-1].sum() + sum((s * s).sum() for s in states[1:]), rtol=1e-4)
        for ours, expected in zip(found[1:], (adjoint, of_a, of_w), strict=True):
            np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def test_the_interpreters_agree():
    program = lathe.relax.gradient(module())
    for ours, theirs in zip(lathe.compile(program)(X, W), lathe.compile(program, "interp")(X, W), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_wrong_requests_are_told():
    with pytest.raises(lathe.CompileError, match="'main' has no parameter 'z'"):
        lathe.relax.gradient(module(), ["z"])
    with pytest.raises(lathe.CompileError, match="is float32\\[n\\], not a scalar tensor of floats"):
        lathe.relax.gradient(model(), target=1)
    with pytest.raises(AttributeError, match="the nearest name is lathe.relax.transform.Gradient"):
        lathe.relax.transform.Gradients  # noqa: B018
    assert onnx.checker.check_model(model()) is None
