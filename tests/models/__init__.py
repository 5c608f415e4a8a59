"""The networks of the accuracy tests, with random weights: `MODELS[name](batch=..., height=..., width=...)`.

python -m tests.models resnet50 --height 224 --width 192 --batch 1 -o resnet50.onnx
"""

from tests.models.builder import random_input
from tests.models.convnext import convnext
from tests.models.deeplab import deeplab
from tests.models.detector import detector
from tests.models.edsr import edsr
from tests.models.efficientnet import efficientnet
from tests.models.grouped import regnet, resnext
from tests.models.mobile import mobilenet_v3, shufflenet_v2
from tests.models.mobilenet_v2 import mobilenet_v2
from tests.models.resnet50 import resnet50
from tests.models.segformer import segformer
from tests.models.small import digits, mlp
from tests.models.squeezenet import squeezenet
from tests.models.tcn import tcn
from tests.models.transformer import transformer
from tests.models.unet import unet
from tests.models.vit import vit
from tests.models.wav2vec import wav2vec

MODELS = {
    "digits": digits,
    "mlp": mlp,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "squeezenet": squeezenet,
    "transformer": transformer,
    "efficientnet": efficientnet,
    "unet": unet,
    "vit": vit,
    "tcn": tcn,
    "resnext": resnext,
    "regnet": regnet,
    "mobilenet_v3": mobilenet_v3,
    "shufflenet_v2": shufflenet_v2,
    "convnext": convnext,
    "detector": detector,
    "deeplab": deeplab,
    "wav2vec": wav2vec,
    "segformer": segformer,
    "edsr": edsr,
}

IMAGE_MODELS = ("resnet50", "mobilenet_v2", "squeezenet")


def input_for(model, batch, seed):
    """A random input for the model's only input; symbolic dimensions take `batch` first, then 19."""
    (value,) = model.graph.input
    dims = [d.dim_value if d.HasField("dim_value") else None for d in value.type.tensor_type.shape.dim]
    shape = [(batch if i == 0 else 19) if d is None else d for i, d in enumerate(dims)]
    return {value.name: random_input(shape, seed)}
