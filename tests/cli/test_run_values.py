"""lathe run on values that are no tensors of plain numbers: lists, optionals, strings, dtypes that NumPy has no names
for, as files of NumPy's."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

FLOAT, STRING, BFLOAT16, INT4 = TensorProto.FLOAT, TensorProto.STRING, TensorProto.BFLOAT16, TensorProto.INT4
node, tensor = helper.make_node, helper.make_tensor_value_info
sequence = helper.make_tensor_sequence_value_info
ROWS = [np.array([i, i + 0.5], np.float32) for i in range(3)]


@pytest.fixture
def run(lathe_cli, tmp_path):
    """Compiles a graph, and gives what runs it on files or arrays, by name, and returns the archive it writes."""

    class Run:
        def compiled(self, nodes, inputs, outputs):
            graph = helper.make_graph(nodes, "values", inputs, outputs)
            made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
            onnx.save(made, tmp_path / "m.onnx")
            lathe_cli("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.so")
            return self

        def words(self, given):
            for name, value in given.items():
                path = value
                if isinstance(value, list):
                    path = tmp_path / f"{name}.npz"
                    np.savez(path, *value)
                elif not isinstance(value, str):
                    path = tmp_path / f"{name}.npy"
                    np.save(path, value)
                yield from ("--input", f"{name}={path}")

        def __call__(self, output="out.npz", **given):
            lathe_cli("run", tmp_path / "m.so", *self.words(given), "-o", tmp_path / output)
            if output.endswith(".npy"):
                return np.load(tmp_path / output)
            with np.load(tmp_path / output) as arrays:
                return dict(arrays)

        def fails(self, output="out.npz", **given):
            return lathe_cli.fails("run", tmp_path / "m.so", *self.words(given), "-o", tmp_path / output).err

    return Run()


@pytest.fixture
def insert(run):
    inputs = [sequence("s", FLOAT, [2]), tensor("more", FLOAT, [2])]
    outputs = [sequence("longer", FLOAT, [2]), tensor("length", TensorProto.INT64, [])]
    nodes = [node("SequenceInsert", ["s", "more"], ["longer"]), node("SequenceLength", ["longer"], ["length"])]
    return run.compiled(nodes, inputs, outputs)


@pytest.mark.parametrize("count", [0, 1, 3, 12])
def test_a_sequence_is_an_archive(insert, count):
    rows = [np.array([i, -i], np.float32) for i in range(count)]
    out = insert(s=rows, more=ROWS[1])
    assert list(out) == [f"longer.{i}" for i in range(count + 1)] + ["length"] and out["length"] == count + 1
    assert all(np.array_equal(out[f"longer.{i}"], row) for i, row in enumerate([*rows, ROWS[1]]))


def test_files_that_do_not_fit(insert, tmp_path):
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "good.npz", *ROWS)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "good.npz").read_bytes()[:200])
    for given, said in (
        (dict(s=ROWS[0]), "one array, but a list is wanted"), (dict(s="none"), "there is no such file"),
        (dict(s=str(tmp_path / "text.npz")), "there is no such archive"),
        (dict(s=str(tmp_path / "cut.npz")), "there is no such archive"),
        (dict(s=ROWS, more=ROWS), "an archive holds a list, this takes one array"),
        (dict(s=[np.array([None])]), "dtype 'O' are not read"),
        (dict(), "the input 's: sequence' is missing"),
        (dict(s=ROWS, t=ROWS), "no input 't'"),
    ):  # fmt: skip
        said_in = insert.fails(**{"more": ROWS[0], **given})
        assert said in said_in, said_in
    assert "a .npy file holds one array" in insert.fails("out.npy", s=ROWS, more=ROWS[0])


def test_one_list_in_a_file_for_one_array(run):
    split = run.compiled([node("SequenceConstruct", ["x", "x"], ["s"])], [tensor("x", FLOAT, ["n"])],
                         [sequence("s", FLOAT, ["n"])])  # fmt: skip
    assert "a .npy file holds one array" in split.fails("out.npy", x=ROWS[0])
    assert sorted(split(x=ROWS[0])) == ["s.0", "s.1"]


def test_optionals(run):
    inner = helper.make_tensor_type_proto(FLOAT, [2])
    o = helper.make_value_info("o", helper.make_optional_type_proto(inner))
    same = helper.make_value_info("same", helper.make_optional_type_proto(inner))
    has = run.compiled([node("OptionalHasElement", ["o"], ["has"]), node("Identity", ["o"], ["same"])], [o],
                       [tensor("has", TensorProto.BOOL, []), same])  # fmt: skip
    out = has(o=ROWS[1])
    assert out["has"] and np.array_equal(out["same"], ROWS[1])
    assert list(has(o="none")) == ["has"] and not has(o="none")["has"]
    run.compiled([node("Identity", ["o"], ["same"])], [o], [same])
    assert run(o="none") == {} and list(run(o=ROWS[1])) == ["same"]


TEXTS = np.array([["", "a", "über"], ["日本語", "a\0b", "𝄞"]])


@pytest.mark.parametrize("given", [TEXTS, TEXTS.T.copy().T, np.char.encode(TEXTS, "utf-8"), TEXTS[:0], TEXTS[:1, :1]])
def test_strings(run, given):
    same = run.compiled([node("Identity", ["x"], ["y"])], [tensor("x", STRING, ["m", "n"])],
                        [tensor("y", STRING, ["m", "n"])])  # fmt: skip
    wanted = given if given.dtype.kind == "U" else np.char.decode(given, "utf-8")
    for out in (same(x=given)["y"], same("out.npy", x=given)):
        assert out.dtype.kind == "U" and np.array_equal(out, wanted)
    assert same(x=np.array([[b"\xff\xfe", b"a"]]))["y"].tolist() == [[b"\xff\xfe", b"a"]]
    assert "is of kind strings, it is given as tensor" in same.fails(x=np.zeros((1, 1), np.float32))


@pytest.mark.parametrize(
    "dtype, numpy_dtype, values",
    [(BFLOAT16, ml_dtypes.bfloat16, [1.5, -2, 0.25]), (INT4, ml_dtypes.int4, [-8, 7, 3]),
     (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn, [1.5, -2, 0.25])],
)  # fmt: skip
def test_dtypes_without_a_name(run, dtype, numpy_dtype, values):
    given = np.array(values, numpy_dtype)
    inputs = [tensor("x", dtype, [3]), tensor("shape", TensorProto.INT64, [2])]
    same = run.compiled([node("Reshape", ["x", "shape"], ["y"])], inputs, [tensor("y", dtype, [3, 1])])
    out = same(x=given, shape=np.array([3, 1]))["y"]
    assert out.shape == (3, 1) and np.array_equal(out.view(numpy_dtype)[:, 0], given)
    assert "V" in same.fails(x=np.zeros(3, "V3"), shape=np.array([3, 1]))
