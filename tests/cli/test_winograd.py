"""The option --winograd of the commands that compile a model."""

import json

import numpy as np
import onnx
import pytest

from tests.accuracy.test_winograd import convolutions, relative
from tests.support.backends import onnxruntime_session


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(convolutions(1, 32, 20, 20, 32), path)
    return path


def test_compile_says_what_error_it_brings(lathe_cli, tmp_path, model):
    made = lathe_cli("compile", model, "-o", tmp_path / "model.so", "--winograd")
    assert made.err.startswith("winograd: 2 convolutions; the largest error of one is ")
    plain = lathe_cli("compile", model, "-o", tmp_path / "plain.so")
    assert "winograd" not in plain.err
    np.save(tmp_path / "x.npy", np.ones((1, 32, 20, 20), np.float32))
    outputs = []
    for name in ("model", "plain"):
        lathe_cli("run", tmp_path / f"{name}.so", "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / f"{name}.npy")
        outputs.append(np.load(tmp_path / f"{name}.npy"))
    np.testing.assert_allclose(*outputs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("tile, count", [(0, 0), (2, 2), (4, 2)])
def test_the_tile_is_open_to_the_user(lathe_cli, tmp_path, model, tile, count):
    lathe_cli("compile", model, "-o", tmp_path / "m.relax", "--winograd", "--decide", f"winograd.tile={tile}",
              "--stop-after", "winograd")  # fmt: skip
    assert (tmp_path / "m.relax").read_text().count("R.nn.winograd_input(") == count


def test_a_node_has_a_tile_of_its_own(lathe_cli, tmp_path, model):
    made = lathe_cli("compile", model, "-o", tmp_path / "m.so", "--winograd", "--decide", "end:winograd.tile=0")
    assert made.err.startswith("winograd: 1 convolution;")


NASTY = [(1, 32, 2, 1, 32), (2, 16, 5, 7, 17), (1, 17, 13, 3, 16), (3, 24, 2, 9, 40), (1, 16, 8, 8, 100)]


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("images, channels, height, width, outputs", NASTY)
def test_every_shape_computes_the_same(lathe_cli, tmp_path, tile, images, channels, height, width, outputs):
    onnx.save(convolutions(images, channels, height, width, outputs, pads=(1, 2, 0, 1)), tmp_path / "model.onnx")
    lathe_cli("compile", tmp_path / "model.onnx", "-o", tmp_path / "model.so", "--winograd", "--decide",
              f"winograd.tile={tile}")  # fmt: skip
    x = np.random.default_rng(2).standard_normal((images, channels, height, width)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    lathe_cli("run", tmp_path / "model.so", "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "y.npy")
    wanted = onnxruntime_session(str(tmp_path / "model.onnx")).run(None, {"x": x})[0]
    assert relative(np.load(tmp_path / "y.npy"), wanted) < 1e-5


def test_verify_holds_it_against_the_interpreter(lathe_cli, model):
    made = lathe_cli("verify", model, "--winograd", "--without-onnxruntime")
    assert "note: winograd: 2 convolutions" in made.out


def test_explain_says_why_a_convolution_stays(lathe_cli, tmp_path):
    path = tmp_path / "strided.onnx"
    onnx.save(convolutions(1, 32, 20, 20, 32, strides=[2, 2]), path)
    lathe_cli("explain", path, "--winograd", "--no-run", "-o", tmp_path / "report.json")
    remarks = json.loads((tmp_path / "report.json").read_text())["remarks"]
    said = [r["text"] for r in remarks if r["pass"] == "winograd"]
    assert "its strides are not one" in said
    assert any(r["taken"] for r in remarks if r["pass"] == "winograd")
