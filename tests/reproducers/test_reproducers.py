"""Internal failures from every entry leave a reproducer: the line they print fails in the same way."""

import os
import re
import shlex
import sys
import textwrap

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support import paths
from tests.support.command import run_command

INTERNAL = 70
SAID = re.compile(r"rerun it with: lathe (.*?)   \(what is needed lies in (.*?)\)")
X = np.arange(12, dtype=np.float32).reshape(2, 6)


@pytest.fixture
def model(tmp_path):
    """y = relu(x) + w, with a symbolic extent and its weight in a file beside it; nothing of it is constant."""
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["positive"]), helper.make_node("Add", ["positive", "w"], ["y"])],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 6])],
        [numpy_helper.from_array(np.arange(6, dtype=np.float32), "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "given").mkdir()
    path = tmp_path / "given" / "small.onnx"
    onnx.save(made, path, save_as_external_data=True, location="small.weights", size_threshold=0)
    np.save(tmp_path / "given" / "x.npy", X)
    return path


@pytest.fixture
def artifact(lathe_cli, model, tmp_path):
    lathe_cli("compile", model, "-o", tmp_path / "given" / "small.so")
    return tmp_path / "given" / "small.so"


class Failing:
    """Commands that fail in a step, in a folder of their own where the reproducers go."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def run(self, step, command, **options):
        return run_command(command, cwd=self.folder, env=paths.environment(LATHE_FAIL_IN=step, **options))

    def check(self, step, command, code=INTERNAL, reason=None):
        """The command fails, and so does what it says to run, by then without the files it was given."""
        reason = reason or f"{step} fails, as LATHE_FAIL_IN asks"
        first = self.run(step, command)
        assert first.code == code and f": {reason}\n" in first.err, str(first)
        line, left = SAID.search(first.err).groups()
        assert os.path.dirname(left) == str(self.folder)
        with open(os.path.join(left, "command.txt")) as kept:
            assert kept.read() == f"lathe {line}\n"
        words = shlex.split(line)
        assert not [word for word in words if "/given/" in word], line
        again = self.run(step, [paths.LATHE, *words])
        assert again.code == (code if code < 0 else INTERNAL) and f": {reason}\n" in again.err, str(again)
        assert SAID.search(again.err).group(2) != left  # nothing is written over
        return words


@pytest.fixture
def failing(tmp_path):
    return Failing(tmp_path / "left")


def pair_in(words, *pair):
    return pair in zip(words, words[1:])


def test_compile(failing, model):
    options = ["--dim", "batch=3", "--disable-pass", "fold_constants", "--decide", "map.lanes=4"]
    words = failing.check("fuse_ops", [paths.LATHE, "compile", model, "-o", "small.so", *options])
    assert all(pair_in(words, *pair) for pair in zip(options[::2], options[1::2])), words
    failing.check("generate_code", [paths.LATHE, "compile", model, "-o", "small.so"])
    assert not (failing.folder / "small.so").exists()


def test_bench_verify_and_opt(failing, model, tmp_path):
    x = f"x={tmp_path / 'given' / 'x.npy'}"
    words = failing.check("run", [paths.LATHE, "bench", model, "--dim", "batch=2", "--input", x, "--max-steps", "9999"])
    assert pair_in(words, "--max-steps", "9999") and pair_in(words, "--dim", "batch=2")
    words = failing.check("run", [paths.LATHE, "verify", model, "--dim", "batch=2", "--seed", "5"])
    assert pair_in(words, "--seed", "5") and pair_in(words, "--dim", "batch=2")
    failing.check("legalize", [paths.LATHE, "explain", model, "--dim", "batch=2", "--no-run", "-o", "r.html"])
    failing.check("legalize", [paths.LATHE, "opt", model, "--dim", "batch=2", "--passes=fuse_ops,legalize"])


@pytest.mark.parametrize("step, code, reason", [("run", INTERNAL, None), ("run!", -4, "the process got SIGILL")])
def test_run(failing, artifact, tmp_path, step, code, reason):
    x = f"x={tmp_path / 'given' / 'x.npy'}"
    command = [paths.LATHE, "run", artifact, "--input", x, "-o", "y.npz", "--timeout", "5"]
    words = failing.check(step, command, code, reason)
    assert pair_in(words, "--timeout", "5")


def test_a_crash_of_the_compiler(failing, model):
    failing.check("fuse_ops!", [paths.LATHE, "compile", model, "-o", "a.so"], -4, "the process got SIGILL")


def python(text, *arguments):
    """A command that runs the text, and ends as the command does where Lathe fails."""
    prelude = """
        import sys, numpy as np, lathe, onnx
        x = np.arange(12, dtype=np.float32).reshape(2, 6)
        path, artifact = (sys.argv + ["", ""])[1:3]
        try:
        {}
        except lathe.InternalError as failure:
            sys.stderr.write(str(failure))
            sys.exit(70)
    """
    body = textwrap.indent(textwrap.dedent(text).strip(), "    ")
    return [sys.executable, "-c", textwrap.dedent(prelude).replace("{}", body), *arguments]


@pytest.mark.parametrize(
    "text, step",
    [
        ("lathe.compile(path, dims={'batch': 3}, disabled_passes=['fold_constants'])", "fuse_ops"),
        ("lathe.compile(onnx.load(path), dims={'batch': 3}, disabled_passes=['fold_constants'])", "fuse_ops"),
        ("lathe.InferenceSession(onnx.load(path).SerializeToString())", "generate_code"),
        ("lathe.compile(lathe.import_onnx(path), disabled_passes=['fold_constants'])", "schedule_functions"),
        ("lathe.compile(path)(x)", "run"),
        ("lathe.InferenceSession(path).run(None, {'x': x})", "run"),
        ("lathe.InferenceSession(artifact).run(None, {'x': x})", "run"),
    ],
)  # fmt: skip
def test_python(failing, model, artifact, text, step):
    words = failing.check(step, python(text, model, artifact))
    if "dims=" in text:
        assert pair_in(words, "--dim", "batch=3") and pair_in(words, "--disable-pass", "fold_constants")


@pytest.mark.parametrize("text", ["lathe.compile(path)(x)", "lathe.load(artifact)(x)"])
def test_a_crash_of_a_kernel_in_python(failing, model, artifact, text):
    failing.check("run!", python(text, model, artifact), -4, "the process got SIGILL")


SMALL_STACK_FOR_SIGNALS = """
import ctypes, os
class Stack(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]
system, page = ctypes.CDLL(None), 4096
size = -(-os.sysconf(249) // page) * page + page  # _SC_MINSIGSTKSZ, what the kernel saves, and a page more
system.mmap.restype = ctypes.c_void_p
below = system.mmap(None, ctypes.c_size_t(2 * size), 3, 0x22, -1, ctypes.c_long(0))  # private, of no file
assert system.mprotect(ctypes.c_void_p(below), ctypes.c_size_t(size), 0) == 0
assert system.sigaltstack(ctypes.byref(Stack(below + size, 0, size)), None) == 0
lathe.compile(path)(x)
"""


def test_a_crash_where_handlers_have_a_small_stack(failing, model):
    failing.check("run!", python(SMALL_STACK_FOR_SIGNALS, model), -4, "the process got SIGILL")


@pytest.fixture
def values(tmp_path):
    """A sequence of bfloat16, an optional and strings come out as they go in."""
    node, sequence, kind = helper.make_node, helper.make_tensor_sequence_value_info, TensorProto
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(kind.FLOAT, [2]))
    names = {"s": lambda n: sequence(n, kind.BFLOAT16, [2]), "o": lambda n: helper.make_value_info(n, optional),
             "t": lambda n: helper.make_tensor_value_info(n, kind.STRING, [2])}  # fmt: skip
    graph = helper.make_graph(
        [node("Identity", [name], [name + "_out"]) for name in names], "values",
        [make(name) for name, make in names.items()], [make(name + "_out") for name, make in names.items()],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (tmp_path / "given").mkdir(exist_ok=True)
    onnx.save(made, tmp_path / "given" / "values.onnx")
    return tmp_path / "given" / "values.onnx"


@pytest.mark.parametrize("optional", ["None", "x[0, :2]"])
@pytest.mark.parametrize("step, code, reason", [("run", INTERNAL, None), ("run!", -4, "the process got SIGILL")])
def test_values_of_any_kind(failing, values, tmp_path, optional, step, code, reason):
    given = f"[x[0, :2].astype(ml_dtypes.bfloat16)] * 2, {optional}, np.array(['a', 'über'])"
    text = f"import ml_dtypes; lathe.compile(path)({given})"
    words = failing.check(step, python(text, values), code, reason)
    assert pair_in(words, "--input", "o=none") == (optional == "None")
    again = run_command([paths.LATHE, *words, "-o", tmp_path / "y.npz"], env=paths.environment())
    assert again.code == 0, str(again)
    with np.load(tmp_path / "y.npz") as y:
        assert [name for name in y if name[0] == "s"] == ["s_out.0.bfloat16", "s_out.1.bfloat16"]
        assert y["t_out"].tolist() == ["a", "über"]
        assert ("o_out" in y) == (optional != "None") and ("o_out" not in y or np.array_equal(y["o_out"], X[0, :2]))


TIMES = """
    from lathe import tir
    from lathe.script import tir as T

    @T.prim_func
    def times(a: T.Buffer((6,), "float32"), b: T.Buffer((6,), "float32"), n: T.int64):
        for i in range(6):
            b[i] = a[i] * T.cast(n, "float32")
"""


def in_a_file(failing, text):
    """A command that runs the text after the function `times`: a function's source must lie in a file."""
    script = failing.folder / "times.py"
    script.write_text(python(TIMES + "    " + text + "\n")[2])
    return [sys.executable, script]


def test_build(failing):
    failing.check("convert_blocks", in_a_file(failing, "lathe.build(times)"))


@pytest.mark.parametrize("step, code, reason", [("run", INTERNAL, None), ("run!", -4, "the process got SIGILL")])
@pytest.mark.parametrize("how", ["({})", ".time_evaluator('times', number=2)({})"])
def test_a_call_of_what_was_built(failing, tmp_path, how, step, code, reason):
    call = how.replace("{}", "x[0], np.zeros(6, 'float32'), 3")
    words = failing.check(step, in_a_file(failing, "lathe.build(times)" + call), code, reason)
    assert pair_in(words, "--function", "times") and pair_in(words, "--input", "2=3")
    if code == INTERNAL:
        again = run_command([paths.LATHE, *words, "-o", tmp_path / "y.npz"], env=paths.environment())
        assert again.code == 0, str(again)
        assert np.array_equal(np.load(tmp_path / "y.npz")["b"], 3 * X[0])


@pytest.mark.parametrize("name, step", [("Simplify", "simplify"), ("RemoveNoOp", "remove_no_op!")])
def test_a_single_pass(failing, name, step):
    text = f"tir.transform.{name}()(lathe.IRModule({{'times': times}}))"
    crashes = step.endswith("!")
    words = failing.check(step, in_a_file(failing, text), *((-4, "the process got SIGILL") if crashes else ()))
    assert "--passes=" + step.rstrip("!") in words


def test_the_folder_that_the_environment_names(failing, model, tmp_path):
    command = [paths.LATHE, "compile", model, "-o", "a.so"]
    outcome = failing.run("fuse_ops", command, LATHE_REPRODUCER_DIR=tmp_path / "kept" / "here")
    assert os.path.dirname(SAID.search(outcome.err).group(2)) == str(tmp_path / "kept" / "here")
    assert not list(failing.folder.iterdir())


def test_names_that_the_shell_would_take_apart(failing, model, tmp_path):
    odd = tmp_path / "left" / "it's a $HOME (1).onnx"
    odd.write_bytes(model.read_bytes())
    (odd.parent / "small.weights").write_bytes((model.parent / "small.weights").read_bytes())
    failing.check("fuse_ops", [paths.LATHE, "compile", odd, "-o", "a b.so"])
