"""Ways to misuse operators that only the run can see: models, with values that fit and values that do not."""

import struct
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

NODE = "the_node_under_test"
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}
TYPES[np.dtype(np.bool_)] = TensorProto.BOOL
TYPES[np.dtype(np.int32)] = TensorProto.INT32
TYPES[np.dtype(np.uint8)] = TensorProto.UINT8


@dataclass
class Misuse:
    op: str
    good: dict  # inputs by name
    bad: dict  # those that are other than in `good`
    says: str  # of the message beside the node; "" where the run takes the value, which may not harm
    attributes: dict | None = None
    outputs: int = 1
    opset: int = 21
    fixed: str = ""  # the input whose extents are numbers, because the rank of the result depends on them

    def input(self, name, value):
        if isinstance(value, list):
            return helper.make_tensor_sequence_value_info(name, TYPES[value[0].dtype], [None] * value[0].ndim)
        extents = value.shape if name == self.fixed else [f"{name}_{axis}" for axis in range(value.ndim)]
        return helper.make_tensor_value_info(name, TYPES[value.dtype], extents)

    def model(self):
        """The operator alone; extents are symbols, each of its own, so that nothing is known before the run."""
        inputs = [self.input(name, value) for name, value in self.good.items()]
        names = [f"y{position}" for position in range(self.outputs)]
        node = helper.make_node(self.op, list(self.good), names, name=NODE, **(self.attributes or {}))
        outputs = [helper.make_empty_tensor_value_info(name) for name in names]
        graph = helper.make_graph([node], "misuse", inputs, outputs)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)


def f(*shape):
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)


def i(*values):
    return np.array(values, np.int64)


def file(content):
    return np.frombuffer(content, np.uint8)


def n(value):
    return np.array(value, np.int64)


PGM = file(b"P5 3 2 255 abcdef")
# A header whose run-length encoded pixels would fill the plane.
HUGE_BITMAP = file(
    b"BM" + struct.pack("<IHHIIiiHHIIiiII", 80, 0, 0, 54, 40, 2**31 - 1, 2**31 - 1, 1, 8, 1, 0, 0, 0, 0, 0)
)


MISUSES = {
    "Concat": Misuse(
        "Concat", {"a": f(2, 3), "b": f(4, 3)}, {"b": f(4, 5)}, "b_1 is 5, it must be a_1, which is 3",
        {"axis": 0}),
    "Add": Misuse(
        "Add", {"a": f(2, 3), "b": f(2, 3)}, {"b": f(2, 4)},
        "Add: the shapes do not fit: b_1 is 4, it must be 1 or a_1, which is 3; "
        "'a', the graph's input, is float32[2, 3]; 'b', the graph's input, is float32[2, 4]"),
    "Where": Misuse(
        "Where", {"c": np.ones((2, 3), bool), "a": f(2, 3), "b": f(2, 3)}, {"b": f(4, 3)}, "b_0 is 4, it must be 1 or"),
    "Max, three operands": Misuse(
        "Max", {"a": f(2, 3), "b": f(3), "c": f(2, 1)}, {"c": f(4, 1)}, "'c', the graph's input, is float32[4, 1]"),
    "MatMul": Misuse(
        "MatMul", {"a": f(2, 3), "b": f(3, 4)}, {"b": f(5, 4)},
        "a_1 is 3, it must be b_0, which is 5; 'a', the graph's input, is float32[2, 3]; "
        "'b', the graph's input, is float32[5, 4]"),
    "Gemm": Misuse(
        "Gemm", {"a": f(2, 3), "b": f(3, 4), "c": f(2, 4)}, {"b": f(5, 4)}, "a_1 is 3, it must be b_0, which is 5"),
    "Conv": Misuse(
        "Conv", {"x": f(1, 2, 5, 5), "w": f(3, 2, 3, 3)}, {"w": f(3, 4, 3, 3)},
        "x_1 is 2, it must be w_1, which is 4; 'x', the graph's input, is float32[1, 2, 5, 5]; 'w', "),
    "ScatterElements, updates": Misuse(
        "ScatterElements", {"x": f(3, 4), "at": i([0, 2]), "u": f(1, 2)}, {"u": f(1, 3)},
        "u_1 is 3, it must be at_1, which is 2"),
    "ScatterND, updates": Misuse(
        "ScatterND", {"x": f(3, 4), "at": i([2]), "u": f(1, 4)}, {"u": f(1, 5)},
        "u_1 is 5, it must be x_1, which is 4"),
    "Tile, negative": Misuse("Tile", {"x": f(2, 3), "times": i(1, 2)}, {"times": i(1, -2)}, "'times' holds -2 at [1]"),
    "Range, zero delta": Misuse("Range", {"a": n(0), "b": n(5), "d": n(1)}, {"d": n(0)}, "'d' is 0, and a range"),
    "TopK, k": Misuse(
        "TopK", {"x": f(2, 5), "k": i(3)}, {"k": i(6)}, "'k' asks for 6 elements, but axis 1 of 'x' has 5", outputs=2),
    "Gather out of range": Misuse("Gather", {"x": f(3, 4), "at": i(0, 2)}, {"at": i(0, 3)},
        "Gather: 'at' holds 3 at [1], but indices into axis 0 of 'x' are in [-3, 3); "
        "'x', the graph's input, is float32[3, 4]; 'at', the graph's input, is int64[2]"),
    "Gather below": Misuse("Gather", {"x": f(3, 4), "at": i(0, -3)}, {"at": i(0, -400)}, "'at' holds -400 at [1]"),
    "GatherElements": Misuse(
        "GatherElements", {"x": f(3, 4), "at": i([0, 2])}, {"at": i([0, 1 << 40])},
        f"'at' holds {1 << 40} at [0, 1]"),
    "ScatterElements": Misuse(
        "ScatterElements", {"x": f(3, 4), "at": i([0, 2]), "u": f(1, 2)}, {"at": i([0, 1 << 40])},
        "indices into axis 0 of 'x' are in [-3, 3)"),
    "ScatterND": Misuse(
        "ScatterND", {"x": f(3, 4), "at": i([2]), "u": f(1, 4)}, {"at": i([-(1 << 40)])},
        f"'at' holds {-(1 << 40)} at [0, 0], but indices into axis 0 of"),
    "Slice, steps of zero": Misuse(
        "Slice", {"x": f(6), "a": i(0), "b": i(6), "axes": i(0), "step": i(2)}, {"step": i(0)},
        "'step' holds 0 at [0], but a step leads on or back"),
    "Slice, axes": Misuse(
        "Slice", {"x": f(6), "a": i(0), "b": i(6), "axes": i(0)}, {"axes": i(1)}, "there are axes in [-1, 1)"),
    "Slice, an axis twice": Misuse(
        "Slice", {"x": f(6, 2), "a": i(0, 0), "b": i(6, 1), "axes": i(0, 1)}, {"axes": i(0, -2)},
        "'axes' holds -2 at [1], but one before it is the same axis"),
    "Pad, more than there is": Misuse(
        "Pad", {"x": f(4), "pads": i(1, 1)}, {"pads": i(-3, -2)},
        "the pads -3 and -2 of axis 0, which has 4 elements, leave less than none"),
    "Pad, reflected too far": Misuse(
        "Pad", {"x": f(4), "pads": i(1, 1)}, {"pads": i(9, 0)}, "are mirrored from further than there is",
        {"mode": "reflect"}),
    "Pad, edge of nothing": Misuse(
        "Pad", {"x": f(4), "pads": i(1, 1)}, {"x": f(0)}, "are copies of an element, but there is none",
        {"mode": "edge"}),
    "TopK, negative k": Misuse(
        "TopK", {"x": f(2, 5), "k": i(3)}, {"k": i(-1)}, "'k' holds -1 at [0], but no less than 0", outputs=2),
    "OneHot, depth": Misuse(
        "OneHot", {"x": i(0, 2), "depth": n(3), "v": f(2)}, {"depth": n(-1)}, "'depth' holds -1, but the new axis"),
    "OneHot, values": Misuse(
        "OneHot", {"x": i(0, 2), "depth": n(3), "v": f(2)}, {"v": f(1)}, "v_0 is 1, it must be 2"),
    "ReverseSequence": Misuse(
        "ReverseSequence", {"x": f(4, 2), "lens": i(1, 4)}, {"lens": i(1, 1 << 40)},
        f"'lens' holds {1 << 40} at [1], but axis 0 of 'x' takes lengths in [0, 5)"),
    "GatherND": Misuse(
        "GatherND", {"x": f(3, 4), "at": i([2, 3])}, {"at": i([2, 4])},
        "'at' holds 4 at [0, 1], but indices into axes 0 to 1 of 'x' are in [-4, 4)",
        fixed="at"),
    "Scatter, an empty axis": Misuse(
        "ScatterElements", {"x": f(3), "at": i(2), "u": f(1)}, {"x": f(0)}, "indices into axis 0 of 'x' are in [0, 0)"),
    "Gather, an empty axis": Misuse("Gather", {"x": f(3), "at": i(2)},
        {"x": f(0)}, "indices into axis 0 of 'x' are in [0, 0)"),
    "ArgMax, an empty axis": Misuse("ArgMax", {"x": f(3)}, {"x": f(0)}, "axis 0 of 'x' is empty"),
    "CumSum, axis": Misuse("CumSum", {"x": f(3, 4), "axis": n(1)}, {"axis": n(2)}, "there are axes in [-2, 2)"),
    "Split, negative": Misuse(
        "Split", {"x": f(6), "sizes": i(2, 4)}, {"sizes": i(-1, 7)}, "'sizes' holds -1 at [0], but a part has",
        outputs=2),
    "Split, sizes": Misuse(
        "Split", {"x": f(6), "sizes": i(2, 4)}, {"sizes": i(2, 3)},
        "the sizes 2, 3 are 5 together, but axis 0 of 'x' has 6 elements", outputs=2),
    "Unsqueeze": Misuse("Unsqueeze", {"x": f(3), "axes": i(1)}, {"axes": i(2)}, "there are axes in [-2, 2)",
        fixed="axes"),
    "Squeeze, axes": Misuse("Squeeze", {"x": f(3, 1), "axes": i(1)}, {"axes": i(2)}, "there are axes in [-2, 2)",
        fixed="axes"),
    "Squeeze, no axes": Misuse("Squeeze", {"x": f(3, 2)}, {"x": f(3, 1)}, "axis 1 has extent 1, which Squeeze drops"),
    "Squeeze, extent": Misuse("Squeeze", {"x": f(3, 1), "axes": i(1)}, {"axes": i(0)}, "an extent other than 1",
        fixed="axes"),
    "ReduceSum": Misuse("ReduceSum", {"x": f(3, 2), "axes": i(1)}, {"axes": i(-3)}, "there are axes in [-2, 2)"),
    "Reshape": Misuse(
        "Reshape", {"x": f(3, 4), "to": i(6, 2)}, {"to": i(6, 3)},
        "the shape [6, 3] holds 18 elements, but 'x' has 12",
        fixed="to"),
    "Reshape, open": Misuse("Reshape", {"x": f(3, 4), "to": i(6, -1)}, {"to": i(5, -1)}, "but 'x' has 12",
        fixed="to"),
    "Reshape, two open": Misuse("Reshape", {"x": f(3, 4), "to": i(6, -1)}, {"to": i(-1, -1)}, "but 'x' has 12",
        fixed="to"),
    "Reshape, negative": Misuse("Reshape", {"x": f(3, 4), "to": i(6, 2)}, {"to": i(-2, -6)}, "'to' holds -2 at [0]",
        fixed="to"),
    "Expand": Misuse("Expand", {"x": f(1, 4), "to": i(3, 4)}, {"to": i(-3, 4)}, "'to' holds -3 at [0], but an extent",
        fixed="to"),
    "Expand, other": Misuse("Expand", {"x": f(2, 4), "to": i(2, 4)}, {"to": i(3, 4)},
        "'x' does not expand to [3, 4]: 2 and 3 are neither equal nor 1",
        fixed="to"),
    "ConstantOfShape": Misuse("ConstantOfShape", {"to": i(3, 4)}, {"to": i(3, -4)}, "'to' holds -4 at [1]",
        fixed="to"),
    "Resize": Misuse(
        "Resize", {"x": f(2, 3), "roi": f(0), "scales": f(0), "sizes": i(4, 6)}, {"sizes": i(4, -6)},
        "'sizes' holds -6 at [1]"),
    "Resize, scales": Misuse(
        "Resize", {"x": f(2, 3), "roi": f(0), "scales": f(2) + 1}, {"scales": f(2) - 3},
        "but a scale is more than 0"),
    "Resize, empty": Misuse(
        "Resize", {"x": f(2, 3), "roi": f(0), "scales": f(0), "sizes": i(4, 6)}, {"x": f(0, 3)},
        "dimension 0 has no elements to resample, but the result has 4"),
    "CenterCropPad": Misuse("CenterCropPad", {"x": f(2, 3), "to": i(4, 2)}, {"to": i(4, -2)}, "'to' holds -2 at [1]"),
    "Col2Im": Misuse(
        "Col2Im", {"x": f(1, 4, 4), "image": i(4, 4), "block": i(2, 2)}, {"image": i(4, -4)}, "'image' holds -4 at [1]",
        {"strides": [2, 2]},
        fixed="image"),
    "MaxUnpool": Misuse(
        "MaxUnpool", {"x": f(1, 1, 1, 2), "at": i([[[0, 7]]])}, {"at": i([[[0, 8]]])},
        "'at' holds 8 at [0, 0, 0, 1], but the pooled tensor [1, 1, 2, 4] has places in [0, 8)",
        {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "RoiAlign": Misuse(
        "RoiAlign", {"x": f(2, 1, 3, 3), "rois": f(1, 4), "of": i(1)},
        {"of": i(2)}, "has images with indices in [0, 2)"),
    "Losses": Misuse(
        "NegativeLogLikelihoodLoss", {"x": f(2, 3), "of": i(0, 2)}, {"of": i(0, 3)}, "'x' scores classes in [0, 3)"),
    "Losses, ignored": Misuse(
        "NegativeLogLikelihoodLoss", {"x": f(2, 3), "of": i(0, -7)}, {"of": i(0, -1)}, "'of' holds -1 at [1]",
        {"ignore_index": -7}),
    "DFT, axis": Misuse(
        "DFT", {"x": f(1, 4, 1), "length": n(4), "axis": n(1)}, {"axis": n(2)}, "a signal has axes before its last"),
    "DFT, length": Misuse("DFT", {"x": f(1, 4, 1), "length": n(4)}, {"length": n(-4)}, "'length' holds -4"),
    "STFT": Misuse(
        "STFT", {"x": f(1, 8, 1), "step": n(2), "window": f(4)}, {"step": n(0)}, "frames are 1 element apart or more"),
    "HannWindow": Misuse("HannWindow", {"size": n(4)}, {"size": n(-4)}, "a window has 0 elements or more"),
    "Div by zero": Misuse(
        "Div", {"a": i(1, -(1 << 63)), "b": i(1, 1)}, {"b": i(-1, 0)},
        "Div: 'b' is 0 at [1], and integers are not divided by 0; 'a', the graph's input, is int64[2]"),
    "Mod by zero": Misuse(
        "Mod", {"a": i(1, -(1 << 63)), "b": i(1, 1)}, {"b": i(0, -1)}, "'b' is 0 at [0]"),
    "GRU": Misuse(
        "GRU", {"x": f(3, 2, 1), "w": f(1, 6, 1), "r": f(1, 6, 2), "b": f(1, 12), "lens": np.array([3, 2], np.int32)},
        {"lens": np.array([3, 4], np.int32)}, "'lens' holds 4 at [1], but 'x' takes lengths in [0, 4)",
        {"hidden_size": 2}),
    "SequenceAt": Misuse("SequenceAt", {"s": [f(2), f(3)], "at": n(-2)}, {"at": n(2)},
        "SequenceAt: position 2 lies outside of a sequence of 2 elements, which has positions in [-2, 2)"),
    "SequenceAt, from the end": Misuse("SequenceAt", {"s": [f(2), f(3)], "at": n(1)}, {"at": n(-(1 << 63))},
        f"SequenceAt: position {-(1 << 63)} lies outside of a sequence of 2 elements"),
    "SequenceAt, of none": Misuse("SequenceAt", {"s": [f(2)], "at": n(0)}, {"s": []},
        "SequenceAt: position 0 lies outside of a sequence of 0 elements"),
    "SequenceErase": Misuse("SequenceErase", {"s": [f(2), f(3)], "at": n(1)}, {"at": n(2)},
        "SequenceErase: position 2 lies outside of a sequence of 2 elements"),
    "SequenceErase, the last of none": Misuse("SequenceErase", {"s": [f(2)]}, {"s": []},
        "SequenceErase: an empty sequence has no element to erase"),
    "SequenceInsert": Misuse("SequenceInsert", {"s": [f(2), f(3)], "x": f(1), "at": n(2)}, {"at": n(3)},
        "SequenceInsert: position 3 lies outside of a sequence of 2 elements, which has positions in [-2, 2]"),
    "ConcatFromSequence": Misuse("ConcatFromSequence", {"s": [f(2, 3), f(1, 3)]}, {"s": [f(2, 3), f(1, 4)]},
        "ConcatFromSequence: element 1 of the sequence has an extent of 4 where the first has 3", {"axis": 0}),
    "ConcatFromSequence, a new axis": Misuse("ConcatFromSequence", {"s": [f(2), f(2)]}, {"s": [f(2), f(2), f(3)]},
        "ConcatFromSequence: element 2 of the sequence has an extent of 3 where the first has 2",
        {"axis": 1, "new_axis": 1}),
    "ConcatFromSequence, of none": Misuse("ConcatFromSequence", {"s": [f(2)]}, {"s": []},
        "ConcatFromSequence: an empty sequence is joined", {"axis": 0}),
    "SplitToSequence": Misuse("SplitToSequence", {"x": f(5), "sizes": i(2, 3)}, {"sizes": i(2, 4)},
        "SplitToSequence: the parts of a tensor that is split do not add up to its extent"),
    "SplitToSequence, by nothing": Misuse("SplitToSequence", {"x": f(5), "size": n(2)}, {"size": n(0)},
        "SplitToSequence: a tensor is split into parts of no or negative extent"),
    "TensorScatter": Misuse(
        "TensorScatter", {"x": f(2, 4, 3), "u": f(2, 2, 3), "at": i(0, 2)}, {"at": i(0, 3)},
        "'at' holds 3 at [1], but 2 entries of 'u' fit 'x' at places in [0, 3)", opset=24),
    "RotaryEmbedding": Misuse(
        "RotaryEmbedding", {"x": f(1, 1, 2, 4), "cos": f(5, 2), "sin": f(5, 2), "at": i([4, 0])}, {"at": i([5, 0])},
        "'at' holds 5 at [0, 0], but 'cos' has positions in [0, 5)", opset=23),
    "ImageDecoder": Misuse("ImageDecoder", {"x": PGM}, {"x": PGM[:-1]},
        "the PNM image cannot be decoded: the data end before the image does"),
    "ImageDecoder, of no known format": Misuse("ImageDecoder", {"x": PGM}, {"x": file(b"GIF89a")},
        "the bytes are no image of a known format: BMP, JPEG, JPEG 2000, PNG, PNM (P1 to P6), TIFF or WebP"),
    "ImageDecoder, of nothing": Misuse("ImageDecoder", {"x": PGM}, {"x": file(b"")}, "there are no bytes of an image"),
    "ImageDecoder, of what no machine has": Misuse("ImageDecoder", {"x": PGM}, {"x": HUGE_BITMAP},
        "the BMP image cannot be decoded: it says that it is 2147483647 wide and 2147483647 high"),
}  # fmt: skip
