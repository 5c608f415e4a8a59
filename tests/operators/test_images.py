"""Images through the whole path: compiled, saved, opened without the compiler, and held against Pillow, which decodes
with builds of its own of the same libraries.
"""

import io
import struct
import subprocess
import zlib

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import lathe
from tests.operators import images
from tests.operators.sample import Draw
from tests.support import paths
from tests.support.artifacts import load_runtime_elsewhere

FORMATS = ("RGB", "BGR", "Grayscale")
# What an artifact may grow by when it decodes; nothing of it is linked into one that does not.
MOST_BYTES_OF_CODECS = 2_500_000


def model(pixel_format="RGB", length="n", constant=None):
    node = helper.make_node("ImageDecoder", ["x"], ["y"], pixel_format=pixel_format, name="the_decoder")
    inputs = [] if constant is not None else [helper.make_tensor_value_info("x", TensorProto.UINT8, [length])]
    weights = [] if constant is None else [numpy_helper.from_array(constant, "x")]
    graph = helper.make_graph([node], "images", inputs, [helper.make_empty_tensor_value_info("y")], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


@pytest.fixture(scope="module")
def decoders():
    return {name: lathe.compile(model(name)) for name in FORMATS}


def a_file(name, seed=0):
    file = images.written(Draw("ImageDecoder", np.random.default_rng(seed)), name)
    return file, images.PIXELS[file.tobytes()]


@pytest.mark.parametrize("name", images.WRITERS)
def test_a_saved_artifact_decodes_without_the_compiler(name, tmp_path):
    file, pixels = a_file(name)
    executable = lathe.compile(model())
    executable.save(tmp_path / "images.so")
    assert np.array_equal(executable(file), pixels)
    assert np.array_equal(load_runtime_elsewhere(tmp_path / "images.so", [file])[0], pixels)


def test_a_constant_is_decoded_when_it_runs():
    file, pixels = a_file("png")
    assert np.array_equal(lathe.compile(model(constant=file))(), pixels)


def test_a_length_may_be_known():
    file, pixels = a_file("tiff")
    assert np.array_equal(lathe.compile(model(length=len(file)))(file), pixels)


def test_what_follows_sees_the_runs_size():
    """An image as a batch of floats with channels first, of a size that the run decides."""
    nodes = [
        helper.make_node("ImageDecoder", ["x"], ["image"]),
        helper.make_node("Cast", ["image"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["real"], ["planes"], perm=[2, 0, 1]),
        helper.make_node("ReduceMean", ["planes", "axes"], ["y"], keepdims=0),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.UINT8, ["n"])]
    weights = [numpy_helper.from_array(np.array([1, 2]), "axes")]
    graph = helper.make_graph(nodes, "means", inputs, [helper.make_empty_tensor_value_info("y")], weights)
    executable = lathe.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10))
    for name in images.WRITERS:
        file, pixels = a_file(name, 1)
        np.testing.assert_allclose(executable(file), pixels.mean((0, 1)), rtol=1e-5)


def test_codecs_are_linked_where_they_are_called_and_need_nothing(tmp_path):
    """The codecs' own calls of the system are replaced: none may stay that opens files, prints or ends the process."""
    lathe.compile(model()).save(tmp_path / "images.so")
    identity = helper.make_node("Identity", ["x"], ["y"])
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.UINT8, ["n"])] for name in "xy")
    lathe.compile(helper.make_model(helper.make_graph([identity], "none", inputs, outputs))).save(tmp_path / "none.so")
    plain, decoding = ((tmp_path / f"{name}.so").stat().st_size for name in ("none", "images"))
    print(f"an artifact of {plain} bytes, one that decodes of {decoding}")
    assert plain < 100_000 and decoding < plain + MOST_BYTES_OF_CODECS
    dynamic = subprocess.run(["readelf", "-dW", tmp_path / "images.so"], capture_output=True, text=True, check=True)
    assert "NEEDED" not in dynamic.stdout
    symbols = subprocess.run(
        ["readelf", "--dyn-syms", "-W", tmp_path / "images.so"], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in symbols.stdout.splitlines() if line.strip()[:1].isdigit()][1:]
    outside = {row[-1] for row in rows if row[-2] == "UND"}
    print(f"it calls {' '.join(sorted(outside))}")
    assert "memcpy" in outside
    assert not outside & {"exit", "abort", "open", "fopen", "fprintf", "write", "malloc", "getenv", "stderr", "pow"}
    exported = {row[-1] for row in rows if row[-2] != "UND"}
    assert exported == {"lathe_artifact_v1"}


def test_memory_of_a_decoding_is_the_runs():
    """A small file of a large image."""
    header = struct.pack(">IIBBBBB", 4000, 4000, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(4000 * (1 + 3 * 4000)))
    file = images.PNG + images.chunk(b"IHDR", header) + images.chunk(b"IDAT", body)
    executable, limits = lathe.compile(model()), [lathe.Limits(max_memory=size) for size in (40_000_000, 120_000_000)]
    with pytest.raises(lathe.RunError, match="the_decoder.*limit"):
        executable.run([np.frombuffer(file, np.uint8)], limits[0])
    assert executable.run([np.frombuffer(file, np.uint8)], limits[1])[0].shape == (4000, 4000, 3)


# Against Pillow.


def pillow(file, pixel_format):
    image = Image.open(io.BytesIO(file))
    image.load()
    if image.mode.startswith("I;16"):  # Pillow clips at 255, where the lower byte goes for colours
        image = Image.fromarray((np.array(image).astype(np.uint16) >> 8).astype(np.uint8))
    array = np.array(image.convert("L" if pixel_format == "Grayscale" else "RGB"))
    return array[..., None] if pixel_format == "Grayscale" else array[..., ::-1] if pixel_format == "BGR" else array


def waves(rng, shape):
    """What photographs are like: smooth, with some noise."""
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]]
    planes = [128 + 100 * np.sin(x / (3 + k) + k) * np.cos(y / (4 + k)) for k in range(shape[2])]
    return np.clip(np.stack(planes, -1) + rng.normal(0, 12, shape), 0, 255).astype(np.uint8)


def picture(rng, mode, height, width):
    channels = {"L": 1, "1": 1, "P": 3}.get(mode, len(mode))
    if mode == "I;16":
        return Image.fromarray(rng.integers(0, 65536, (height, width)).astype(np.uint16))
    shape = (height, width, channels)
    array = waves(rng, shape) if rng.random() < 0.7 else rng.integers(0, 256, shape).astype(np.uint8)
    if mode == "P":
        return Image.fromarray(array).quantize(int(rng.integers(2, 257)))
    image = Image.fromarray(array[..., 0] if channels == 1 else array, "L" if mode == "1" else mode)
    return image.convert("1") if mode == "1" else image


WRITTEN_BY_PILLOW = {
    "JPEG": (("L", "RGB", "CMYK"), lambda rng: {
        "quality": int(rng.integers(5, 100)), "progressive": bool(rng.integers(2)),
        "subsampling": int(rng.integers(3)), "optimize": bool(rng.integers(2)),
    }),
    "PNG": (("1", "L", "LA", "RGB", "RGBA", "P", "I;16"), lambda rng: {}),
    "WEBP": (("L", "RGB", "RGBA"), lambda rng: {
        "lossless": bool(rng.integers(2)), "quality": int(rng.integers(5, 100)), "exact": bool(rng.integers(2)),
    }),
    "animated WEBP": (("RGB", "RGBA"), lambda rng: {"save_all": True, "lossless": bool(rng.integers(2))}),
    "TIFF": (("1", "L", "LA", "RGB", "RGBA", "P", "I;16", "CMYK"), lambda rng: {
        "compression": str(rng.choice(["raw", "tiff_lzw", "packbits", "tiff_adobe_deflate"])),
    }),
    "fax TIFF": (("1",), lambda rng: {"compression": str(rng.choice(["group3", "group4"]))}),
    "JPEG TIFF": (("L", "RGB"), lambda rng: {"compression": "jpeg", "quality": int(rng.integers(20, 100))}),
    "JPEG2000": (("L", "LA", "RGB", "RGBA"), lambda rng: {
        "irreversible": bool(rng.integers(2)), "num_resolutions": int(rng.integers(1, 4)),
        "no_jp2": bool(rng.integers(2)),
    }),
    "BMP": (("1", "L", "P", "RGB", "RGBA"), lambda rng: {}),
    "PPM": (("1", "L", "RGB"), lambda rng: {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRITTEN_BY_PILLOW)
def test_images_are_what_pillow_sees(kind, decoders, seed, request):
    rng = np.random.default_rng([seed, len(kind)])
    modes, options = WRITTEN_BY_PILLOW[kind]
    unsaved = 0
    for index in range(request.config.getoption("--count") or 8):
        for mode in modes:
            height, width = (int(n) for n in rng.integers(1, 70, 2))
            height, width = [(height, width), (height, width), (1, 1), (1, width), (height, 1)][int(rng.integers(5))]
            chosen, file = options(rng), io.BytesIO()
            if kind.startswith("animated"):
                chosen["append_images"] = [picture(rng, mode, height, width)]
            try:
                picture(rng, mode, height, width).save(file, kind.split()[-1], **chosen)
            except OSError:  # JPEG 2000 wants larger images for that many resolutions
                unsaved += 1
                continue
            for pixel_format, decoder in decoders.items():
                ours = decoder(np.frombuffer(file.getvalue(), np.uint8))
                theirs = pillow(file.getvalue(), pixel_format)
                assert np.array_equal(ours, theirs), f"{index}: {mode} {height}x{width} {chosen} as {pixel_format}"
    assert unsaved < 3 * len(modes) or kind == "JPEG2000"


def test_what_is_linked_after_a_decoder_is_the_same(decoders, tmp_path):
    """The linker is part of the process, and keeps nothing of what it linked before."""
    written = []
    for turn in range(6):
        lathe.compile(paths.DIGITS_MODEL).save(tmp_path / "digits.so")
        written.append((tmp_path / "digits.so").read_bytes())
        decoders["RGB"].save(tmp_path / f"decoder{turn}.so")
    assert len(set(written)) == 1
