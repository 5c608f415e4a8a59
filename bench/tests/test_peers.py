"""Peers that cannot be installed, or cannot do a line, are reported and stop nothing."""

import pytest

from bench import __main__ as bench
from bench import operators, report
from bench.lines import Line
from bench.measure import PeerFailed, Protocol, measure, prepare
from bench.peers import LATHE, PEERS, Peer
from scripts import setup

MACHINE = {"gflop_s": 100.0, "memory": [{"level": "DRAM", "bytes": None, "gb_s": 10.0}]}


def test_a_peer_that_is_not_to_be_had_is_a_failure(monkeypatch):
    def refuse(files):
        raise setup.SetupError("could not install the Python packages; 'pip install' said:\n  no matching distribution")

    monkeypatch.setattr(setup, "make_environment", refuse)
    found = bench.interpreters_of([Peer("other", None, "other", requirements="bench/requirements/tvm.txt"), PEERS[0]])
    assert isinstance(found["other"], PeerFailed) and "no matching distribution" in str(found["other"])
    assert isinstance(found[LATHE], str)


def test_each_environment_of_its_own_has_its_file():
    files = [setup.ROOT / peer.requirements for peer in PEERS if peer.requirements]
    assert files and all("==" in file.read_text() for file in files)


def test_a_failed_peer_leaves_the_others_their_times(tmp_path):
    pytest.importorskip("torch", reason="PyTorch computes the reference")
    line = Line("small", "matmul", lambda: operators.product(4, 5, 6, constant=True))
    interpreters = {peer.name: bench.sys.executable for peer in PEERS}
    ready = prepare(line, tmp_path, bench.sys.executable)
    interpreters["tvm"] = PeerFailed("not installed: there is no network")
    peers = [peer for peer in PEERS if peer.name in ("onnxruntime", "tvm")]
    quick = Protocol(rounds=1, warm_ups=1, runs=2, seconds=0.1, extra_rounds=0)
    record = measure(ready, 1, peers, quick, MACHINE, interpreters, lambda text: None)
    assert record["peers"]["onnxruntime"]["rounds"] and "rounds" not in record["peers"]["tvm"]
    table = report.peers_table({"lines": [record]})
    assert table.splitlines()[1].split()[-1] == "failed"
    assert table.splitlines()[2] == "tvm, small, 1 threads: not installed: there is no network"
