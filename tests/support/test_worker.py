"""A crash, a hang or an exception in a worker costs one request; the next is answered by a fresh process."""

import os
import signal
import threading

import pytest

from tests.support.worker import Worker, WorkerFailed

MODULE = "tests.support.misbehaving_worker"


def test_answers_and_keeps_the_process():
    with Worker(MODULE) as worker:
        first, second = worker.ask("a", 20), worker.ask("print", 20)
        assert first[0] == second[0] == "ok" and first[1][0] == second[1][0]
        assert worker.ask("raise", 20) == ("error", "ValueError: no such operator")
        assert worker.ask(b"x" * 3_000_000, 20)[1][1] == b"x" * 3_000_000


@pytest.mark.parametrize(
    "request_, said",
    [("crash", "SIGSEGV"), ("exit", "exit code 3"), ("hang", "1 s asleep"), ("spin", "1 s of processor time")],
)
def test_survives(request_, said):
    with Worker(MODULE) as worker:
        before = worker.ask("a", 20)[1][0]
        with pytest.raises(WorkerFailed, match=said):
            worker.ask(request_, 1.0 if request_ in ("hang", "spin") else 20)
        state, (after, _) = worker.ask("a", 20)
        assert state == "ok" and after != before


def test_memory_is_bounded_and_processes_are_recycled():
    with Worker(MODULE, memory=2 << 30, recycle_after=2) as worker:
        assert worker.ask("memory", 20)[0] == "error"
        first = worker.ask("a", 20)[1][0]
        assert worker.ask("a", 20)[1][0] != first


def test_a_process_that_is_stopped_is_not_late():
    """As on a machine that stops everything for a while: no time of the child's passes."""
    with Worker(MODULE) as worker:
        pid = worker.ask("a", 20)[1][0]
        rest = threading.Timer(1.5, os.kill, (pid, signal.SIGCONT))
        os.kill(pid, signal.SIGSTOP)
        rest.start()
        assert worker.ask("a", 0.5)[1][0] == pid
