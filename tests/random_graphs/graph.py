"""A graph that grows node by node from values of known contents, and the ONNX model of it.

Contents are computed while it grows (truth.py), so that only nodes are kept whose results are finite, of a moderate
size and not mere noise.
"""

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.operators.sample import DTYPES, Draw
from tests.random_graphs import truth

OPSETS = (13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24)
LARGEST = {"float": 1e4, "double": 1e6, "float16": 300, "bfloat16": 1e3}
LARGEST_INTEGER = 2**24  # no overflow, which the specification leaves open
MOST_ELEMENTS = 1500  # of one value; six times as many in large graphs
LARGE_SIZES = (1, 2, 3, 8, 12, 16, 17, 24, 32, 33, 48, 64, 65, 70)
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42)


class Rejected(Exception):
    """A node that would not be worth keeping; another is tried."""


@dataclass
class Value:
    name: str
    dtype: str
    data: list  # the truth, and disturbed evaluations of it
    constant: bool = False
    uses: int = 0

    @property
    def shape(self):
        return self.data[0].shape

    @property
    def rank(self):
        return self.data[0].ndim

    @property
    def size(self):
        return self.data[0].size


@dataclass
class Node:
    op: str
    inputs: list  # values, or None
    outputs: list
    attributes: dict


@dataclass
class Graph(Draw):
    """Random choices are Draw's; the opset and the float dtype are the whole graph's."""

    seed: int
    index: int
    nodes: list = field(default_factory=list)
    pool: list = field(default_factory=list)  # values that nodes may read
    inputs: list = field(default_factory=list)
    constants: list = field(default_factory=list)

    def __post_init__(self):
        self.rng = np.random.default_rng([self.seed, self.index])
        self.noise = np.random.default_rng([self.seed, self.index, 1])
        self.op, self.opset = None, self.choice(OPSETS)
        self.float = self.choice(["float"] * 7 + ["double", "float16", "bfloat16"])
        self.special = self.chance(0.1)  # NaN, infinities and negative zeros among the inputs
        self.most_elements = MOST_ELEMENTS
        if self.chance(0.2):
            self.SIZES, self.most_elements = LARGE_SIZES, 6 * MOST_ELEMENTS
        self.symbols = {}  # size: name of the symbol that inputs share
        self.axes_of = {}  # input name: its dimensions in the model, sizes or names
        self.shape_of_graph = self.drawn_shape(1, 4)

    def drawn_shape(self, low, high):
        return self.shape(low, high, zero=0.02, elements=2 * self.most_elements // 5)

    # Values

    def fresh(self, shape, dtype, low=-2.0, high=2.0, constant=None):
        """A new input or initializer."""
        constant = self.chance(0.4) if constant is None else constant
        array = self.array(list(shape), DTYPES[dtype], low, high)
        if self.special and truth.is_float(dtype) and array.size and self.chance(0.7):
            array = array.copy()
            array.flat[self.rng.integers(0, array.size, 1 + array.size // 6)] = self.choice(SPECIAL)
        return self.constant(array, dtype) if constant else self.given(array, dtype)

    def given(self, array, dtype):
        """A new input of the model."""
        value = Value(f"x{len(self.inputs)}", dtype, [truth.wide(array, dtype)])
        self.inputs.append(value)
        self.axes_of[value.name] = [self.dimension(n) for n in array.shape]
        return value

    def dimension(self, size):
        if self.chance(0.6):
            return size
        if self.chance(0.7):
            # A symbol whose size, or half of it, is 1 would be broadcast to what it can never equal: refused rightly.
            return size if size < 4 else self.symbols.setdefault(size, f"n{len(self.symbols)}")
        return f"m{len(self.axes_of)}_{size}_{self.integer(0, 99)}"

    def constant(self, array, dtype):
        value = Value(f"c{len(self.constants)}", dtype, [truth.wide(np.asarray(array), dtype)], True)
        self.constants.append(value)
        return value

    def integers(self, values):
        return self.constant(np.array(values, np.int64), "int64")

    def pick(self, dtypes=None, low=0, high=6, where=None, new=0.12):
        """A value of the pool, the newest more often, or a new one."""
        dtypes = dtypes or (self.float,)
        fits = [v for v in self.pool if v.dtype in dtypes and low <= v.rank <= high and (where is None or where(v))]
        if fits and not self.chance(new):
            weights = np.array([3.0 if not v.uses else 1.0 for v in fits]) * np.linspace(1, 3, len(fits))
            return fits[int(self.rng.choice(len(fits), p=weights / weights.sum()))]
        if where is not None:
            raise Rejected
        shape = list(self.shape_of_graph)
        if not low <= len(shape) <= high or self.chance(0.3):
            shape = self.drawn_shape(low, min(high, 4))
        return self.fresh(shape, self.choice(list(dtypes)))

    def partner(self, value, dtype=None):
        """A value that broadcasts with `value`."""
        dtype = dtype or value.dtype

        def fits(other):
            try:
                return np.prod(np.broadcast_shapes(value.shape, other.shape)) <= self.most_elements
            except ValueError:
                return False

        try:
            return self.pick((dtype,), where=fits, new=0.35)
        except Rejected:
            return self.fresh(self.broadcast(list(value.shape)), dtype)

    # Nodes

    def node(self, op, inputs, attributes=None, dtypes=None, outputs=1):
        """Appends a node and returns its outputs; `dtypes` of these, the first input's where none are given."""
        attributes = attributes or {}
        dtypes = dtypes or [inputs[0].dtype] * outputs
        check_types(op, self.opset, attributes, inputs, dtypes)
        given = [v and v.data for v in inputs]
        try:
            data = truth.evaluate(
                self.noise, op, self.opset, attributes, given, [v and v.dtype for v in inputs], dtypes
            )
        except (ValueError, TypeError, IndexError):  # operands that do not fit: a row drew what it may not
            raise Rejected from None
        for arrays, dtype in zip(data, dtypes, strict=True):
            self.check(arrays, dtype)
        made = [Value(f"{op.lower()}_{len(self.nodes)}_{i}", d, a) for i, (a, d) in enumerate(zip(data, dtypes))]
        for value in inputs:
            if value is not None:
                value.uses += 1
        self.nodes.append(Node(op, list(inputs), made, attributes))
        self.pool += made
        return made

    def check(self, arrays, dtype):
        first = arrays[0]
        if first.size > self.most_elements or any(a.shape != first.shape for a in arrays):
            raise Rejected
        if not first.size:
            return
        if not truth.is_float(dtype):
            if np.abs(first.astype(np.float64)).max() > LARGEST_INTEGER:
                raise Rejected
            return
        if self.special:
            return
        if not all(np.isfinite(a).all() for a in arrays) or np.abs(first).max() > LARGEST[dtype]:
            raise Rejected
        noise = float(np.quantile(truth.spread_of(arrays), 0.75))
        if noise > 100 * truth.epsilon(dtype) * max(float(np.abs(first).max()), 1e-3) or noise > 0.05 * LARGEST[dtype]:
            raise Rejected

    def take_back(self, nodes, pool, uses):
        """To the state before a growth that was rejected on the way."""
        del self.nodes[nodes:]
        self.pool = pool
        for value, count in zip(pool, uses, strict=True):
            value.uses = count

    # The model

    def results(self):
        """Values that nobody reads, and some that somebody does."""
        made = [v for n in self.nodes for v in n.outputs]
        ends = [v for v in made if not v.uses]
        keep = [v for v in made if v.uses and self.chance(0.12)]
        chosen = ends[-5:] + keep[:2]
        return [v for v in made if v in chosen]

    def model(self, outputs):
        """The model; with sizes for its symbols where the checker takes two of one size for two sizes."""
        try:
            return self.checked_model(outputs)
        except onnx.shape_inference.InferenceError:
            self.axes_of = {v.name: list(v.shape) for v in self.inputs}
            return self.checked_model(outputs)

    def checked_model(self, outputs):
        used = {id(v) for n in self.nodes for v in n.inputs if v is not None}
        inputs = [self.info(v, self.axes_of[v.name]) for v in self.inputs if id(v) in used]
        weights = [numpy_helper.from_array(self.stored(v), v.name) for v in self.constants if id(v) in used]
        nodes = [
            helper.make_node(
                n.op, trimmed([v.name if v else "" for v in n.inputs]), [v.name for v in n.outputs], name=f"node_{i}",
                **n.attributes,
            )
            for i, n in enumerate(self.nodes)
        ]  # fmt: skip
        graph = helper.make_graph(nodes, f"g{self.seed}_{self.index}", inputs, [self.info(v) for v in outputs], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 10
        onnx.checker.check_model(model, full_check=True)
        return model

    def info(self, value, dimensions=None):
        return helper.make_tensor_value_info(value.name, element_type(value.dtype), dimensions or [None] * value.rank)

    def stored(self, value):
        return np.ascontiguousarray(value.data[0]).astype(DTYPES[value.dtype]).reshape(value.shape)

    def feeds(self):
        used = {id(v) for n in self.nodes for v in n.inputs if v is not None}
        return {v.name: self.stored(v) for v in self.inputs if id(v) in used}


def element_type(dtype):
    return helper.np_dtype_to_tensor_dtype(DTYPES[dtype])


def check_types(op, opset, attributes, inputs, dtypes):
    """Rejects a node that the specification's type constraints and shape inference do not take at this opset."""
    names = [f"x{i}" if v else "" for i, v in enumerate(inputs)]
    node = helper.make_node(op, trimmed(list(names)), [f"y{i}" for i in range(len(dtypes))], **attributes)
    given = [
        helper.make_tensor_value_info(name, element_type(v.dtype), v.shape)
        for name, v in zip(names, inputs, strict=True)
        if v
    ]
    wanted = [helper.make_tensor_value_info(f"y{i}", element_type(d), None) for i, d in enumerate(dtypes)]
    graph = helper.make_graph([node], "one", given, wanted)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        onnx.defs.get_schema(op, opset, "")
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except (onnx.defs.SchemaError, onnx.shape_inference.InferenceError):
        raise Rejected from None


def trimmed(names):
    while names and not names[-1]:
        names.pop()
    return names
