"""The table of operators with their generators, and how one sample is checked."""

import zlib

import numpy as np
from onnx import helper

from tests.operators import (
    attention, by_data, chance, classical, contraction, control, creating, elementwise, images, indexing,
    normalizing, quantized, recurrent, reference, resizing, sampling, sequences, shaping, strings,
)  # fmt: skip
from tests.operators.claimed import CLAIMED
from tests.operators.sample import Draw
from tests.support.backends import run_model

FAMILIES = (
    elementwise, contraction, shaping, indexing, quantized, recurrent, by_data, sampling, creating, normalizing,
    resizing, attention, classical, strings, chance, sequences, control,
    images,
)  # fmt: skip
GENERATORS = {op: generate for family in FAMILIES for op, generate in family.GENERATORS.items()}
assert set(GENERATORS) == set(CLAIMED), set(GENERATORS) ^ set(CLAIMED)


def draw(op, seed, index):
    """The sample number `index` of an operator under a seed: always the same."""
    return GENERATORS[op](Draw(op, np.random.default_rng([seed, zlib.crc32(op.encode()), index])))


def elements_of(kind):
    """The dtype of the tensors that a value of the type holds."""
    for inner in ("sequence_type", "optional_type"):
        if kind.HasField(inner):
            return elements_of(getattr(kind, inner).elem_type)
    return helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)


def check(backend, sample):
    """None, or how the backend's answer differs. Raises what the backend raises."""
    model = sample.model()
    if sample.op in chance.STATISTICS:
        return chance.difference(sample, lambda: run_model(backend, model, sample.feeds()))
    dtypes = [elements_of(y.type) for y in model.graph.output]
    wanted = reference.expected(sample, dtypes)
    outputs = run_model(backend, model, sample.feeds())
    if len(outputs) != len(wanted):
        return f"{len(outputs)} outputs, wanted {len(wanted)}"
    for i, (ours, theirs) in enumerate(zip(outputs, wanted, strict=True)):
        if said := reference.difference(sample, ours, theirs):
            return f"output {i}: {said}"
    return None
