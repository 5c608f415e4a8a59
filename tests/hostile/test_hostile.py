"""The command on hostile files: one clear sentence, exit code 1, under ten seconds, bounded memory, never a signal."""

import numpy as np
import onnx
import pytest

from tests.hostile import files
from tests.support import paths
from tests.support.command import assert_clear_failure

SECONDS = 200 if paths.SANITIZED else 10
MEMORY = 3 << 30  # bytes of address space: LLVM's library alone maps a good part of one

TRUNCATED, MUTATED = 12, 24
TRUNCATED_FULL, MUTATED_FULL = 150, 600


def compile_(lathe_cli, path, folder):
    outcome = lathe_cli.run("compile", path, "-o", folder / "out.so", timeout=3 * SECONDS, memory=MEMORY)
    assert outcome.seconds < SECONDS, str(outcome)
    return outcome


def assert_refused(lathe_cli, path, folder, words=()):
    outcome = compile_(lathe_cli, path, folder)
    assert_clear_failure(outcome)
    assert not words or any(word in outcome.err for word in words), f"none of {words} in the message\n{outcome}"
    assert not (folder / "out.so").exists(), "an artifact was left behind"


@pytest.mark.parametrize("name", files.MODELS_THAT_HARM)
def test_model(lathe_cli, tmp_path, name):
    path = files.write_model(name, tmp_path)
    assert_refused(lathe_cli, path, tmp_path, files.MODELS_THAT_HARM[name][1])


@pytest.mark.parametrize("name", files.MODELS_THAT_DOUBLE)
def test_paths_that_double(lathe_cli, tmp_path, name):
    path = tmp_path / "model.onnx"
    path.write_bytes(files.MODELS_THAT_DOUBLE[name]().SerializeToString())
    outcome = compile_(lathe_cli, path, tmp_path)
    assert outcome.code == 0, str(outcome)


def test_external_data_that_overlaps(lathe_cli, tmp_path):
    """Two weights may share bytes: they are read, and nothing is written."""
    first, second = files.external("data.bin", offset=0, length=48), files.external("data.bin", offset=8, length=40)
    second.graph.initializer[0].name = "v"
    second.graph.initializer[0].dims[:] = [10]
    first.graph.initializer.append(second.graph.initializer[0])
    first.graph.node.append(files.node("ReduceSum", ["v"], ["s"]))
    first.graph.output.append(onnx.ValueInfoProto(name="s"))
    (tmp_path / "data.bin").write_bytes(files.ARRAY.tobytes())
    (tmp_path / "model.onnx").write_bytes(first.SerializeToString())
    x = np.zeros((3, 4), np.float32)
    np.save(tmp_path / "x.npy", x)
    lathe_cli("compile", tmp_path / "model.onnx", "-o", tmp_path / "m.so")
    lathe_cli("run", tmp_path / "m.so", "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_allclose(out["y"], x + files.ARRAY)
        np.testing.assert_allclose(out["s"].ravel(), files.ARRAY.ravel()[2:].sum(), rtol=1e-6)


def test_unknown_operators_are_reported_all_at_once(lathe_cli, tmp_path):
    kinds = ("Frobnicate", "Defenestrate", "Relu")
    nodes = [files.node(k, [a], [b]) for k, a, b in zip(kinds, ("x", "a", "b"), ("a", "b", "y"), strict=True)]
    path = tmp_path / "model.onnx"
    path.write_bytes(files.model(nodes).SerializeToString())
    outcome = lathe_cli.run("compile", path, "-o", tmp_path / "out.so")
    assert_clear_failure(outcome, sentences=2)
    assert "Frobnicate" in outcome.err and "Defenestrate" in outcome.err


@pytest.mark.parametrize("name", files.RAW)
def test_bytes(lathe_cli, tmp_path, name):
    path = tmp_path / "model.onnx"
    path.write_bytes(files.RAW[name]())
    assert_refused(lathe_cli, path, tmp_path)


def test_a_directory(lathe_cli, tmp_path):
    (tmp_path / "model.onnx").mkdir()
    assert_refused(lathe_cli, tmp_path / "model.onnx", tmp_path, ["model.onnx"])


def test_a_missing_file(lathe_cli, tmp_path):
    assert_refused(lathe_cli, tmp_path / "nothing.onnx", tmp_path, ["nothing.onnx"])


def test_an_unreadable_place_for_the_output(lathe_cli, tmp_path):
    outcome = lathe_cli.fails("compile", files.paths.DIGITS_MODEL, "-o", tmp_path / "no" / "such" / "out.so")
    assert "out.so" in outcome.err


def check_damaged(lathe_cli, tmp_path, contents, label):
    """Damage may leave a valid model behind (a changed weight, a name); else it is refused in a sentence."""
    refused, problems = 0, []
    for index, content in contents:
        path = tmp_path / f"{index}.onnx"
        path.write_bytes(content)
        (tmp_path / "out.so").unlink(missing_ok=True)
        try:
            outcome = compile_(lathe_cli, path, tmp_path)
            if outcome.code != 0:
                assert_clear_failure(outcome, sentences=4)
                refused += 1
        except AssertionError as error:
            problems.append(f"{label} {index}: {error}")
        path.unlink()
    print(f"{label}: {refused} of {len(contents)} refused")
    assert not problems, f"{len(problems)} of {len(contents)}\n" + "\n".join(problems[:5])
    return refused


@pytest.mark.parametrize("name", ["digits", "transformer"])
def test_truncated(lathe_cli, tmp_path, name, seed):
    contents = list(files.truncations(files.good_files()[name], TRUNCATED, seed).items())
    refused = check_damaged(lathe_cli, tmp_path, contents, f"{name} cut at")
    assert refused >= len(contents) - 3  # a cut behind the graph can leave a model without trailing fields


@pytest.mark.parametrize("name", ["digits", "transformer"])
def test_mutated(lathe_cli, tmp_path, name, seed):
    contents = list(enumerate(files.mutations(files.good_files()[name], MUTATED, seed)))
    assert check_damaged(lathe_cli, tmp_path, contents, f"{name} mutation") > 0


@pytest.mark.full
@pytest.mark.parametrize("name", ["digits", "transformer"])
def test_damaged_at_length(lathe_cli, tmp_path, name, seed):
    good = files.good_files()[name]
    contents = list(files.truncations(good, TRUNCATED_FULL, seed + 1).items())
    check_damaged(lathe_cli, tmp_path, contents, f"{name} cut at")
    contents = list(enumerate(files.mutations(good, MUTATED_FULL, seed + 1)))
    check_damaged(lathe_cli, tmp_path, contents, f"{name} mutation")


@pytest.mark.parametrize("kind", ["cut", "mutated", "text", "empty"])
def test_damaged_artifacts_are_refused(lathe_cli, digits_artifact, tmp_path, kind):
    good = digits_artifact.read_bytes()
    contents = {
        "cut": good[: len(good) // 2], "text": b"not an artifact\n", "empty": b"",
        "mutated": good[:16] + bytes(64) + good[80:],
    }[kind]  # fmt: skip
    path = tmp_path / "damaged.so"
    path.write_bytes(contents)
    lathe_cli.fails(
        "run", path, "--input", "image=none.npy", "-o", tmp_path / "out.npz", memory=MEMORY, timeout=SECONDS
    )
