"""Parts run to the end, and a second run takes up where the first one stopped."""

import subprocess

import pytest

from scripts import runner
from scripts.parts import Part


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "STATE", tmp_path / "state.json")
    monkeypatch.setattr(runner, "tree_key", lambda: "one tree")
    return []


def part(name, log, fails=False):
    def run():
        log.append(name)
        if fails:
            raise subprocess.CalledProcessError(1, ["false"])

    return Part(name, run, "a part")


def test_a_failing_part_fails_the_run_and_the_others_still_run(log, capsys):
    assert runner.run_parts([part("a", log), part("b", log, fails=True), part("c", log)]) is False
    assert log == ["a", "b", "c"]
    assert "2 of 3 parts passed" in capsys.readouterr().out


def test_a_failing_build_ends_the_run(log):
    assert runner.run_parts([part("build", log, fails=True), part("c", log)]) is False
    assert log == ["build"]


def test_resuming_skips_what_passed_on_the_same_tree_only(log, monkeypatch):
    parts = [part("a", log), part("b", log, fails=True)]
    runner.run_parts(parts, resume=True)
    runner.run_parts(parts, resume=True)
    assert log == ["a", "b", "b"]
    monkeypatch.setattr(runner, "tree_key", lambda: "another tree")
    runner.run_parts(parts, resume=True)
    assert log == ["a", "b", "b", "a", "b"]


def test_parts_that_always_run_are_not_skipped(log):
    parts = [Part("a", lambda: log.append("a"), "a part", always=True), part("b", log)]
    runner.run_parts(parts, resume=True)
    runner.run_parts(parts, resume=True)
    assert log == ["a", "b", "a"]


def test_another_environment_is_another_state(log, monkeypatch):
    runner.run_parts([part("a", log)], resume=True)
    monkeypatch.setenv("LATHE_NUM_THREADS", "3")
    runner.run_parts([part("a", log)], resume=True)
    assert log == ["a", "a"]


def test_what_ran_while_the_tree_changed_is_not_remembered(log, monkeypatch):
    changes = Part("a", lambda: monkeypatch.setattr(runner, "tree_key", lambda: "edited"), "a part")
    runner.run_parts([changes, part("b", log)], resume=True)
    runner.run_parts([part("a", log), part("b", log)], resume=True)
    assert log == ["b", "a", "b"]


def test_a_failure_is_not_hidden_by_an_earlier_success(log):
    runner.run_parts([part("a", log)])
    runner.run_parts([part("a", log, fails=True)])
    assert runner.run_parts([part("a", log)], resume=True) is True
    assert log == ["a", "a", "a"]
