"""What a user does wrong arrives as lathe.Error with diagnostics, in a sentence, and leaves everything usable."""

import numpy as np
import onnx
import pytest

from tests.hostile import files
from tests.support import paths


@pytest.fixture(scope="module")
def exe(lathe):
    return lathe.compile(paths.DIGITS_MODEL)


def error_of(lathe, call):
    with pytest.raises(lathe.Error) as caught:
        call()
    assert caught.value.diagnostics, "no diagnostics"
    text = str(caught.value)
    assert "Traceback" not in text and "internal" not in text.lower()
    return text


@pytest.mark.parametrize("name", ["unknown operator", "missing initializer", "cycle", "opset 999", "payload too short"])
def test_bad_models(lathe, name):
    model, words = files.MODELS_THAT_HARM[name]
    text = error_of(lathe, lambda: lathe.compile(model()))
    assert any(word in text for word in words), text


def test_shapes_that_do_not_broadcast_are_named(lathe):
    model = files.MODELS_THAT_HARM["shapes that do not broadcast"][0]()
    text = error_of(lathe, lambda: lathe.compile(model))
    assert "the_Add" in text and "[3, 4]" in text and "[4, 3]" in text


def test_bytes_that_are_no_model(lathe):
    error_of(lathe, lambda: lathe.compile(b"not a model at all"))


def test_a_missing_file_is_named(lathe, tmp_path):
    assert "nothing.onnx" in error_of(lathe, lambda: lathe.compile(tmp_path / "nothing.onnx"))


def test_unknown_target(lathe):
    assert "z80" in error_of(lathe, lambda: lathe.compile(paths.DIGITS_MODEL, target="z80"))


@pytest.mark.parametrize(
    "x, words",
    [
        (np.zeros((2, 1, 8, 9), np.float32), ["9"]), (np.zeros((2, 8, 8), np.float32), ["[2, 8, 8]"]),
        (np.zeros((2, 1, 8, 8), np.float64), ["float64"]), (np.zeros((2, 1, 8, 8), np.int32), ["int32"]),
    ],
)  # fmt: skip
def test_wrong_inputs(lathe, exe, x, words):
    text = error_of(lathe, lambda: exe(x))
    assert "image" in text and any(word in text for word in words), text
    assert exe(np.zeros((2, 1, 8, 8), np.float32)).shape == (2, 10)


def test_wrong_number_and_names_of_inputs(lathe, exe):
    x = np.zeros((1, 1, 8, 8), np.float32)
    for call in (lambda: exe(), lambda: exe(x, x), lambda: exe(picture=x), lambda: exe(x, image=x)):
        with pytest.raises((lathe.Error, TypeError)):
            call()


def test_diagnostics_have_code_and_message(lathe):
    with pytest.raises(lathe.Error) as caught:
        lathe.compile(files.MODELS_THAT_HARM["unknown operator"][0]())
    (diagnostic,) = caught.value.diagnostics
    assert "Frobnicate" in diagnostic.message and diagnostic.code


def code_of(lathe, call):
    with pytest.raises(lathe.Error) as caught:
        call()
    return caught.value.diagnostics[0].code


def test_codes_of_what_the_package_refuses_by_itself(lathe, exe, tmp_path):
    digits = paths.DIGITS_MODEL
    assert code_of(lathe, lambda: lathe.compile(digits, disabled_passes=["polish"])) == "driver-unknown-pass"
    assert code_of(lathe, lambda: exe(np.zeros((2, 8, 8), np.float32))) == "runtime-input"
    assert code_of(lathe, lambda: lathe.load(tmp_path / "none.so")) == "runtime-failed"
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    script = lathe.import_onnx(onnx.helper.make_model(graph, ir_version=10)).script()
    (tmp_path / "other.relax").write_text(script.replace("def main(", "def other("))
    assert code_of(lathe, lambda: lathe.compile(tmp_path / "other.relax", target="interp")) == "driver-no-main"
    elsewhere = lathe.compile(digits, target="null")
    assert code_of(lathe, lambda: elsewhere(np.zeros((1, 1, 8, 8), np.float32))) == "codegen-unsupported-target"


def test_an_error_is_an_exception_of_python_s_own_kind(lathe):
    assert issubclass(lathe.Error, Exception)


def test_a_failed_compile_leaves_the_next_one_alone(lathe):
    for _ in range(3):
        with pytest.raises(lathe.Error):
            lathe.compile(b"\xff" * 100)
        assert lathe.compile(files.add_weight())(files.ARRAY).shape == (3, 4)
    onnx.checker.check_model(files.add_weight())
