"""A corpus of files from strangers, made by rows: name -> function that gives the file's bytes.

Many are legal models; what all have in common is that a reader which believes them reads past an end, allocates what no
machine has, divides by zero or never comes back.
"""

import functools
import itertools
import struct
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.hostile import files
from tests.operators import images

HUGE = (2**62, 2**40, 2**31, -1, -(2**63))
AXES = (2**63 - 1, -(2**63), 99, -99)


def graph(nodes, inputs, weights=(), outputs=("y",), opset=17):
    """`inputs`: name -> (dtype, shape)."""
    info = helper.make_tensor_value_info
    values = [info(n, helper.np_dtype_to_tensor_dtype(np.dtype(d)), s) for n, (d, s) in inputs.items()]
    made = helper.make_graph(
        nodes, "corpus", values, [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in dict(weights).items()],
    )  # fmt: skip
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    return model.SerializeToString()


def one(op, inputs, weights=(), outputs=("y",), opset=17, **attributes):
    """A model of one node that reads its inputs, then its weights."""
    names = [*inputs, *dict(weights)]
    return graph([helper.make_node(op, names, list(outputs), **attributes)], inputs, weights, outputs, opset)


X = {"x": (np.float32, [3, 4])}
IMAGE = {"x": (np.float32, [1, 2, 5, 5])}
BY_SIZE = {
    "ConstantOfShape": lambda n: one("ConstantOfShape", {}, {"s": np.array([n, 2])}),
    "ConstantOfShape of many": lambda n: one("ConstantOfShape", {}, {"s": np.array([n] * 6)}),
    "Expand": lambda n: one("Expand", {"x": (np.float32, [1, 4])}, {"s": np.array([n, 4])}),
    "Tile": lambda n: one("Tile", X, {"r": np.array([n, 3])}),
    "Range": lambda n: one("Range", {}, {"a": np.int64(0), "b": np.int64(n), "c": np.int64(1)}),
    "Range by a millionth": lambda n: one(
        "Range", {}, {"a": np.float64(0), "b": np.float64(n), "c": np.float64(1e-6)}
    ),
    "Pad": lambda n: one("Pad", X, {"p": np.array([0, n, 0, 0])}),
    "OneHot": lambda n: one(
        "OneHot", {"x": (np.int64, [3])}, {"d": np.array(n), "v": np.array([0, 1], np.float32)}
    ),
    "Reshape": lambda n: one("Reshape", X, {"s": np.array([n, 2])}),
    "TopK": lambda n: one("TopK", X, {"k": np.array([n])}, outputs=("y", "i")),
    "Split": lambda n: one("Split", X, {"s": np.array([n, 4 - n if n > 0 else 4])}, outputs=("y", "z"), axis=1),
    "Slice": lambda n: one("Slice", X, {"a": np.array([n]), "b": np.array([-n - 1 if n < 0 else -n])}),
    "Gather": lambda n: one("Gather", X, {"i": np.array([n])}),
    "EyeLike of much": lambda n: one(
        "EyeLike", {"x": (np.float32, [max(n, 1) % 2**62, 8])}, k=n % 2**62
    ),
    "Trilu": lambda n: one("Trilu", X, {"k": np.array(n)}),
    "CumSum": lambda n: one("CumSum", X, {"a": np.array(n)}),
    "Unsqueeze": lambda n: one("Unsqueeze", X, {"a": np.array([n, 0])}),
    "Resize": lambda n: one(
        "Resize", IMAGE, {"r": np.zeros(0, np.float32), "s": np.zeros(0, np.float32), "z": np.array([1, 2, n, n])}
    ),
    "HannWindow": lambda n: one("HannWindow", {}, {"n": np.array(n)}),
}  # fmt: skip
RESIZED = (1e30, 1e-30, 0.0, -1.0, float("nan"), float("inf"))
BY_SCALE = {
    mode: lambda s, mode=mode: one(
        "Resize", IMAGE, {"r": np.zeros(0, np.float32), "s": np.array([1, 1, s, s], np.float32)}, mode=mode
    )
    for mode in ("nearest", "linear", "cubic")
}
BY_AXIS = {
    **{op: lambda a, op=op: one(op, X, axis=a) for op in ("Softmax", "LogSoftmax", "Hardmax", "Flatten", "ArgMax")},
    "LayerNormalization": lambda a: one("LayerNormalization", X, {"w": np.ones(4, np.float32)}, axis=a),
    "Concat": lambda a: one("Concat", X, {"w": np.ones((3, 4), np.float32)}, axis=a),
    "Gather": lambda a: one("Gather", X, {"i": np.array([0])}, axis=a),
    "Split": lambda a: one("Split", X, {"s": np.array([2, 2])}, outputs=("y", "z"), axis=a),
    "ReduceSum": lambda a: one("ReduceSum", X, {"a": np.array([a])}),
    "ReduceMax": lambda a: one("ReduceMax", X, axes=[a]),
    "Squeeze": lambda a: one("Squeeze", X, {"a": np.array([a])}),
    "Transpose": lambda a: one("Transpose", X, perm=[a, 0]),
    "TopK": lambda a: one("TopK", X, {"k": np.array([1])}, outputs=("y", "i"), axis=a),
    "ScatterElements": lambda a: one(
        "ScatterElements", X, {"i": np.zeros((1, 1), np.int64), "u": np.zeros((1, 1), np.float32)}, axis=a
    ),
}
WINDOWS = {
    "kernels": {"kernel_shape": [2**31, 2**31]}, "no kernel": {"kernel_shape": [0, 0]},
    "negative kernel": {"kernel_shape": [-3, 3]}, "strides": {"kernel_shape": [2, 2], "strides": [0, 0]},
    "negative strides": {"kernel_shape": [2, 2], "strides": [-1, 1]},
    "pads": {"kernel_shape": [2, 2], "pads": [2**62] * 4}, "negative pads": {"kernel_shape": [2, 2], "pads": [-9] * 4},
    "few pads": {"kernel_shape": [2, 2], "pads": [1]}, "dilations": {"kernel_shape": [2, 2], "dilations": [2**62, 1]},
    "no dilations": {"kernel_shape": [2, 2], "dilations": [0, 0]},
}  # fmt: skip
WINDOWED = {
    "MaxPool": lambda a: one("MaxPool", IMAGE, **a),
    "AveragePool": lambda a: one("AveragePool", IMAGE, opset=19, **a),
    "Conv": lambda a: one("Conv", IMAGE, {"w": np.ones((1, 2, 2, 2), np.float32)}, **a),
    "ConvTranspose": lambda a: one("ConvTranspose", IMAGE, {"w": np.ones((2, 1, 2, 2), np.float32)}, **a),
}
LEAST = {np.dtype(d): np.iinfo(d).min for d in (np.int8, np.int32, np.int64)}


def arithmetic(op, dtype, a, b):
    """By constants, which are folded, and by an input, when it runs."""
    weights = {"a": np.array([a], dtype), "b": np.array([b], dtype)}
    nodes = [helper.make_node(op, ["a", "b"], ["y"]), helper.make_node(op, ["x", "b"], ["z"])]
    return graph(nodes, {"x": (dtype, [2])}, weights, ("y", "z"))


def loop(turns, opset=17):
    """A Loop that does little so many times."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["v", "v"], ["w"])], "body",
        [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("v", TensorProto.FLOAT, [2])],
        [info("d", TensorProto.BOOL, []), info("w", TensorProto.FLOAT, [2])],
    )  # fmt: skip
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)
    return graph([node], {"x": (np.float32, [2])}, {"n": np.array(turns)}, opset=opset)


def from_constants(kind):
    """Models whose costly part depends on constants alone, which the compiler computes where that takes little."""
    make = helper.make_node
    one_value = helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0])
    ones, size = np.ones((1, 1), np.float32), np.array([1 << 18], np.int64)
    nodes, weights = [], {}
    if kind == "a Loop without end":
        nodes = [make("Loop", ["", "t", "w"], ["r"], body=_adding_body())]
        weights = {"t": np.array(True), "w": np.ones(2, np.float32)}
    elif kind == "a product":
        nodes = [make("Expand", ["c", "s"], ["e"]), make("MatMul", ["e", "e"], ["r"])]
        weights = {"c": ones, "s": np.array([1 << 20, 1 << 20])}
    elif kind == "a sum":
        nodes = [make("Expand", ["c", "s"], ["e"]), make("ReduceSum", ["e"], ["r"], keepdims=0)]
        weights = {"c": ones, "s": np.array([1 << 20, 1 << 20])}
    elif kind == "an Einsum":
        nodes = [make("Einsum", ["c"] * 4, ["r"], equation="ab,bc,cd,da->")]
        weights = {"c": np.ones((700, 700), np.float32)}
    elif kind == "a window":
        joined = [make("Concat", ["c"] * 16, ["d"], axis=2)]
        nodes = [make("ConstantOfShape", ["s"], ["c"], value=one_value), *joined,
                 make("AveragePool", ["d"], ["r"], kernel_shape=[2 << 20])]  # fmt: skip
        weights = {"s": np.array([1, 1, 1 << 18])}
    elif kind == "values joined over and over":
        nodes = [make("ConstantOfShape", ["s"], ["v0"], value=one_value)]
        nodes += [make("Concat", [f"v{i}"] * 64, [f"v{i + 1}"], axis=0) for i in range(3)]
        nodes += [make("ReduceMax", ["v3"], ["r"], keepdims=0)]
        weights = {"s": size}
    elif kind == "many values":
        for i in range(200):
            value = helper.make_tensor("v", TensorProto.FLOAT, [1], [float(i)])
            nodes += [make("ConstantOfShape", ["s"], [f"c{i}"], value=value)]
        nodes += [make("Sum", [f"c{i}" for i in range(200)], ["r"])]
        weights = {"s": size}
    elif kind == "a recurrence":
        nodes = [make("Expand", ["c", "s"], ["e"]), make("RNN", ["e", "w", "w"], ["r"], hidden_size=1)]
        cube = np.ones((1, 1, 1), np.float32)
        weights = {"c": cube, "s": np.array([1 << 28, 1, 1]), "w": cube}
    else:
        nodes = [make("Resize", ["c", "", "", "s"], ["e"], mode="cubic"), make("ReduceSum", ["e"], ["r"], keepdims=0)]
        weights = {"c": np.ones((1, 1, 9, 9), np.float32), "s": np.array([1, 1, 1 << 20, 1 << 20])}
    return graph([*nodes, make("Relu", ["x"], ["y"])], X, weights, ("y", "r"))


def _adding_body():
    info = helper.make_tensor_value_info
    return helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["v", "v"], ["w2"])], "body",
        [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("v", TensorProto.FLOAT, [2])],
        [info("d", TensorProto.BOOL, []), info("w2", TensorProto.FLOAT, [2])],
    )  # fmt: skip


FROM_CONSTANTS = (
    "a Loop without end", "a product", "a sum", "an Einsum", "a window", "values joined over and over", "many values",
    "a recurrence", "a resize",
)  # fmt: skip


def calls_doubled(depth):
    """f0 is an operator; each function calls the one before it twice: 2^depth nodes."""
    functions = []
    for i in range(depth):
        op, domain = ("Neg", "") if i == 0 else (f"f{i - 1}", "own")
        nodes = [helper.make_node(op, ["a"], ["b"], domain=domain), helper.make_node(op, ["b"], ["c"], domain=domain)]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        functions.append(helper.make_function("own", f"f{i}", ["a"], ["c"], nodes, opsets))
    model = onnx.ModelProto.FromString(graph([helper.make_node(f"f{depth - 1}", ["x"], ["y"], domain="own")], X))
    model.opset_import.extend([helper.make_opsetid("own", 1)])
    model.functions.extend(functions)
    return model.SerializeToString()


def unused_initializers(count):
    model = onnx.ModelProto.FromString(one("Relu", X))
    for i in range(count):
        model.graph.initializer.add(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[1], raw_data=b"\0\0\0\0")
    return model.SerializeToString()


def chain(count):
    names = ["x", *(f"v{i}" for i in range(count - 1)), "y"]
    return graph([helper.make_node("Relu", [a], [b]) for a, b in itertools.pairwise(names)], X)


def many_fills(count, grows):
    """Fills of large values, each of another number and, where it grows, of another size; all are outputs."""
    nodes = []
    for i in range(count):
        value = helper.make_tensor("v", TensorProto.FLOAT, [1], [float(i)])
        size = f"s{i}" if grows else "s"
        nodes.append(helper.make_node("ConstantOfShape", [size], [f"y{i}"], value=value))
    sizes = {f"s{i}": np.array([(1 << 18) + i]) for i in range(count)} if grows else {"s": np.array([1 << 18])}
    return graph(nodes, {}, sizes, [f"y{i}" for i in range(count)])


FUNCTIONS = ("Relu", "Exp", "Tanh", "Sqrt", "Abs", "Neg", "Floor", "Sigmoid", "Softplus", "Erf")


def many_chains(count):
    """Chains of four element-wise functions and a sum, no two of them the same program."""
    nodes, weights = [], {}
    for i, chosen in zip(range(count), itertools.product(FUNCTIONS, repeat=4), strict=False):
        names = [f"x{i % 8}", *(f"v{i}_{k}" for k in range(4))]
        nodes += [helper.make_node(op, [a], [b]) for op, a, b in zip(chosen, names[:-1], names[1:], strict=True)]
        nodes.append(helper.make_node("Add", [names[-1], f"k{i}"], [f"y{i}"]))
        weights[f"k{i}"] = np.array(i + 0.5, np.float32)
    return graph(nodes, {f"x{j}": (np.float32, [3, 4 + j]) for j in range(8)}, weights, [f"y{i}" for i in range(count)])


def wide_sum(count):
    return graph([helper.make_node("Sum", ["x"] * count, ["y"])], X)


def named(name):
    """An input, a node and an output of this name."""
    return graph([helper.make_node("Relu", [name], [name + "_"], name=name)], {name: X["x"]}, outputs=(name + "_",))


def with_names(kind):
    """Names that two things share, or that are not there."""
    make = helper.make_node
    if kind == "nodes of one name":
        return graph([make("Relu", ["x"], ["a"], name="n"), make("Neg", ["a"], ["y"], name="n")], X)
    if kind == "an output without a name":
        return graph([make("TopK", ["x", "k"], ["", "y"])], X, {"k": np.array([1])})
    if kind == "an operand without a name":
        return graph([make("Add", ["x", ""], ["y"])], X)
    if kind == "an input without a name":
        return graph([make("Relu", [""], ["y"])], {"": X["x"]})
    return graph([make("Relu", ["x"], ["y"])], X, {"y": np.zeros((3, 4), np.float32)})


def with_text(position):
    """Strings where numbers belong."""
    model = onnx.ModelProto.FromString(one("Add", X, {"w": np.zeros((3, 4), np.float32)}))
    text = helper.make_tensor("w", TensorProto.STRING, [2], [b"a", b"b"])
    if position == "weight":
        model.graph.initializer[0].CopyFrom(text)
    elif position == "input":
        model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    else:
        text.name = ""
        model.graph.node[0].CopyFrom(helper.make_node("Constant", [], ["y"], value=text))
    return model.SerializeToString()


# Files of images that promise more than they hold: sizes, runs, palettes.
_SIDE = 2**31 - 1
IMAGES = {
    "BMP": b"BM" + struct.pack("<IHHIIiiHHIIiiII", 80, 0, 0, 54, 40, _SIDE, _SIDE, 1, 24, 0, 0, 0, 0, 0, 0),
    "BMP of runs": b"BM" + struct.pack("<IHHIIiiHHIIiiII", 9, 0, 0, 58, 40, 60000, -60000, 1, 8, 1, 0, 0, 0, 1, 0),
    "BMP upside down": b"BM" + struct.pack("<IHHIIiiHHIIiiII", 80, 0, 0, 2**32 - 1, 40, 1, -(2**31), 1, 1, 0, *[0] * 5),
    "PNG": images.PNG + images.chunk(b"IHDR", struct.pack(">IIBBBBB", 10**6, 10**6, 16, 6, 0, 0, 1)),
    "PNG of one color": images.PNG
    + images.chunk(b"IHDR", struct.pack(">IIBBBBB", 20000, 20000, 8, 2, 0, 0, 1))
    + images.chunk(b"IDAT", zlib.compress(bytes(1 << 26))),
    "JPEG": b"\xff\xd8\xff\xc2\0\x0b\x08\xff\xdc\xff\xdc\x01\x01\x22\0" + b"\xff\xda\0\x08\x01\x01\0\0\0\0" * 900,
    "TIFF": images.directory("<", {256: (4, [_SIDE]), 257: (4, [_SIDE]), 258: (3, [16]), 277: (3, [4])}, [b"x"], False),
    "TIFF of a tile": images.directory(
        ">", {256: (4, [9]), 257: (4, [9]), 262: (3, [1]), 322: (4, [2**30]), 323: (4, [2**30])}, [b"x"], True
    ),
    "PPM": b"P6 99999999 99999999 255 ",
    "PBM": b"P1 " + b"9" * 4000,
    "WebP": b"RIFF\xff\xff\xff\xffWEBPVP8X\x0a\0\0\0\x12\0\0\0" + b"\xff" * 6,
    "JPEG 2000": b"\xff\x4f\xff\x51" + struct.pack(">HHIIIIIIIIH", 41, 0, *[_SIDE, _SIDE, 0, 0] * 2, 1) + b"\x07\1\1",
    "JPEG 2000 of tiles": b"\xff\x4f\xff\x51"
    + struct.pack(">HHIIIIIIIIH", 41, 0, 60000, 60000, 0, 0, 1, 1, 0, 0, 1) + b"\x07\1\1",
}  # fmt: skip


def image(name):
    return one("ImageDecoder", {}, {"x": np.frombuffer(IMAGES[name], np.uint8)}, opset=20)


def special_constants(op, value):
    x = np.full((3, 4), value, np.float32)
    return graph([helper.make_node(op, ["a", "b"], ["y"])], {}, {"a": x, "b": x})


def cast_of(value, to):
    return graph([helper.make_node("Cast", ["a"], ["y"], to=to)], {}, {"a": np.full(5, value, np.float32)})


def damaged(kind, index):
    good = [*files.good_files().values(), chain(3), calls_doubled(3), loop(3)][index % (len(files.good_files()) + 3)]
    if kind == "cut":
        return [*files.truncations(good, 20, index).values()][index % 20]
    return files.mutations(good, 1, 1000 + index)[0]


@functools.cache
def corpus():
    """Name -> function that gives bytes."""
    rows = {}
    for name, size in itertools.product(BY_SIZE, HUGE):
        rows[f"{name}, {size}"] = functools.partial(BY_SIZE[name], size)
    for name, scale in itertools.product(BY_SCALE, RESIZED):
        rows[f"Resize {name}, {scale}"] = functools.partial(BY_SCALE[name], scale)
    for name, axis in itertools.product(BY_AXIS, AXES):
        rows[f"{name}, axis {axis}"] = functools.partial(BY_AXIS[name], axis)
    for name, kind in itertools.product(WINDOWED, WINDOWS):
        rows[f"{name}, {kind}"] = functools.partial(WINDOWED[name], WINDOWS[kind])
    for dtype, least in LEAST.items():
        for op, a, b in (("Div", least, -1), ("Div", 1, 0), ("Mod", least, -1), ("Mod", 1, 0)):
            rows[f"{op} of {dtype} {a} by {b}"] = functools.partial(arithmetic, op, dtype, a, b)
    for direction, bits in itertools.product(("LEFT", "RIGHT"), (8, 64, 255)):
        rows[f"BitShift {direction} by {bits}"] = functools.partial(
            one, "BitShift", {"x": (np.uint8, [2])}, {"b": np.array([bits], np.uint8)}, direction=direction
        )
    for op, value in itertools.product(("Add", "Div", "Pow", "Max", "MatMul"), (np.nan, np.inf, -np.inf, 1e-45)):
        if op != "MatMul":
            rows[f"{op} of {value}"] = functools.partial(special_constants, op, value)
    for value, to in itertools.product((np.nan, np.inf, 1e30, -1e30), (2, 3, 6, 7, 9, 10, 17)):
        rows[f"Cast of {value} to {to}"] = functools.partial(cast_of, value, to)
    for name in IMAGES:
        rows[f"image, {name}"] = functools.partial(image, name)
    for kind in FROM_CONSTANTS:
        rows[f"{kind} of constants"] = functools.partial(from_constants, kind)
    for turns in (2**62, 10**7, -1):
        rows[f"Loop of {turns}"] = functools.partial(loop, turns)
    rows["functions that call twice, 40 deep"] = functools.partial(calls_doubled, 40)
    rows["functions that call twice, 12 deep"] = functools.partial(calls_doubled, 12)
    rows["4,000 different fills"] = functools.partial(many_fills, 4000, False)
    rows["1,500 fills of different sizes"] = functools.partial(many_fills, 1500, True)
    rows["1,000 different chains"] = functools.partial(many_chains, 1000)
    rows["100,000 unused initializers"] = functools.partial(unused_initializers, 100_000)
    rows["a chain of 3,000 nodes"] = functools.partial(chain, 3000)
    rows["a sum of 20,000"] = functools.partial(wide_sum, 20_000)
    for text in ("", "\0", "a" * 2**20, "../../etc/passwd", "%s%n%s", "\x1b[31m", "main", "lathe_entry", "ä" * 300):
        rows[f"the name {text[:12]!r}"] = functools.partial(named, text)
    for kind in ("nodes of one name", "an output without a name", "an operand without a name",
                 "an input without a name", "a weight of an output's name"):  # fmt: skip
        rows[kind] = functools.partial(with_names, kind)
    for depth in (10, 60, 2000):
        rows[f"branches nested {depth} deep"] = functools.partial(files.nested_branches, depth)
    for position in ("weight", "input", "constant"):
        rows[f"texts as {position}"] = functools.partial(with_text, position)
    for kind, index in itertools.product(("cut", "mutated"), range(20)):
        rows[f"{kind} {index}"] = functools.partial(damaged, kind, index)
    return rows
