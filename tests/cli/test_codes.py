"""The codes of what the command refuses by itself, as LATHE_DEBUG=1 shows them."""

import numpy as np
import pytest

from tests.support import paths


def code_of(lathe_cli, *arguments, exit_code=1):
    outcome = lathe_cli.run(*arguments, env=paths.environment(LATHE_DEBUG="1"))
    assert outcome.code == exit_code, str(outcome)
    codes = [line.split()[1] for line in outcome.err.splitlines() if line.startswith("  code: ")]
    assert len(codes) == 1, str(outcome)
    return codes[0]


def test_codes_are_not_shown_unasked(lathe_cli):
    assert "code:" not in lathe_cli.fails("opt").err


@pytest.mark.parametrize(
    "arguments",
    [("opt",), ("opt", "{model}", "-o", "{folder}/none/x"), ("compile", "{model}", "--dim", "batch", "-o", "x.so")],
)
def test_options(lathe_cli, tmp_path, arguments):
    words = [word.format(model=paths.DIGITS_MODEL, folder=tmp_path) for word in arguments]
    assert code_of(lathe_cli, *words) == "tool-option"


def test_inputs_of_run(lathe_cli, digits_artifact, tmp_path):
    assert code_of(lathe_cli, "run", digits_artifact) == "tool-run"
    (tmp_path / "bad.npy").write_bytes(b"text")
    assert code_of(lathe_cli, "run", digits_artifact, "--input", f"image={tmp_path / 'bad.npy'}") == "tool-npy"
    np.save(tmp_path / "small.npy", np.zeros((1, 1, 8, 7), np.float32))
    assert code_of(lathe_cli, "run", digits_artifact, "--input", f"image={tmp_path / 'small.npy'}") == "runtime-input"
    (tmp_path / "text.so").write_bytes(b"text")
    assert code_of(lathe_cli, "run", tmp_path / "text.so") == "runtime-failed"


def test_scripts(lathe_cli, tmp_path):
    assert code_of(lathe_cli, "opt", tmp_path / "none.relax") == "driver-script-file"
    lathe_cli("compile", paths.DIGITS_MODEL, "-o", tmp_path / "digits.relax")
    taken = code_of(lathe_cli, "compile", tmp_path / "digits.relax", "--dim", "batch=1", "-o", tmp_path / "x.so")
    assert taken == "driver-script-dims"


def test_verify_without_a_python_to_ask(lathe_cli):
    words = ["verify", paths.DIGITS_MODEL, "--python", "no-such-python"]
    assert code_of(lathe_cli, *words, exit_code=0) == "verify-no-onnxruntime"
    assert "there is no no-such-python" in lathe_cli(*words).out


def test_models_written_again(lathe_cli, tmp_path):
    from onnx import TensorProto, helper, save

    info = helper.make_tensor_value_info
    nodes = [helper.make_node("RandomUniform", [], [name], shape=[4]) for name in ("nobody", "r")]
    nodes.append(helper.make_node("Add", ["x", "r"], ["y"]))
    x, y = info("x", TensorProto.FLOAT, [4]), info("y", TensorProto.FLOAT, [4])
    opsets = [helper.make_opsetid("", 17)]
    model = tmp_path / "drawn.onnx"
    save(helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=opsets, ir_version=8), model)
    assert code_of(lathe_cli, "opt", model, "-o", tmp_path / "a.onnx") == "rewrite-differs"
    assert code_of(lathe_cli, "opt", model, "--outputs", "none", "-o", tmp_path / "a.onnx") == "rewrite-no-value"
    assert code_of(lathe_cli, "opt", model, "--passes=none_such", "-o", tmp_path / "a.onnx") == "driver-unknown-pass"
