"""The lines: networks and single operators, each made by a function, nothing of it stored."""

from dataclasses import dataclass
from functools import partial
from typing import Callable

import numpy as np
import onnx
from onnx import TensorProto

from bench import operators
from tests.models import MODELS, random_input
from tests.models.bert import bert
from tests.models.full_size import full_size
from tests.models.gpt2 import gpt2


@dataclass(frozen=True)
class Line:
    """`make` gives the model, whose shapes are all fixed."""

    name: str
    group: str
    make: Callable[[], onnx.ModelProto]
    quick: bool = False  # one of those that --quick runs
    words: int = 1000  # in the vocabulary of its token ids
    must_differ: bool = True  # the outputs of two inputs, or the line measures nothing

    def feeds(self, model, seed):
        """Random inputs for `model`: floats by their shape, token ids under `words`, `rows` anywhere in their
        table, masks that drop the last eighth."""
        rng = np.random.default_rng(seed)
        result = {}
        for value in model.graph.input:
            tensor = value.type.tensor_type
            shape = [d.dim_value for d in tensor.shape.dim]
            if value.name == "mask":
                result[value.name] = np.broadcast_to(np.arange(shape[-1]) * 8 < 7 * shape[-1], shape).astype(np.int64)
            elif value.name == "rows":
                result[value.name] = rng.integers(0, model.graph.initializer[0].dims[0], shape)
            elif tensor.elem_type == TensorProto.INT64:
                result[value.name] = rng.integers(0, self.words, shape)
            else:
                result[value.name] = random_input(shape, int(rng.integers(1 << 30)))
        return result


def _networks():
    for batch in (1, 8):
        for name in ("resnet50", "mobilenet_v2"):
            yield f"{name}-b{batch}", partial(MODELS[name], batch=batch, height=224, width=224), batch == 1
        yield f"bert_base-b{batch}", partial(bert, batch=batch), False
    yield "mlp20x64-b1", partial(operators.narrow_mlp, layers=20, width=64), True
    yield "gpt2-prefill128", partial(gpt2, length=128), False
    yield "gpt2-decode256", partial(gpt2, length=1, past=256), False


# Networks that nothing here was tuned for, as large as people have them, in a group of their own.
OTHER_NETWORKS = (
    "efficientnet", "unet", "vit", "tcn", "densenet121", "inception_v1", "inception_v2", "shufflenet",
    "light_squeezenet", "alexnet", "zfnet512", "vgg19", "lstm_language", "gru_tagger", "resnext", "regnet",
    "mobilenet_v3", "shufflenet_v2", "convnext", "detector", "deeplab", "segformer", "edsr", "wav2vec", "llama-prefill",
    "llama-decode",
)  # fmt: skip


def all_lines():
    lines = [Line(name, "network", make, quick) for name, make, quick in _networks()]
    for name in OTHER_NETWORKS:
        lines.append(Line(f"{name}-b1", "other", partial(full_size, name, 1), name == "shufflenet", words=51))
    for group, rows in operators.GROUPS.items():
        for number, (name, make) in enumerate(rows()):
            lines.append(Line(name, group, make, quick=number % 8 == 0))
    return lines


def chosen_lines(names=(), groups=(), quick=False):
    """The lines and groups named, or all; with `quick` (and no names) only every eighth line of a group."""
    lines = all_lines()
    known = {line.name for line in lines} | {line.group for line in lines}
    unknown = [name for name in (*names, *groups) if name not in known]
    if unknown:
        raise ValueError(f"no line or group is named '{unknown[0]}'; --list shows them")
    if names:
        return [line for line in lines if line.name in names or line.group in (*names, *groups)]
    lines = [line for line in lines if not groups or line.group in groups]
    return [line for line in lines if line.quick] if quick else lines
