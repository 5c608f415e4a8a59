"""Every network as large as people have it: for the tests at full size, and for the report beside ONNX Runtime."""

import numpy as np
from onnx import TensorProto

from tests.models import MODELS, random_input
from tests.models.bert import bert
from tests.models.gpt2 import gpt2
from tests.models.light import LIGHT, light
from tests.models.llama import llama
from tests.models.recurrent import gru_tagger, lstm_language

IMAGES = {
    "digits": dict(height=28, width=31),
    "mlp": dict(features=784, hidden=(1021, 512, 509), classes=1000),
    "resnet50": dict(height=224, width=192),
    "mobilenet_v2": dict(height=224, width=192),
    "squeezenet": dict(height=227, width=195),
    "transformer": dict(length=128, features=768, heads=12, layers=6, inner=3072, classes=100),
    "efficientnet": dict(height=224, width=192, multiplier=1.0, classes=1000),
    "unet": dict(height=160, width=128, multiplier=1.0, levels=4),
    "vit": dict(height=224, width=192, features=384, heads=6, layers=12, inner=1536, classes=1000),
    "tcn": dict(length=1021, channels=(150, 150, 150, 150, 150), window=5),
    "resnext": dict(height=224, width=192, blocks=(3, 4, 6, 3), cardinality=32, classes=1000),
    "regnet": dict(
        height=224, width=192, widths=(64, 144, 320, 784), depths=(1, 3, 8, 2), group_width=16, classes=1000
    ),
    "mobilenet_v3": dict(height=224, width=192, multiplier=1.0, classes=1000),
    "shufflenet_v2": dict(
        height=224, width=192, widths=(24, 116, 232, 464), depths=(4, 8, 4), head=1024, classes=1000
    ),
    "convnext": dict(height=224, width=192, widths=(96, 192, 384, 768), depths=(3, 3, 9, 3), classes=1000),
    "detector": dict(height=320, width=256, classes=80),
    "deeplab": dict(height=257, width=225, widths=(32, 64, 128, 256), depth=2, pyramid=128, classes=21),
    "segformer": dict(
        height=256, width=224, widths=(32, 64, 160, 256), heads=(1, 2, 5, 8), depths=(2, 2, 2, 2),
        reductions=(8, 4, 2, 1), growth=4, decoder=256, classes=150,
    ),
    "edsr": dict(height=96, width=80, features=64, blocks=16),
    "wav2vec": dict(
        length=16000, windows=((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)), channels=512, features=768,
        heads=12, taps=128, groups=16, layers=4, inner=3072, classes=32,
    ),
}
LLAMA = dict(features=768, heads=12, shared=3, layers=6, inner=2048, words=5003)
WORDS = 5003  # fewer than BERT and GPT-2 have: a table of all takes longer to draw than the rest to compute

LANGUAGE = {
    "bert": lambda batch: bert(batch, 128, words=WORDS),
    "gpt2-prefill": lambda batch: gpt2(batch, 64, words=WORDS),
    "gpt2-decode": lambda batch: gpt2(batch, 1, past=127, words=WORDS),
    "llama-prefill": lambda batch: llama(batch, 128, **LLAMA),
    "llama-decode": lambda batch: llama(batch, 1, past=256, **LLAMA),
}
RECURRENT = {
    "lstm_language": lambda batch, length=43: lstm_language(batch, length, features=256, hidden=(512, 384)),
    "gru_tagger": lambda batch, length=43: gru_tagger(batch, length, features=200, hidden=300),
}
NETWORKS = [*IMAGES, *LIGHT, *LANGUAGE, *RECURRENT]


def full_size(name, batch):
    if name in IMAGES:
        return MODELS[name](batch=batch, **IMAGES[name])
    if name in LIGHT:
        return light(name, batch)
    return (LANGUAGE | RECURRENT)[name](batch)


def random_feeds(model, seed):
    """For a model whose dimensions are all known: words that every vocabulary here has, masks, images, states."""
    rng, feeds = np.random.default_rng(seed), {}
    for value in model.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == TensorProto.INT64:
            feeds[value.name] = rng.integers(0, 2 if value.name == "mask" else 51, shape)
        elif len(model.graph.input) == 1:
            feeds[value.name] = random_input(shape, seed)
        else:
            feeds[value.name] = rng.standard_normal(shape, np.float32)
    return feeds
