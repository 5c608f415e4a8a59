"""What is said of samples: which rounds count, ratios, noise, and two runs side by side."""

import pytest

from bench import compare, report
from bench.measure import judge_outputs, steady


def entry(*medians, kept=None, **more):
    kept = kept or [True] * len(medians)
    rounds = [{"median_s": m, "min_s": 0.9 * m, "kept": k} for m, k in zip(medians, kept)]
    return {"rounds": rounds, **more}


def record(name="line", **peers):
    return {"name": name, "group": "matmul", "threads": 1, "limit_s": 1.0, "peers": peers}


def test_the_ratio_is_the_median_of_the_rounds_own_ratios():
    line = record(lathe=entry(1, 2, 4), onnxruntime=entry(2, 2, 12), torch=entry(9, 9, 9))
    assert compare.best_peer(line) == "onnxruntime"
    assert compare.ratio(line) == 2.0


def test_the_best_peer_is_one_for_the_whole_line():
    line = record(lathe=entry(1, 1, 1), onnxruntime=entry(3, 3, 3), torch=entry(2, 9, 9))
    assert compare.best_peer(line) == "onnxruntime"


def test_rounds_that_were_dropped_do_not_count():
    noisy = entry(1, 50, 1.2, kept=[True, False, True])
    assert compare.time_of(noisy) == pytest.approx(1.1)
    assert compare.ratio(record(lathe=noisy, torch=entry(2, 1, 2.4))) == pytest.approx(2.0)


def test_all_rounds_count_where_too_few_are_left_and_that_is_noise():
    noisy = entry(1, 2, 3, kept=[True, False, False])
    assert compare.time_of(noisy) == 2
    assert compare.is_noisy(noisy) and not compare.is_noisy(entry(1, 1, 1))


def test_a_median_far_above_the_minimum_is_noise():
    calm = entry(1, 1, 1)
    calm["rounds"][0]["min_s"] = 0.5
    assert compare.is_noisy(calm)


def test_a_wrong_output_has_no_time():
    peers = {
        "lathe": entry(1, 1, error=5e-6), "onnxruntime": entry(2, 2, error=1e-6), "torch": entry(2, 2, error=3e-6),
    }  # fmt: skip
    judge_outputs(peers)
    assert "wrong output" in peers["lathe"]["failure"] and "failure" not in peers["torch"]
    assert compare.time_of(peers["lathe"]) is None and compare.ratio(record(**peers)) is None


def test_a_probe_that_moved_drops_the_sample():
    assert steady({"fma": 100, "dram": 10}, {"fma": 102, "dram": 10}, 0.03)
    assert not steady({"fma": 100, "dram": 10}, {"fma": 100, "dram": 9}, 0.03)


def test_changes_name_lines_that_both_runs_have():
    before = {"lines": [record("a", lathe=entry(2, 2)), record("gone", lathe=entry(1, 1))]}
    now = {"lines": [record("a", lathe=entry(1, 1.1)), record("new", lathe=entry(1, 1))]}
    ((name, threads, factor, noise),) = compare.changes(before, now)
    assert (name, threads) == ("a", 1)
    assert factor == pytest.approx(2 / 1.05) and noise == pytest.approx(0.1)
    assert "faster" in report.change_table(before, now)


def test_tables_and_pages_show_failures_and_escape_them():
    line = record(lathe={"failure": "no <operator>"}, torch=entry(0.5, 0.5))
    result = {"lines": [line], "cpu": "cpu", "versions": {}, "machine": {}}
    assert "no <operator>" in report.table(result)
    assert "no &lt;operator&gt;" in report.page(result) and "no <operator>" not in report.page(result)


@pytest.mark.parametrize("seconds, text", [(1.5, "1.5 s"), (0.0123, "12.3 ms"), (4.56e-6, "4.56 µs"), (None, "–")])
def test_durations(seconds, text):
    assert report.duration(seconds) == text
