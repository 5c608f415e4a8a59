"""Operators whose sizes only the run knows, beside ONNX Runtime at many sizes: what the schedule rules choose for such
kernels must be right for rests of every length, one element and none."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import lathe

SIZES = (0, 1, 2, 7, 8, 9, 28, 33)


def model(node, shape, constants, opset=20):
    """One node from x, of `shape`, and constants; its result is y."""
    names = ["x", *constants]
    operator, attributes = node
    inputs = attributes.pop("inputs", names)
    dtype = attributes.pop("result", TensorProto.FLOAT)
    graph = helper.make_graph(
        [helper.make_node(operator, inputs, ["y"], **attributes)],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", dtype, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    del made.graph.output[0].type.tensor_type.shape.dim[:]
    return onnx.shape_inference.infer_shapes(made)


def weights(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def axes(*values):
    return {"axes": np.array(values, np.int64)}


PADS = np.array([0, 0, 2, 1, 0, 0, 1, 3], np.int64)
IMAGE, ROWS = [2, 12, "h", "w"], [3, "n", 20]
CASES = {
    "transposed 2x2": (("ConvTranspose", {"strides": [2, 2]}), IMAGE, {"k": weights(12, 5, 2, 2)}),
    "transposed 3x3": (("ConvTranspose", {"strides": [2, 2], "pads": [1] * 4}), IMAGE, {"k": weights(12, 9, 3, 3)}),
    "transposed 3x3, padded behind": (
        ("ConvTranspose", {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
        IMAGE,
        {"k": weights(12, 9, 3, 3)},
    ),
    "transposed 5x4 of stride 3 and 2": (
        ("ConvTranspose", {"strides": [3, 2], "pads": [2, 1, 1, 1]}),
        IMAGE,
        {"k": weights(12, 3, 5, 4)},
    ),
    "channels last": (("Transpose", {"perm": [0, 2, 3, 1]}), IMAGE, {}),
    "channels first": (("Transpose", {"perm": [0, 3, 1, 2]}), [2, "h", "w", 12], {}),
    "few channels first": (("Transpose", {"perm": [0, 3, 1, 2]}), [2, "h", "w", 3], {}),
    "turned": (("Transpose", {"perm": [2, 1, 0]}), ["h", 3, "w"], {}),
    "space to depth": (("SpaceToDepth", {"blocksize": 2}), [1, 3, "2h", "2w"], {}),
    "depth to space": (("DepthToSpace", {"blocksize": 2}), IMAGE, {}),
    "sum in the middle": (("ReduceSum", {"keepdims": 0}), ROWS, axes(1)),
    "sum of planes": (("ReduceSum", {"keepdims": 0}), IMAGE, axes(2, 3)),
    "maximum in the middle": (("ReduceMax", {"keepdims": 0}), ROWS, axes(1)),
    "product in the middle": (("ReduceProd", {"keepdims": 1}), ROWS, axes(1)),
    "logarithm of exponentials": (("ReduceLogSumExp", {"keepdims": 0}), ROWS, axes(1)),
    "least of all": (("ArgMin", {"axis": 1, "result": TensorProto.INT64}), ROWS, {}),
    "mean of planes": (("GlobalAveragePool", {}), IMAGE, {}),
    "maximum of planes": (("GlobalMaxPool", {}), IMAGE, {}),
    "logarithm of softmax": (("LogSoftmax", {"axis": 1}), ROWS, {}),
    "mean without padding": (
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 0}),
        IMAGE,
        {},
    ),
    "lower triangle": (("Trilu", {"upper": 0}), [2, "h", "w"], {}),
    "softmax": (("Softmax", {"axis": -1}), [12, "n"], {}),
    "sum of rows": (("ReduceSum", {"keepdims": 0}), [12, "n"], axes(1)),
    "largest of rows": (("ReduceMax", {"keepdims": 0}), [12, "n"], axes(1)),
    "instances": (("InstanceNormalization", {}), IMAGE, {"scale": weights(12), "bias": weights(12)}),
    "padded by edges": (("Pad", {"mode": "edge"}), IMAGE, {"pads": PADS}),
    "padded around": (("Pad", {"mode": "wrap"}), IMAGE, {"pads": PADS}),
    "padded by reflection": (("Pad", {"mode": "reflect"}), IMAGE, {"pads": PADS}),
    "running sums": (("CumSum", {}), ["n", 70], {"axis": np.array(0)}),
}
LEAST = {"padded by reflection": 4, "padded around": 3, "padded by edges": 1}  # what ONNX Runtime takes


def sizes_of(shape, size, other):
    named = {"h": size, "w": other, "n": size, "2h": 2 * size, "2w": 2 * other}
    return [named.get(extent, extent) for extent in shape]


@pytest.mark.parametrize("name", CASES)
def test_is_what_onnx_runtime_computes(name, tmp_path):
    (operator, attributes), shape, constants = CASES[name]
    made = model((operator, dict(attributes)), shape, constants)
    executable = lathe.compile(made)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    ran = 0
    sizes = [size for size in SIZES if size >= LEAST.get(name, 0)]
    for size in sizes:
        for other in {size, 5, 16} if "w" in shape or "2w" in shape else {size}:
            x = np.random.default_rng(size).standard_normal(sizes_of(shape, size, other)).astype(np.float32)
            try:
                expected = session.run(None, {"x": x})[0]
            except Exception:  # ONNX Runtime refuses most operators on nothing
                assert 0 in x.shape, (size, other)
                continue
            np.testing.assert_allclose(np.asarray(executable(x)), expected, rtol=2e-5, atol=2e-5, err_msg=f"{x.shape}")
            ran += 1
    assert ran >= len(sizes) - 1


# Windows have nothing to begin with in an image without lines: none is taken, unless it is said that some come.
def test_images_have_lines():
    made = model(("Conv", {"pads": [1] * 4}), IMAGE, {"k": weights(4, 12, 3, 3)})
    empty, line = np.zeros((2, 12, 0, 5), np.float32), np.zeros((2, 12, 1, 5), np.float32)
    executable = lathe.compile(made)
    assert executable(line).shape == (2, 4, 1, 5)
    with pytest.raises(lathe.errors.RunError, match="of the input 'x' is 0; it must be at least 1"):
        executable(empty)
    assert lathe.compile(made, dims={"h": "0.."})(empty).shape == (2, 4, 0, 5)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


BROADCASTS = {
    "sum": ([("Add", ["a", "b"])], lambda a, b, c: a + b),
    "choice": ([("Greater", ["a", "b"]), ("Where", ["0", "b", "c"])], lambda a, b, c: np.where(a > b, b, c)),
    "softmax of a sum": ([("Add", ["a", "b"]), ("Softmax", ["0"])], lambda a, b, c: softmax(a + b)),
    "mean of a product": (
        [("Mul", ["a", "b"]), ("Mul", ["0", "c"]), ("ReduceMean", ["1"])],
        lambda a, b, c: (a * b * c).mean(keepdims=True),
    ),
    "product": ([("Add", ["a", "b"]), ("Transpose", ["c"]), ("MatMul", ["0", "1"])], lambda a, b, c: (a + b) @ c.T),
}


@pytest.mark.parametrize("name", BROADCASTS)
def test_sizes_that_are_one_or_equal(name):
    nodes, reference = BROADCASTS[name]
    results = [*(str(i) for i in range(len(nodes) - 1)), "y"]
    graph = helper.make_graph(
        [helper.make_node(op, inputs, [out]) for (op, inputs), out in zip(nodes, results, strict=True)],
        "graph",
        [helper.make_tensor_value_info(k, TensorProto.FLOAT, [f"rows_{k}", f"columns_{k}"]) for k in "abc"],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    executable = lathe.compile(made)
    random = np.random.default_rng(3)
    for rows, columns in ((1, 1), (3, 8), (7, 33), (16, 100)):
        for ones in range(64):
            shapes = [[1 if ones >> 2 * k & 1 else rows, 1 if ones >> 2 * k & 2 else columns] for k in range(3)]
            if name == "product" and max(shapes[0][1], shapes[1][1]) != shapes[2][1]:
                continue
            given = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
            computed = np.asarray(executable(*given))
            np.testing.assert_allclose(computed, reference(*given), rtol=2e-5, atol=2e-5, err_msg=str(shapes))


SPECTRA = {
    "of complex numbers": ({}, 2, np.fft.fft),
    "half of it, of real ones": ({"onesided": 1}, 1, lambda z, axis: np.fft.rfft(z.real, axis=axis)),
    "back": ({"inverse": 1}, 2, np.fft.ifft),
}


# Against NumPy: ONNX Runtime is off by 1e-4 where a length is no power of two.
@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("axis", [1, 2])
def test_spectra(name, axis):
    attributes, parts, reference = SPECTRA[name]
    shape = [2, "n", 20, parts] if axis == 1 else [3, 2, "n", parts]
    node = ("DFT", {"inputs": ["x", "", "axis"], **attributes})
    executable = lathe.compile(model(node, shape, {"axis": np.array(axis, np.int64)}))
    for size in (1, 2, 7, 8, 33, 100):
        x = np.random.default_rng(size).standard_normal(sizes_of(shape, size, size)).astype(np.float32)
        z = reference(x[..., 0] + (1j * x[..., 1] if parts == 2 else 0), axis=axis)
        expected = np.stack([z.real, z.imag], -1)
        np.testing.assert_allclose(np.asarray(executable(x)), expected, rtol=2e-5, atol=2e-6 * size)
