"""Lines from the user's own files: sizes for open dimensions, inputs that fit, and a measurement from end to end."""

import sys

import numpy as np
import onnx
import pytest

from bench import __main__ as bench
from bench import limits, report
from bench.files import file_line, parsed
from bench.measure import Protocol, measure, prepare
from bench.peers import PEERS
from tests.models.bert import bert
from tests.models.builder import ModelBuilder

MACHINE = {"gflop_s": 100.0, "memory": [{"level": "DRAM", "bytes": None, "gb_s": 10.0}]}


def open_product(tmp_path, name="batch"):
    builder = ModelBuilder("product", seed=1)
    x = builder.input("x", [3, 16])
    builder.output(builder.node("Softmax", builder.node("MatMul", x, builder.normal((16, 8), 0.5))), "y", [3, 8])
    model = builder.build()
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[0].Clear()
        if name:
            value.type.tensor_type.shape.dim[0].dim_param = name
    path = tmp_path / "open.onnx"
    onnx.save(model, path)
    return path


def test_open_dimensions_get_their_sizes(tmp_path):
    line = file_line(open_product(tmp_path), parsed(["batch=5"]))
    model = line.make()
    assert (line.name, line.group) == ("open", "file")
    assert line.feeds(model, 1)["x"].shape == (5, 16)
    assert sum(operations for _, operations, _ in limits.work_of(model)) == 2 * 5 * 16 * 8


def test_a_dimension_without_a_name_is_called_by_input_and_axis(tmp_path):
    path = open_product(tmp_path, name="")
    with pytest.raises(ValueError, match="axis 0 of 'x' has no size; give it as --dim x_0=1"):
        file_line(path, {})
    assert file_line(path, {"x_0": 2}).make().graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2


@pytest.mark.parametrize(
    "words, said",
    [(["batch"], "a name and a size"), (["batch=no"], "a name and a size"), (["=3"], "a name and a size"),
     (["batch=1", "length=2"], "no input has an open dimension 'length'"), ([], "give it as --dim batch=1")],
)  # fmt: skip
def test_sizes_that_do_not_fit_are_refused(tmp_path, words, said):
    path = open_product(tmp_path)
    with pytest.raises(ValueError, match=said):
        file_line(path, parsed(words))


@pytest.mark.parametrize("content, said", [(None, "No such file"), (b"no model", "")])
def test_what_is_no_model_is_refused_by_the_command(tmp_path, capsys, content, said):
    path = tmp_path / "other.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemExit):
        bench.arguments_of([str(path)])
    assert said in capsys.readouterr().err


def test_token_ids_lie_in_their_table_and_masks_are_ones_at_first(tmp_path):
    path = tmp_path / "bert.onnx"
    onnx.save(bert(1, 16, features=16, heads=2, layers=1, inner=16, words=30), path)
    line = file_line(path, {})
    feeds = line.feeds(line.make(), 1)
    masks = [name for name in feeds if "mask" in name]
    ids = [name for name in feeds if name not in masks]
    assert all(0 <= feeds[name].min() and feeds[name].max() < 30 for name in ids)
    assert [feeds[name].tolist() for name in masks] == [[[1] * 14 + [0] * 2]] * len(masks)


def test_files_are_measured_like_lines(tmp_path):
    """By the evaluator of the onnx package where PyTorch has no row for an operator; without a limit where the shape of
    a product is not known before the run."""
    builder = ModelBuilder("rows", seed=2)
    rows = builder.node("NonZero", builder.node("Greater", builder.input("x", [6, 9]), builder.scalar(-9.0)))
    count = builder.node("Cast", builder.node("Transpose", rows, perm=[1, 0]), to=onnx.TensorProto.FLOAT)
    y = builder.node("MatMul", count, builder.normal((2, 9), 1.0))
    builder.output(builder.node("Add", builder.node("Reshape", y, builder.integers(54, 9)),
                                builder.node("Reshape", "x", builder.integers(54, 1))), "y", [54, 9])  # fmt: skip
    path = tmp_path / "rows.onnx"
    onnx.save(builder.build(), path)
    line = file_line(path, {})
    ready = prepare(line, tmp_path, sys.executable)
    assert np.asarray(ready.wanted[0]).dtype == np.float64
    quick = Protocol(rounds=1, warm_ups=1, runs=2, seconds=0.1, extra_rounds=0)
    peers = [peer for peer in PEERS if peer.name == "onnxruntime"]
    record = measure(ready, 1, peers, quick, MACHINE, {peer.name: sys.executable for peer in PEERS}, lambda text: None)
    assert record["peers"]["onnxruntime"]["rounds"]
    result = {"cpu": "", "versions": {}, "machine": {}, "lines": [record]}
    assert "rows" in report.table(result) and "no ratio, limit –" in report.page(result)


def test_files_stand_behind_the_lines_that_are_named(tmp_path):
    path = open_product(tmp_path)
    options = bench.arguments_of([str(path), "chain-1M", "--dim", "batch=2"])
    assert [line.name for line in options.chosen] == ["chain-1M", "open"]
    assert [line.name for line in bench.arguments_of([str(path), "--dim", "batch=2"]).chosen] == ["open"]
