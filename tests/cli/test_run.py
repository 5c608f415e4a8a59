"""lathe run, verify, opt, and the demo."""

import re
import sys
from functools import partial

import numpy as np
import onnx
import pytest

import lathe
from lathe.script import from_source
from tests.models import MODELS, input_for
from tests.models.gpt2 import gpt2
from tests.support import paths
from tests.support.backends import onnxruntime_session
from tests.support.command import run_command


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "image.npy"
    np.save(path, np.random.default_rng(1).random((3, 1, 8, 8), np.float32))
    return path


def test_run_writes_the_outputs(lathe_cli, digits_artifact, image, tmp_path):
    lathe_cli("run", digits_artifact, "--input", f"image={image}", "-o", tmp_path / "out.npz")
    wanted = onnxruntime_session(str(paths.DIGITS_MODEL)).run(None, {"image": np.load(image)})[0]
    with np.load(tmp_path / "out.npz") as outputs:
        np.testing.assert_allclose(outputs["logits"], wanted, rtol=1e-4, atol=1e-4)


def test_weights_in_huge_pages_give_the_same(lathe_cli, digits_artifact, image, tmp_path):
    lathe_cli("run", digits_artifact, "--input", f"image={image}", "-o", tmp_path / "file.npz")
    lathe_cli("run", digits_artifact, "--input", f"image={image}", "--huge-pages", "-o", tmp_path / "huge.npz")
    with np.load(tmp_path / "file.npz") as file, np.load(tmp_path / "huge.npz") as huge:
        assert file["logits"].tobytes() == huge["logits"].tobytes()


def test_states_begin_empty_or_as_given(lathe_cli, tmp_path):
    model = gpt2(1, 1, past="past", features=24, heads=3, layers=1, words=31, positions=16)
    onnx.save(model, tmp_path / "gpt2.onnx")
    artifact = tmp_path / "gpt2.so"
    lathe_cli("compile", tmp_path / "gpt2.onnx", "-o", artifact, "--dim", "past=0..15", "--state", "past_*=*")
    rng, session = np.random.default_rng(2), onnxruntime_session(model.SerializeToString())
    np.save(tmp_path / "x.npy", np.array([[3]]))
    for past in (0, 6):
        cache = {name: rng.standard_normal((1, 3, past, 8), np.float32) for name in ("past_key_0", "past_value_0")}
        states = []
        for name, array in cache.items() if past else ():
            np.save(tmp_path / f"{name}.npy", array)
            states += ["--state", f"{name}={tmp_path / name}.npy"]
        given = ["--input", f"x={tmp_path / 'x.npy'}", *states]
        out = lathe_cli("run", artifact, *given, "--repeat", "40", "-o", tmp_path / "y.npy").out
        assert "over 40 runs" in out, "every repetition begins with the same, so that no cache is full"
        wanted = session.run(["y"], {"x": np.array([[3]]), **cache})[0]
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted, rtol=1e-4, atol=1e-5)
    fails = partial(lathe_cli.fails, "run", artifact, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "y.npy")
    assert "'past_value_0: float32 [1, 3, past, 8]' is missing" in fails(*states[:2]).err
    assert "no state 'x'" in fails(*states, "--state", "x=x.npy").err
    debug = paths.environment(LATHE_DEBUG="1")
    command = ["compile", tmp_path / "gpt2.onnx", "-o", artifact, "--state", "past_*=no_*"]
    assert "lower-wrong-state" in lathe_cli.fails(*command, env=debug).err


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda x: x.astype(np.float64), ["float64"]), (lambda x: x[0], ["image"]), (lambda x: x[..., :5], ["5"]),
        (lambda x: x.astype(object), ["image"]),
    ],
)  # fmt: skip
def test_wrong_arrays(lathe_cli, digits_artifact, image, tmp_path, change, words):
    np.save(image, change(np.load(image)), allow_pickle=True)
    outcome = lathe_cli.fails("run", digits_artifact, "--input", f"image={image}", "-o", tmp_path / "out.npz")
    assert any(word in outcome.err for word in words), outcome.err


def test_fortran_order_is_read_right(lathe_cli, digits_artifact, image, tmp_path):
    lathe_cli("run", digits_artifact, "--input", f"image={image}", "-o", tmp_path / "c.npz")
    np.save(image, np.asfortranarray(np.load(image)))
    lathe_cli("run", digits_artifact, "--input", f"image={image}", "-o", tmp_path / "f.npz")
    with np.load(tmp_path / "c.npz") as c, np.load(tmp_path / "f.npz") as f:
        assert c["logits"].tobytes() == f["logits"].tobytes()


@pytest.mark.parametrize(
    "arguments", [(), ("--input", "picture={image}"), ("--input", "image=none.npy"), ("--input", "image")]
)
def test_wrong_inputs(lathe_cli, digits_artifact, image, tmp_path, arguments):
    arguments = [a.format(image=image) for a in arguments]
    lathe_cli.fails("run", digits_artifact, *arguments, "-o", tmp_path / "out.npz")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY\x01\x00\xff\xff", b"text"])
def test_damaged_arrays(lathe_cli, digits_artifact, tmp_path, content):
    (tmp_path / "bad.npy").write_bytes(content)
    lathe_cli.fails("run", digits_artifact, "--input", f"image={tmp_path / 'bad.npy'}", "-o", tmp_path / "out.npz")


def test_missing_artifact(lathe_cli, tmp_path):
    assert "nothing.so" in lathe_cli.fails("run", tmp_path / "nothing.so").err


def test_verify_the_digits(lathe_cli):
    outcome = lathe_cli("verify", paths.DIGITS_MODEL, timeout=300)
    assert "conv" in outcome.out.lower() or "agree" in outcome.out.lower() or "ok" in outcome.out.lower(), str(outcome)


@pytest.mark.parametrize("name", ["mlp", "transformer"])
def test_verify(lathe_cli, tmp_path, name):
    onnx.save(MODELS[name](batch=2), tmp_path / "model.onnx")
    lathe_cli("verify", tmp_path / "model.onnx", timeout=300)


def test_opt_runs_named_passes(lathe_cli, tmp_path):
    lathe_cli("compile", paths.DIGITS_MODEL, "-o", tmp_path / "digits.relax")
    before = lathe_cli("opt", tmp_path / "digits.relax").out
    after = lathe_cli("opt", tmp_path / "digits.relax", "--passes=fuse_ops").out
    assert after and after != before


def test_opt_names_an_unknown_pass(lathe_cli, tmp_path):
    lathe_cli("compile", paths.DIGITS_MODEL, "-o", tmp_path / "digits.relax")
    assert "polish" in lathe_cli.fails("opt", tmp_path / "digits.relax", "--passes=polish").err


def test_opt_shows_where_the_text_is_wrong(lathe_cli, tmp_path):
    (tmp_path / "broken.relax").write_text("def f(x:\n    return (x\n")
    outcome = lathe_cli.run("opt", tmp_path / "broken.relax")
    assert outcome.code == 1 and "broken.relax:" in outcome.err and "^" in outcome.err, str(outcome)


def test_the_demo_agrees_with_onnx_runtime(lathe_cli):
    demo = paths.ROOT / "examples" / "03-digits" / "demo.py"
    outcome = run_command([sys.executable, demo, "--lathe", lathe_cli.binary])
    assert outcome.code == 0, str(outcome)
    assert "agree on all 450 images" in outcome.out and "98.89 %" in outcome.out


def test_answers_of_the_command_equal_the_package_s(lathe, lathe_cli, digits_artifact, image, tmp_path):
    lathe_cli("run", digits_artifact, "--input", f"image={image}", "-o", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as outputs:
        assert outputs["logits"].tobytes() == lathe.compile(paths.DIGITS_MODEL)(np.load(image)).tobytes()


def test_a_profile_shares_the_time_out_among_kernels(lathe_cli, digits_artifact, image):
    out = lathe_cli("run", digits_artifact, "--input", f"image={image}", "--repeat", "3", "--profile").out
    table = out[out.index("kernel (node)") :].splitlines()[1:]
    rows = [line.split() for line in table]
    assert any("conv" in row[3] and "(" in row[4] for row in rows if len(row) > 4), out
    assert all(int(row[2]) % 3 == 0 for row in rows), out
    assert abs(sum(float(row[0].rstrip("%")) for row in rows) - 100) < 5, out


def test_every_output_is_written_by_name(lathe_cli, tmp_path):
    model = MODELS["mlp"](batch=2)
    onnx.save(model, tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", input_for(model, 2, 1)["x"])
    lathe_cli("compile", tmp_path / "model.onnx", "-o", tmp_path / "model.so")
    lathe_cli("run", tmp_path / "model.so", "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as outputs:
        assert list(outputs) == ["y"] and outputs["y"].shape == (2, 13)


def test_bench_prints_times(lathe_cli):
    out = lathe_cli("bench", paths.DIGITS_MODEL, "--dim", "batch=3", "--threads", "1", "--runs", "3").out
    for name in ("compile", "load", "first run", "runs", "memory"):
        assert re.search(rf"^{name}\s+\S", out, re.MULTILINE), out
    assert "over 3, 1 thread" in out, out


def test_bench_profiles_kernels_beside_their_limits(lathe_cli):
    """Every kernel has its rule and a limit; what they have to do adds up to the model's operations."""
    out = lathe_cli("bench", paths.DIGITS_MODEL, "--dim", "batch=2", "--threads", "1", "--runs", "3", "--profile").out
    assert re.search(r"^machine\s+\d+ GFLOP/s of float32, L1 \d+ GB/s.*memory \d+ GB/s$", out, re.MULTILINE), out
    kernels = re.findall(r"% +(?:compute|L\d|memory) +(\S+).*: (\S+)", out)
    assert kernels and all(rule != "no" for _, rule in kernels), out
    assert any(rule in ("gemm", "conv") for _, rule in kernels), out
    assert re.search(r"the kernels' limits add up to \d", out), out


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((), "--dim"),
        (("--dim", "batch=2", "--target", "null"), "null"),
        (("--dim", "batch=2", "--input", "image=none.npy"), "none.npy"),
        (("--dim", "batch=2", "--input", "picture=none.npy"), "picture"),
    ],
)
def test_bench_refuses(lathe_cli, arguments, words):
    assert words in lathe_cli.fails("bench", paths.DIGITS_MODEL, *arguments).err


@pytest.mark.parametrize("extents", ["2305843009213693952", "4294967296, 4294967296", "9223372036854775807, 3"])
def test_an_array_whose_size_wraps_is_refused(lathe_cli, digits_artifact, tmp_path, extents):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({extents},), }}".ljust(117).encode() + b"\n"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    outcome = lathe_cli.fails("run", digits_artifact, "--input", f"image={tmp_path / 'x.npy'}")
    assert "input 'image'" in outcome.err and "shape" in outcome.err


@pytest.fixture
def library(tmp_path):
    """b = n * a, by lathe.build."""
    i = np.arange(6, dtype=np.float32)
    times = from_source(
        """
@T.prim_func
def times(a: T.Buffer((6,), "float32"), b: T.Buffer((6,), "float32"), n: T.int64):
    for i in range(6):
        b[i] = a[i] * T.cast(n, "float32")
"""
    )
    lathe.build(lathe.IRModule({"times": times})).export_library(str(tmp_path / "times.so"))
    np.save(tmp_path / "a.npy", i)
    np.save(tmp_path / "b.npy", 0 * i)
    return tmp_path / "times.so"


def test_a_function_of_a_library(lathe_cli, library):
    folder = library.parent
    words = ["run", library, "--function", "times", "--input", "2=3", "--input", f"0={folder / 'a.npy'}"]
    done = lathe_cli(*words, "--input", f"1={folder / 'b.npy'}", "-o", folder / "out.npz")
    assert done.out == "b: float32 [6]\n"
    assert np.array_equal(np.load(folder / "out.npz")["b"], 3 * np.load(folder / "a.npy"))
    assert "argument 1 of 'times' is missing" in lathe_cli.fails(*words).err
    assert "not by 'a'" in lathe_cli.fails(*words[:4], "--input", f"a={folder / 'a.npy'}").err
    assert "there is no function 'half'" in lathe_cli.fails("run", library, "--function", "half").err
