"""Generators of hostile model files. Each writes into a folder of its own and returns the path to give the compiler."""

import functools
import os
import struct

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.models import MODELS
from tests.support import paths

ARRAY = np.arange(12, dtype=np.float32).reshape(3, 4)


def model(nodes, inputs=None, outputs=None, weights=(), opset=17):
    inputs = inputs if inputs is not None else [("x", [3, 4])]
    outputs = outputs if outputs is not None else [("y", None)]
    graph = helper.make_graph(
        nodes, "hostile",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs],
        list(weights),
    )  # fmt: skip
    result = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    result.ir_version = 8
    return result


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs, outputs, name=f"the_{kind}", **attributes)


def weight(name="w", array=ARRAY):
    return numpy_helper.from_array(array, name)


def add_weight():
    return model([node("Add", ["x", "w"], ["y"])], outputs=[("y", [3, 4])], weights=[weight()])


def external(location, **more):
    m = add_weight()
    tensor = m.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=str(value))
    return m


def changed(change):
    m = add_weight()
    change(m)
    return m


# Models whose values are wanted twice by what follows, again and again: 2^40 paths lead through a hundred nodes.
DOUBLINGS = 40


def doubled_values(kind):
    names = ["x"] + [f"a{i}" for i in range(1, DOUBLINGS)] + ["y"]
    nodes = []
    for before, after in zip(names, names[1:], strict=False):
        nodes += [node(kind, [before, before], [f"{after}_b"]), node("Sigmoid", [f"{after}_b"], [after])]
    return model(nodes)


def doubled_sizes():
    """n -> n + n * (n // 3), again and again, and last a tensor of that size."""
    nodes = [node("Shape", ["x"], ["a0"], start=0, end=1)]
    for i in range(DOUBLINGS):
        nodes += [node("Div", [f"a{i}", "three"], [f"d{i}"]), node("Mul", [f"a{i}", f"d{i}"], [f"m{i}"])]
        nodes += [node("Add", [f"m{i}", f"a{i}"], [f"a{i + 1}"])]
    nodes += [node("Expand", ["one", f"a{DOUBLINGS}"], ["y"])]
    three, one = weight("three", np.array([3])), weight("one", np.ones(1, np.float32))
    return model(nodes, inputs=[("x", ["n", 4])], weights=[three, one])


MODELS_THAT_DOUBLE = {
    "sums": lambda: doubled_values("Add"),
    "products": lambda: doubled_values("Mul"),
    "sizes": doubled_sizes,
}


# Models. Name -> (function that makes a ModelProto, words of which the message must hold one).
def _missing_initializer():
    return model([node("Add", ["x", "w"], ["y"])])


def _duplicate_outputs():
    return model([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])])


def _cycle():
    return model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])])


def _dims(*dims):
    def make():
        m = add_weight()
        shape = m.graph.input[0].type.tensor_type.shape
        del shape.dim[:]
        for d in dims:
            shape.dim.add(dim_value=d)
        return m

    return make


def _weight_dims(*dims):
    def change(m):
        del m.graph.initializer[0].dims[:]
        m.graph.initializer[0].dims.extend(dims)

    return lambda: changed(change)


def _payload(size):
    def change(m):
        m.graph.initializer[0].raw_data = b"\1" * size

    return lambda: changed(change)


def _typed_payload():
    def change(m):
        m.graph.initializer[0].ClearField("raw_data")
        m.graph.initializer[0].float_data.extend([1.0] * 5)

    return changed(change)


def _element_type(number):
    def change(m):
        m.graph.initializer[0].data_type = number

    return lambda: changed(change)


def _huge_constant():
    shape = weight("shape", np.array([1 << 40, 1 << 20], np.int64))
    return model(
        [node("ConstantOfShape", ["shape"], ["c"]), node("Add", ["c", "x"], ["y"])],
        inputs=[("x", [1])],
        weights=[shape],
    )


def _expand_to(*dims):
    def make():
        return model(
            [node("Expand", ["x", "shape"], ["y"])],
            inputs=[("x", [1])],
            weights=[weight("shape", np.array(dims, np.int64))],
        )

    return make


def _attribute(kind, **attributes):
    return lambda: model([node(kind, ["x"], ["y"], **attributes)])


def _huge_kernel():
    w = weight("w", np.zeros((1, 1, 1, 1), np.float32))
    conv = node("Conv", ["x", "w"], ["y"], pads=[1 << 40] * 4, strides=[1, 1])
    return model([conv], inputs=[("x", [1, 1, 4, 4])], weights=[w])


def _zero_stride():
    return model([node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[0, 0])], inputs=[("x", [1, 1, 4, 4])])


def _self_call():
    """A model-local function that calls itself."""
    m = model([helper.make_node("Loopy", ["x"], ["y"], domain="local")])
    m.opset_import.append(helper.make_opsetid("local", 1))
    body = helper.make_node("Loopy", ["a"], ["b"], domain="local")
    m.functions.append(helper.make_function("local", "Loopy", ["a"], ["b"], [body], [helper.make_opsetid("local", 1)]))
    return m


MODELS_THAT_HARM = {
    "missing initializer": (_missing_initializer, ["'w'", "w"]),
    "unknown operator": (lambda: model([node("Frobnicate", ["x"], ["y"])]), ["Frobnicate"]),
    "unknown domain": (lambda: model([helper.make_node("Relu", ["x"], ["y"], domain="com.nowhere")]), ["com.nowhere"]),
    "opset 0": (lambda: changed(lambda m: setattr(m.opset_import[0], "version", 0)), ["opset", "0"]),
    "opset 999": (lambda: changed(lambda m: setattr(m.opset_import[0], "version", 999)), ["999"]),
    "opset -1": (lambda: changed(lambda m: setattr(m.opset_import[0], "version", -1)), ["-1", "opset"]),
    "no opset": (lambda: changed(lambda m: m.ClearField("opset_import")), ["opset"]),
    "no graph": (lambda: changed(lambda m: m.ClearField("graph")), ["graph", "node", "output"]),
    "no outputs": (lambda: changed(lambda m: m.graph.ClearField("output")), ["output"]),
    "output without a producer": (lambda: model([node("Relu", ["x"], ["z"])]), ["y"]),
    "cycle": (_cycle, ["cycle", "'b'", "order"]),
    "node that reads itself": (lambda: model([node("Add", ["x", "y"], ["y"])]), ["y"]),
    "duplicate outputs": (_duplicate_outputs, ["'y'", "y"]),
    "duplicate initializers": (lambda: changed(lambda m: m.graph.initializer.append(weight())), ["w"]),
    "duplicate inputs": (lambda: changed(lambda m: m.graph.input.append(m.graph.input[0])), ["x"]),
    "negative dimension": (_dims(-3, 4), ["-3"]),
    "enormous dimension": (_dims(1 << 62, 1 << 62), []),
    "product of dimensions wraps to zero": (_dims(1 << 32, 1 << 32), []),
    "product of dimensions wraps to a small number": (_dims((1 << 33) + 1, 1 << 31, 4), []),
    "negative initializer dimension": (_weight_dims(-3, -4), ["-3"]),
    "enormous initializer dimensions": (_weight_dims(1 << 62, 4), []),
    "initializer dimensions that wrap": (_weight_dims(1 << 32, 1 << 32, 12), []),
    "payload too short": (_payload(47), ["47"]),
    "payload too long": (_payload(4096), ["4096"]),
    "payload empty": (_payload(0), ["w"]),
    "typed payload too short": (_typed_payload, ["5"]),
    "element type 0": (_element_type(0), ["w", "type"]),
    "element type 999": (_element_type(999), ["999"]),
    "huge constant of shape": (_huge_constant, []),
    "expand to a negative size": (_expand_to(-5), ["-5"]),
    "expand to an enormous size": (_expand_to(1 << 62, 1 << 62), []),
    "axis out of range": (_attribute("Softmax", axis=77), ["77"]),
    "axis at the lowest integer": (_attribute("Softmax", axis=-(1 << 63)), [str(-(1 << 63)), "axis"]),
    "permutation that repeats": (_attribute("Transpose", perm=[0, 0]), ["perm", "[0, 0]"]),
    "permutation out of range": (_attribute("Transpose", perm=[5, -9]), ["5", "perm"]),
    "attribute of another type": (_attribute("Softmax", axis="one"), ["axis"]),
    "unknown attribute": (_attribute("Relu", colour=3), ["colour"]),
    "enormous pads": (_huge_kernel, []),
    "zero strides": (_zero_stride, ["stride"]),
    "too many inputs": (lambda: model([node("Relu", ["x", "x", "x"], ["y"])]), ["Relu", "input"]),
    "too many outputs": (lambda: model([node("Relu", ["x"], ["y", "z"])]), ["Relu", "output"]),
    "no inputs": (lambda: model([node("Relu", [], ["y"])]), ["Relu", "input"]),
    "empty operator name": (lambda: model([node("", ["x"], ["y"])]), []),
    "function that calls itself": (_self_call, ["Loopy"]),
    "shapes that do not broadcast": (
        lambda: changed(lambda m: m.graph.initializer[0].CopyFrom(weight("w", ARRAY.T))), ["[4, 3]", "4"],
    ),
    "external data: absolute path": (lambda: external("/etc/passwd"), ["/etc/passwd"]),
    "external data: parent folder": (lambda: external("../outside.bin"), ["../outside.bin"]),
    "external data: parent further in": (lambda: external("sub/../../outside.bin"), ["outside.bin"]),
    "external data: symbolic link": (lambda: external("link.bin"), ["link.bin"]),
    "external data: link among the folders": (lambda: external("folder/outside.bin"), ["outside.bin"]),
    "external data: hard link": (lambda: external("hard.bin"), ["hard.bin"]),
    "external data: missing": (lambda: external("nowhere.bin"), ["nowhere.bin"]),
    "external data: empty path": (lambda: external(""), []),
    "external data: a folder": (lambda: external("."), []),
    "external data: a device": (lambda: external("/dev/zero"), ["/dev/zero"]),
    "external data: a pipe": (lambda: external("pipe"), ["pipe"]),
    "external data: beyond the end": (lambda: external("data.bin", offset=40, length=48), ["data.bin"]),
    "external data: negative offset": (lambda: external("data.bin", offset=-8, length=48), ["data.bin", "-8"]),
    "external data: offset that wraps": (lambda: external("data.bin", offset=(1 << 64) - 8, length=48), ["data.bin"]),
    "external data: length of other size": (lambda: external("data.bin", offset=0, length=40), ["40"]),
    "external data: zero byte in the path": (lambda: external("data.bin\0.txt"), []),
}  # fmt: skip


def write_model(name, folder):
    """Writes the model with what surrounds it: the files its external data must not reach, or may."""
    inside = folder / "model"
    inside.mkdir()
    (folder / "outside.bin").write_bytes(ARRAY.tobytes())
    (inside / "data.bin").write_bytes(ARRAY.tobytes())
    (inside / "link.bin").symlink_to("../outside.bin")
    (inside / "folder").symlink_to("..")
    (inside / "hard.bin").hardlink_to(folder / "outside.bin")
    os.mkfifo(inside / "pipe")
    path = inside / "model.onnx"
    path.write_bytes(MODELS_THAT_HARM[name][0]().SerializeToString())
    return path


# Raw bytes, where no library would write them.


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def nested(wrap, depth):
    """`depth` applications of a list of wraps (field numbers, outermost first) around nothing, built from inside out.

    Each level prefixes the bytes so far; prefixes are collected and joined once, so a million levels take a second.
    """
    size, prefixes = 0, []
    for level in range(depth):
        for number in reversed(wrap):
            prefix = varint(number << 3 | 2) + varint(size)
            prefixes.append(prefix)
            size += len(prefix)
    return b"".join(reversed(prefixes))


MILLION = 1_000_000
# ModelProto.graph = 7, GraphProto.node = 1, NodeProto.attribute = 5, AttributeProto.g = 6, GraphProto.value_info = 13,
# ValueInfoProto.type = 2, TypeProto.sequence_type = 4, its elem_type = 1.


@functools.cache
def nested_graphs():
    """A million graphs, each an attribute of a node of the one around it."""
    return field(7, nested([1, 5, 6], MILLION))


def nested_types():
    """A value of type sequence of sequence of ... a million deep."""
    return field(7, field(12, field(1, b"y") + field(2, nested([4, 1], MILLION))))


def nested_unknown_groups():
    """A million open groups of an unknown field."""
    return varint(99 << 3 | 3) * MILLION


def nested_branches(depth):
    """An If in an If in an If, well formed, so that nothing but a bound stops the reader."""

    def message(kind, name, body):
        # NodeProto: input 1, output 2, name 3, op_type 4, attribute 5; AttributeProto: name 1, g 6, type 20.
        def branch(which):
            content = field(1, which) + field(6, body) + varint(20 << 3) + varint(5)
            return field(5, content)

        return field(1, b"c") + field(2, name) + field(4, kind) + branch(b"then_branch")

    output = field(12, field(1, b"o"))
    body = field(1, field(1, b"c") + field(2, b"o") + field(4, b"Identity")) + output
    for _ in range(depth):
        body = field(1, message(b"If", b"o", body)) + output
    return varint(1 << 3) + varint(8) + field(8, varint(2 << 3) + varint(17)) + field(7, body)


def length_beyond_the_end():
    return varint(7 << 3 | 2) + varint(1 << 62) + b"abc"


def endless_varint():
    return b"\xff" * 4096


def many_small_messages():
    """Four million empty nodes: 8 MB of file that ask for far more memory."""
    return varint(1 << 3) + varint(8) + field(8, varint(2 << 3) + varint(17)) + field(7, b"\x0a\x00" * 4_000_000)


RAW = {
    "empty file": lambda: b"",
    "one byte": lambda: b"\x08",
    "text": lambda: b"this is not a model\n" * 50,
    "zeros": lambda: bytes(100_000),
    "ones": lambda: b"\xff" * 100_000,
    "ELF": lambda: b"\x7fELF" + struct.pack("<QQ", 1, 2) * 100,
    "zip": lambda: b"PK\3\4" + bytes(200),
    "length beyond the end": length_beyond_the_end,
    "endless varint": endless_varint,
    "graphs nested a million deep": nested_graphs,
    "types nested a million deep": nested_types,
    "groups nested a million deep": nested_unknown_groups,
    "branches nested 2,000 deep": lambda: nested_branches(2000),
    "four million empty nodes": many_small_messages,
}


# Damage to good files.


def good_files():
    digits = paths.DIGITS_MODEL.read_bytes()
    return {"digits": digits, "transformer": MODELS["transformer"](batch=1).SerializeToString()}


def truncations(content, count, seed):
    """Cuts: the first bytes, the last bytes, and `count` random places between."""
    rng = np.random.default_rng(seed)
    places = {1, 2, 3, 5, 17, len(content) - 1, len(content) - 2, len(content) - 40}
    places |= {int(p) for p in rng.integers(4, len(content) - 1, count)}
    return {place: content[:place] for place in sorted(places)}


def mutations(content, count, seed):
    """Changes of 1 to 8 bytes: random values, flipped bits, and lengths made huge. Half fall outside the weights."""
    rng = np.random.default_rng(seed)
    result = []
    structure = _structure_offsets(content)
    for _ in range(count):
        damaged = bytearray(content)
        for _ in range(int(rng.integers(1, 9))):
            if rng.random() < 0.8:
                place = int(structure[rng.integers(len(structure))])
            else:
                place = int(rng.integers(len(content)))
            kind = rng.integers(3)
            if kind == 0:
                damaged[place] = int(rng.integers(256))
            elif kind == 1:
                damaged[place] ^= 1 << int(rng.integers(8))
            else:
                damaged[place : place + 4] = b"\xff\xff\xff\x7f"[: len(damaged) - place]
        result.append(bytes(damaged))
    return result


def _structure_offsets(content):
    """Offsets outside long payloads: where names, lengths, tags and shapes are."""
    parsed = onnx.ModelProto.FromString(content)
    inside = np.zeros(len(content), bool)
    for tensor in parsed.graph.initializer:
        if len(tensor.raw_data) >= 64:
            start = content.find(tensor.raw_data)
            inside[start : start + len(tensor.raw_data)] = True
    return np.flatnonzero(~inside)
