"""A sample: one node with its attributes and inputs at one opset, and the model made of it."""

import functools
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Every dtype of the specification but complex ones, by its name there.
DTYPES = {
    "bool": np.dtype(np.bool_), "int8": np.dtype(np.int8), "int16": np.dtype(np.int16), "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64), "uint8": np.dtype(np.uint8), "uint16": np.dtype(np.uint16),
    "uint32": np.dtype(np.uint32), "uint64": np.dtype(np.uint64), "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16), "float": np.dtype(np.float32), "double": np.dtype(np.float64),
    "float8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn), "float8e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "float8e5m2": np.dtype(ml_dtypes.float8_e5m2), "float8e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "float8e8m0": np.dtype(ml_dtypes.float8_e8m0fnu), "float4e2m1": np.dtype(ml_dtypes.float4_e2m1fn),
    "int4": np.dtype(ml_dtypes.int4), "uint4": np.dtype(ml_dtypes.uint4), "int2": np.dtype(ml_dtypes.int2),
    "uint2": np.dtype(ml_dtypes.uint2), "string": np.dtype(object),
}  # fmt: skip
FLOATS = ("float16", "bfloat16", "float", "double")
TEXT = DTYPES["string"]
NUMBERS = tuple(name for name, dtype in DTYPES.items() if dtype != TEXT)
WORDS = ("", "a", "b", "ab", "B", "naïve", "two words", "0", "-1.5", "日本")
NARROW_FLOATS = tuple(name for name in DTYPES if name.startswith(("float8", "float4")))
LAST_OPSET = 27
PLAIN = "NumPy from the words of the specification, of every rank and dtype"  # why the evaluator is no reference


def is_float(dtype):
    return np.dtype(dtype) in [DTYPES[name] for name in (*FLOATS, *NARROW_FLOATS)]


def is_integer(dtype):
    return np.dtype(dtype) not in (np.bool_, TEXT) and not is_float(dtype)


def limits(dtype):
    """The least and the largest value of a dtype, as integers where it has integers."""
    if is_integer(dtype):
        return int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)
    return (0, 1) if dtype == np.bool_ else (float(ml_dtypes.finfo(dtype).min), float(ml_dtypes.finfo(dtype).max))


@functools.cache
def domain_of(op):
    """The domain that defines the operator: "" for nearly all."""
    domains = {s.domain for s in onnx.defs.get_all_schemas_with_history() if s.name == op}
    return "" if "" in domains else domains.pop()


def schema(op, opset):
    return onnx.defs.get_schema(op, opset, domain_of(op))


def allowed_dtypes(op, opset, parameter):
    """Names of the claimed dtypes that the specification lists for a type parameter such as "T".

    Of sequences and optionals, those of the tensors in them.
    """
    for constraint in schema(op, opset).type_constraints:
        if constraint.type_param_str == parameter:
            listed = {t[t.rindex("tensor(") + 7 :].rstrip(")") for t in constraint.allowed_type_strs if "tensor(" in t}
            return [name for name in DTYPES if name in listed]
    raise KeyError(f"{op} has no type parameter {parameter} at opset {opset}")


@functools.cache
def definitions(op):
    """Its schemas that its domain has, the oldest first."""
    of = [s for s in onnx.defs.get_all_schemas_with_history() if s.name == op and s.domain == domain_of(op)]
    return sorted((s for s in of if s.since_version <= LAST_OPSET), key=lambda s: s.since_version)


@functools.cache
def versions_of(op):
    """The opsets in which its definition changed; of ONNX's own from 7 on, and 7 where an older one holds there."""
    first = 1 if domain_of(op) else 7
    return tuple(sorted({max(s.since_version, first) for s in definitions(op) if not s.deprecated}))


@functools.cache
def last_opset(op):
    """The newest that has the operator: some were taken out."""
    newest = definitions(op)[-1]
    if newest.deprecated:
        return newest.since_version - 1
    return newest.since_version if domain_of(op) else LAST_OPSET


def rounded_to_single(value):
    """An attribute as the file keeps it."""
    if isinstance(value, list):
        return [rounded_to_single(v) for v in value]
    return float(np.float32(value)) if isinstance(value, float) else value


class Parts(list):
    """A sequence of tensors of one dtype and rank."""

    def __init__(self, tensors, dtype, rank):
        super().__init__(tensors)
        self.dtype, self.rank = np.dtype(dtype), rank

    def type(self):
        tensor = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(self.dtype), [None] * self.rank)
        return helper.make_sequence_type_proto(tensor)


class Maybe:
    """An optional of a tensor or a sequence like `value`, which it has or has not."""

    def __init__(self, value, has):
        self.value, self.has, self.dtype = value, has, value.dtype

    def type(self):
        return helper.make_optional_type_proto(type_of(self.value))


def type_of(x, shape=None):
    if isinstance(x, (Parts, Maybe)):
        return x.type()
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(x.dtype), shape or [None] * x.ndim)


def widened(x):
    if isinstance(x, Parts):
        return Parts([widened(part) for part in x], widened(np.empty(0, x.dtype)).dtype, x.rank)
    if isinstance(x, Maybe):
        return Maybe(widened(x.value), x.has)
    return x.astype(np.float64) if x is not None and is_float(x.dtype) else x


def text_of(x, with_values):
    if isinstance(x, Parts):
        return f"[{', '.join(text_of(part, False) for part in x)}] of {x.dtype}"
    if isinstance(x, Maybe):
        return f"optional {text_of(x.value, False)}" if x.has else f"no {text_of(x.value, False)}"
    if x is None:
        return "-"
    return f"{x.dtype}{list(x.shape)}" + (f"={x.tolist()}" if with_values and x.size < 9 else "")


@dataclass
class Sample:
    op: str
    opset: int
    inputs: list  # arrays; None where an optional input is absent
    attributes: dict = field(default_factory=dict)
    constants: set = field(default_factory=set)  # positions of inputs that are initializers
    outputs: int = 1
    symbolic: dict = field(default_factory=dict)  # (input, axis) -> name of a symbolic dimension
    terms: int = 1  # how many products or addends meet in one output element: widens the tolerance
    dtypes: list = None  # of the inputs in the model, kept when the sample is widened
    coarsest: np.dtype = None  # of the types on the way, where it has less precision than the output's
    types: list = None  # of the outputs, as dtypes, where the shape inference of ONNX gives none or a wrong one
    plan: dict = None  # of the graphs that are attributes: what the generator means by them

    @property
    def dtype(self):
        """Of the first input in the model."""
        return self.dtypes[0]

    def widened(self):
        """The same sample in float64. Attributes are float32 in the file, so they stay rounded to it."""
        inputs = [widened(x) for x in self.inputs]
        single = {name: rounded_to_single(value) for name, value in self.attributes.items()}
        dtypes = [None if x is None else x.dtype for x in self.inputs]
        return Sample(
            self.op, self.opset, inputs, single, self.constants, self.outputs, dtypes=dtypes, types=self.types,
            plan=self.plan,
        )  # fmt: skip

    def model(self):
        names = [f"x{i}" if x is not None else "" for i, x in enumerate(self.inputs)]
        while names and not names[-1]:
            names.pop()
        outputs = [f"y{i}" for i in range(self.outputs)]
        domain = domain_of(self.op)
        node = helper.make_node(
            self.op, names, outputs, name=f"{self.op}_under_test", domain=domain, **self.attributes
        )
        initializers, inputs = [], []
        for i, x in enumerate(self.inputs):
            if x is None:
                continue
            if i in self.constants:
                initializers.append(numpy_helper.from_array(x, names[i]))
            else:
                extents = enumerate(getattr(x, "shape", ()))
                shape = [self.symbolic.get((i, axis), size) for axis, size in extents]
                inputs.append(helper.make_value_info(names[i], type_of(x, shape)))
        values = [onnx.ValueInfoProto(name=name) for name in outputs]
        if self.types:
            values = [
                helper.make_value_info(name, like.type())
                if isinstance(like, (Parts, Maybe))
                else helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(like), None)
                for name, like in zip(outputs, self.types, strict=True)
            ]
        graph = helper.make_graph([node], f"one_{self.op}", inputs, values, initializers)
        opsets = [helper.make_opsetid(domain, self.opset)]
        opsets += [helper.make_opsetid("", LAST_OPSET)] if domain else []
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 10
        if self.types:
            return model
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        for value, known in zip(model.graph.output, inferred.graph.output, strict=True):
            assert known.type.tensor_type.elem_type != TensorProto.UNDEFINED, f"no output type for {self}"
            value.CopyFrom(known)
        return model

    def feeds(self):
        given = {f"x{i}": x for i, x in enumerate(self.inputs) if x is not None and i not in self.constants}
        return {name: (x.value if x.has else None) if isinstance(x, Maybe) else x for name, x in given.items()}

    def __str__(self):
        shapes = ", ".join(text_of(x, i in self.constants) for i, x in enumerate(self.inputs))
        return f"{self.op}({shapes}) {self.attributes} opset {self.opset} symbolic {sorted(self.symbolic)}"


class Draw:
    """Random choices for one sample of `op`, at an opset of its domain: of ONNX's own from 7 to the last."""

    SIZES = (1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 31)

    def __init__(self, op, rng):
        self.op, self.rng = op, rng
        versions = list(versions_of(op))
        starts = [*versions, last_opset(op) + 1]
        chosen = int(rng.integers(len(versions)))
        self.opset = int(rng.integers(starts[chosen], starts[chosen + 1]))

    def choice(self, options):
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability):
        return bool(self.rng.random() < probability)

    def integer(self, low, high):
        """low <= result <= high"""
        return int(self.rng.integers(low, high + 1))

    def dtype(self, parameter="T", only=None):
        names = [n for n in allowed_dtypes(self.op, self.opset, parameter) if only is None or n in only]
        return DTYPES[self.choice(names)]

    def size(self, zero=0.06):
        return 0 if self.chance(zero) else self.choice(self.SIZES)

    def shape(self, low=0, high=6, zero=0.06, elements=6000):
        while True:
            shape = [self.size(zero) for _ in range(self.integer(low, high))]
            if np.prod(shape) <= elements:
                return shape

    def array(self, shape, dtype, low=-3.0, high=3.0):
        """Uniform values; for integers the range is rounded inwards, for unsigned ones it starts at 0."""
        if dtype == np.bool_:
            return np.asarray(self.rng.random(shape) < 0.5)
        if dtype == TEXT:
            return np.asarray(self.rng.choice(np.array(WORDS, TEXT), shape), TEXT)
        if dtype == DTYPES["float8e8m0"]:
            return np.asarray(2.0 ** self.rng.integers(-6, 7, shape)).astype(dtype)
        if is_float(dtype):
            return np.asarray(self.rng.uniform(low, high, shape)).astype(dtype)
        least, largest = limits(dtype)
        low, high = max(low, least), min(high, largest)
        return np.asarray(self.rng.integers(int(np.ceil(low)), int(np.floor(high)) + 1, shape)).astype(dtype)

    def broadcast(self, shape):
        """A shape that broadcasts to `shape`: some sizes become 1 and leading axes may go."""
        result = [1 if self.chance(0.3) else size for size in shape]
        return result[self.integer(0, len(result)) :] if self.chance(0.4) else result

    def axis(self, rank, negative=True):
        axis = self.integer(0, rank - 1)
        return axis - rank if negative and self.chance(0.5) else axis

    def axes(self, rank, low=1, negative=True):
        chosen = self.rng.permutation(rank)[: self.integer(low, rank)]
        return [int(a) - rank if negative and self.chance(0.5) else int(a) for a in chosen]

    def int64(self, values):
        return np.array(values, np.int64)

    def sample(self, inputs, symbolic=True, fixed=(), **options):
        """`symbolic`: about half of the samples have some dimensions symbolic; equal sizes share no name.

        `fixed` are inputs whose length decides the rank of the result: what has an unknown rank is not compiled.
        """
        s = Sample(self.op, self.opset, inputs, **options)
        if symbolic and self.chance(0.5):
            for i, x in enumerate(inputs):
                if not isinstance(x, np.ndarray) or i in s.constants or i in fixed:
                    continue
                for axis in range(x.ndim):
                    if self.chance(0.4):
                        s.symbolic[i, axis] = f"n{i}_{axis}"
        return s
