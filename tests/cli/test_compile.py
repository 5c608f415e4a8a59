"""lathe compile: every kind of output, targets, dimensions."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest

from tests.models.builder import ModelBuilder
from tests.support import paths
from tests.support.backends import onnxruntime_session

KINDS = {
    ".so": b"\x7fELF", ".o": b"\x7fELF", ".a": b"!<arch>\n", ".ll": None, ".s": None, ".tir": None, ".relax": None,
    ".py": None,
}  # fmt: skip
TEXTS = {".ll": r"^define ", ".s": r"^\s+\.(text|section|globl)", ".tir": r"\bprim_func\b|T\.", ".relax": r"R\.|conv2d",
         ".py": r"^def "}  # fmt: skip


@pytest.mark.parametrize("extension", KINDS)
def test_extension_chooses_the_output(lathe_cli, tmp_path, extension):
    output = tmp_path / f"digits{extension}"
    lathe_cli("compile", paths.DIGITS_MODEL, "-o", output)
    content = output.read_bytes()
    if KINDS[extension]:
        assert content.startswith(KINDS[extension])
    else:
        assert re.search(TEXTS[extension], content.decode(), re.MULTILINE), content[:500]
    if extension == ".a":
        assert "digits" in (tmp_path / "digits.h").read_text()


def test_emit_wins_over_the_extension(lathe_cli, tmp_path):
    lathe_cli("compile", paths.DIGITS_MODEL, "--emit", "ll", "-o", tmp_path / "digits.txt")
    assert "define" in (tmp_path / "digits.txt").read_text()


def test_the_text_of_the_graph_compiles_to_the_same_answers(lathe_cli, tmp_path):
    """The printed relax module is a program: parsed by `lathe opt`, it prints itself."""
    lathe_cli("compile", paths.DIGITS_MODEL, "-o", tmp_path / "digits.relax")
    text = (tmp_path / "digits.relax").read_text()
    again = lathe_cli("opt", tmp_path / "digits.relax").out
    assert again.strip() == text.strip()


@pytest.mark.parametrize("target", ["native", "x86-64-v2", "x86-64-v3"])
def test_targets_give_the_same_answers(lathe_cli, tmp_path, target):
    artifact, image = tmp_path / "digits.so", tmp_path / "image.npy"
    x = np.random.default_rng(3).random((2, 1, 8, 8), np.float32)
    np.save(image, x)
    lathe_cli("compile", paths.DIGITS_MODEL, "-o", artifact, "--target", target)
    lathe_cli("run", artifact, "--input", f"image={image}", "-o", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as outputs:
        assert list(outputs) == ["logits"]
        wanted = onnxruntime_session(str(paths.DIGITS_MODEL)).run(None, {"image": x})[0]
        np.testing.assert_allclose(outputs["logits"], wanted, rtol=1e-4, atol=1e-4)


def test_fixed_dimension(lathe_cli, tmp_path):
    artifact = tmp_path / "digits.so"
    lathe_cli("compile", paths.DIGITS_MODEL, "-o", artifact, "--dim", "batch=4")
    for batch in (4, 3):
        np.save(tmp_path / "x.npy", np.zeros((batch, 1, 8, 8), np.float32))
        command = ("run", artifact, "--input", f"image={tmp_path / 'x.npy'}", "-o", tmp_path / "out.npz")
        if batch == 4:
            lathe_cli(*command)
        else:
            assert "3" in lathe_cli.fails(*command).err


def test_told_sizes(lathe_cli, tmp_path):
    """Legal ones run, likely ones by kernels of their own; others are refused by input and dimension."""
    artifact = tmp_path / "digits.so"
    lathe_cli("compile", paths.DIGITS_MODEL, "-o", artifact, "--dim", "batch=2..6:4,5")
    for batch in (1, 2, 4, 5, 6, 7):
        x = np.random.default_rng(batch).standard_normal((batch, 1, 8, 8), np.float32)
        np.save(tmp_path / "x.npy", x)
        command = ("run", artifact, "--input", f"image={tmp_path / 'x.npy'}", "-o", tmp_path / "out.npz")
        if not 2 <= batch <= 6:
            assert f"'image' is {batch}; it must be from 2 to 6" in lathe_cli.fails(*command).err
            continue
        profile = lathe_cli(*command, "--profile").out
        assert (f"_at_{batch}" in profile) == (batch in (4, 5)), profile
        wanted = onnxruntime_session(str(paths.DIGITS_MODEL)).run(None, {"image": x})[0]
        with np.load(tmp_path / "out.npz") as outputs:
            np.testing.assert_allclose(outputs["logits"], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "options, words",
    [
        (("--target", "z80"), ["z80"]), (("--dim", "batch=-1"), ["-1"]), (("--dim", "batch=many"), ["many"]),
        (("--dim", "batch=1..64:65"), ["65"]), (("--dim", "batch=4..2"), ["2 is less"]),
        (("--dim", "colour=3"), ["colour"]), (("--emit", "gif"), ["gif"]), (("--target", "interp"), ["interp"]),
    ],
)  # fmt: skip
def test_user_errors(lathe_cli, tmp_path, options, words):
    outcome = lathe_cli.fails("compile", paths.DIGITS_MODEL, "-o", tmp_path / "digits.so", *options)
    assert any(word in outcome.err for word in words), outcome.err
    assert not (tmp_path / "digits.so").exists()


def test_unknown_extension_is_named(lathe_cli, tmp_path):
    assert ".gif" in lathe_cli.fails("compile", paths.DIGITS_MODEL, "-o", tmp_path / "digits.gif").err


def test_dump_ir_and_stop_after(lathe_cli, tmp_path):
    folder = tmp_path / "dump"
    lathe_cli("compile", paths.DIGITS_MODEL, "-o", tmp_path / "digits.so", f"--dump-ir={folder}")
    dumps = sorted(path.name for path in folder.iterdir())
    assert len(dumps) > 5 and any("fuse_ops" in name for name in dumps), dumps


def test_a_classifiers_weights_are_asked_for_ahead(lathe_cli, tmp_path):
    """Panels of 1,001 columns end in lanes that nobody reads; their weights are waited for all the same."""
    model, folder = tmp_path / "classifier.onnx", tmp_path / "dumps"
    network = ModelBuilder("classifier", 7)
    rows = network.node("MatMul", network.input("x", [256, 512]), network.normal((512, 512), 0.05))
    mean = network.node("ReduceMean", rows, axes=[0], keepdims=1)
    network.output(network.node("MatMul", mean, network.normal((512, 1001), 0.05)), "y", [1, 1001])
    onnx.save(network.build(), model)
    caches = [{"level": level, "bytes": size} for level, size in ((1, 1 << 15), (2, 1 << 20), (3, 1 << 25))]
    machine = {"kind": "llvm", "triple": "x86_64-unknown-linux-gnu", "features": ["avx2", "fma"], "caches": caches}
    target = tmp_path / "target.json"
    target.write_text(json.dumps(machine))
    lathe_cli("compile", model, "-o", tmp_path / "classifier.so", f"--dump-ir={folder}", "--target", target)
    (changed,) = folder.glob("*ask_for_weights.py")
    assert "T.prefetch(ahead" in changed.read_text()


def test_aarch64_artifact_is_for_aarch64(lathe_cli, tmp_path):
    """The machine field of the ELF header."""
    artifact = tmp_path / "digits.so"
    lathe_cli("compile", paths.DIGITS_MODEL, "-o", artifact, "--target", "aarch64-linux-gnu")
    header = artifact.read_bytes()[:20]
    assert header[:4] == b"\x7fELF" and int.from_bytes(header[18:20], "little") == 183


def test_the_header_of_an_archive_is_c(lathe_cli, tmp_path):
    """A C compiler takes the header; linking the archive with the runtime is an example's test."""
    lathe_cli("compile", paths.DIGITS_MODEL, "-o", tmp_path / "digits.a")
    program = tmp_path / "main.c"
    program.write_text('#include "digits.h"\nint main(void) { return 0; }\n')
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang-19")
    done = subprocess.run(
        [compiler, "-std=c11", "-Wall", "-Werror", "-fsyntax-only", f"-I{paths.ROOT / 'src'}", program],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_extension_exports_no_symbol_of_llvm_or_protobuf(lathe):
    """So that another library in the process cannot meet them."""
    files = [getattr(module, "__file__", None) or "" for name, module in sys.modules.items() if "lathe" in name]
    (extension,) = {file for file in files if file.endswith(".so")}
    tool = shutil.which("nm") or shutil.which("llvm-nm-19")
    out = subprocess.run([tool, "-D", "--defined-only", extension], capture_output=True, text=True)
    assert out.returncode == 0
    leaked = [line for line in out.stdout.splitlines() if "4llvm" in line or "google8protobuf" in line]
    assert not leaked, leaked[:5]
