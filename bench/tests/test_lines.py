"""The lines: valid models of fixed shapes, their work counted right, and inputs that fit."""

import pytest

from bench import convolutions, limits, operators
from bench.lines import all_lines, chosen_lines
from tests.models import MODELS
from tests.models.bert import bert
from tests.support.backends import run_model
from tests.support.float64 import reference_outputs, relative_error

MACHINE = {"gflop_s": 100.0, "memory": [{"level": "L2", "bytes": 2 << 20, "gb_s": 100.0},
                                        {"level": "DRAM", "bytes": None, "gb_s": 10.0}]}  # fmt: skip


def test_names_are_unique_and_every_group_has_a_quick_line():
    lines = all_lines()
    assert len({line.name for line in lines}) == len(lines)
    assert {line.group for line in lines} == {line.group for line in lines if line.quick}


@pytest.mark.parametrize(
    "name",
    ["matmul-97x101x103", "gemm-512-t11", "conv-odd-1d", "conv-odd-grouped4", "conv_transpose-3x3s2-56", "sum-axis1",
     "sum-all", "mean-all", "max-rank2-axis1", "softmax-middle", "arg_max-channels", "instance_norm-56",
     "chain-cheap24-16K", "resize-nearest-160", "resize-linear-160", "gather-rows-4096x64", "lstm-64x128-b8"],
)  # fmt: skip
def test_a_line_runs_with_its_inputs(name):
    (line,) = chosen_lines([name])
    model = line.make()
    feeds = line.feeds(model, 1)
    (got,) = run_model("onnxruntime", model, feeds)
    assert relative_error(got, reference_outputs(model, feeds)[0]) < 1e-5


def test_lines_and_groups_are_chosen_by_name():
    group = [line.name for line in all_lines() if line.group == "attention"]
    assert [line.name for line in chosen_lines(["attention"])] == group
    assert [line.name for line in chosen_lines([], ["attention"])] == group
    assert {line.name for line in chosen_lines(["attention", "chain-1M"])} == {*group, "chain-1M"}
    assert {line.name for line in chosen_lines(["chain-1M"], ["attention"])} == {*group, "chain-1M"}


def test_an_unknown_line_is_refused():
    with pytest.raises(ValueError, match="'resnet51'"):
        chosen_lines(["resnet51"])


def test_work_of_a_product_is_counted_once():
    ((kind, operations, count),) = limits.work_of(operators.product(8, 16, 32, constant=True))
    assert (kind, operations) == ("MatMul", 2 * 8 * 16 * 32)
    assert count == 4 * (8 * 16 + 16 * 32 + 8 * 32)


def test_a_grouped_convolution_multiplies_within_its_groups():
    model = convolutions.convolution(1, 32, 10, 10, 32, 3, 1, 1, 32)
    assert sum(operations for _, operations, _ in limits.work_of(model)) == 2 * 32 * 100 * 9


def test_a_transposed_convolution_multiplies_each_element_by_the_kernel():
    model = convolutions.transposed(8, 5, 7, 16, kernel=3, stride=2, pad=1, output_pad=1)
    assert sum(operations for _, operations, _ in limits.work_of(model)) == 2 * (8 * 5 * 7) * 16 * 9


@pytest.mark.parametrize("kind, gates", [("LSTM", 4), ("GRU", 3)])
def test_a_cell_multiplies_both_weights_at_each_step(kind, gates):
    model = operators.recurrent(kind, 5, 2, inputs=3, hidden=7, direction="bidirectional")
    (work,) = [work for work in limits.work_of(model) if work[1]]
    assert work[1] == 2 * 5 * 2 * 2 * gates * 7 * (3 + 7)


def test_rows_are_taken_from_the_whole_table():
    (line,) = chosen_lines(["gather-rows-4096x64"])
    rows = line.feeds(line.make(), 1)["rows"]
    assert rows.min() < 1000 and 99_000 < rows.max() < 100_000


def test_resnet50_has_its_published_number_of_operations():
    model = MODELS["resnet50"](batch=1, height=224, width=224)
    assert sum(operations for _, operations, _ in limits.work_of(model)) / 2 == pytest.approx(4.09e9, rel=0.01)


def test_a_gather_reads_only_its_rows():
    small, large = (bert(1, 8, features=16, heads=2, layers=1, inner=16, words=words) for words in (100, 1000))
    assert sum(w[2] for w in limits.work_of(small)) == sum(w[2] for w in limits.work_of(large))


def test_the_limit_is_the_slower_of_operations_and_bytes():
    assert limits.seconds([("MatMul", 1e9, 1000)], MACHINE) == pytest.approx(0.01)
    assert limits.seconds([("Add", 0, 1 << 30)], MACHINE) == pytest.approx((1 << 30) / 10e9)
    assert limits.seconds([("Add", 0, 1 << 19)], MACHINE) == pytest.approx((1 << 19) / 100e9)
