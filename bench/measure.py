"""One line on all peers: compiled, loaded, its outputs compared, then sampled round after round."""

import contextlib
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from bench import limits
from bench.lines import Line
from bench.peers import DEPLOYED, LATHE
from tests.support import paths
from tests.support.float64 import relative_error
from tests.support.worker import Worker, WorkerFailed

PATIENCE = 900  # seconds for one answer of a peer: Inductor compiles for minutes


@dataclass(frozen=True)
class Protocol:
    rounds: int = 5
    warm_ups: int = 3
    runs: int = 50
    seconds: float = 2.0
    extra_rounds: int = 5  # in place of those that were dropped,
    extra_seconds: float = 30.0  # as long as all rounds of the line took no longer than this
    drift: float = 0.03  # of a probe before and after a sample, above which the sample is dropped


QUICK = Protocol(rounds=3, runs=20, seconds=0.4, extra_rounds=2)


class PeerFailed(Exception):
    """One sentence: what a peer could not do."""


def ask(worker, **request):
    try:
        kind, answer = worker.ask(request, PATIENCE)
    except WorkerFailed as failure:
        raise PeerFailed(str(failure)) from None
    if kind != "ok":
        raise PeerFailed(answer.strip().splitlines()[0][:300])
    return answer


def compile_artifact(model_path, artifact_path):
    """{"compile_s", "compile_peak_bytes", "artifact_bytes"} of `lathe compile` without what it keeps from before."""
    command = [str(paths.LATHE), "compile", "-q", "--no-cache", str(model_path), "-o", str(artifact_path)]
    start = time.perf_counter()
    child = os.posix_spawn(command[0], command, paths.environment())
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        raise PeerFailed(f"lathe compile ended with {os.waitstatus_to_exitcode(status)}")
    return {
        "compile_s": time.perf_counter() - start,
        "compile_peak_bytes": usage.ru_maxrss * 1024,
        "artifact_bytes": os.path.getsize(artifact_path),
    }


@dataclass
class Prepared:
    """A line ready to be measured with any number of threads."""

    line: Line
    path: Path
    artifact: Path
    feeds: dict
    wanted: list  # the outputs in float64
    work: list | None
    compiled: dict | None = None  # what compiling took, once it was done


def prepare(line, folder, interpreter):
    """The model on disk, its inputs, and what they give in float64 (also for other inputs, to see that it depends on
    them, where it must)."""
    path = folder / f"{line.name}.onnx"
    model = line.make()
    onnx.save(model, path)
    feeds = [line.feeds(model, seed) for seed in ((1, 2) if line.must_differ else (1,))]
    with Worker("bench.reference", interpreter=interpreter) as reference:
        wanted = ask(reference, path=str(path), feeds=feeds)
    if line.must_differ and hardly_differ(*(outputs[0] for outputs in wanted)):
        raise PeerFailed("the outputs of two inputs hardly differ: the line measures nothing")
    return Prepared(line, path, folder / f"{line.name}.so", feeds[0], wanted[0], limits.work_of(model))


def hardly_differ(one, other):
    return np.abs(one - other).max() < 0.05 * max(np.abs(one).max(), np.abs(other).max())


def judge_outputs(entries):
    """Marks what is wrong: an error above twice ONNX Runtime's own plus 1e-6 (above 1e-4 where that did not run)."""
    peer = entries.get("onnxruntime", {})
    bound = 2 * peer["error"] + 1e-6 if "error" in peer else 1e-4
    for name, entry in entries.items():
        if name != "onnxruntime" and entry.get("error", 0) > bound:
            entry["failure"] = f"wrong output: error {entry['error']:.2g}, at most {bound:.2g} is right"


def measure(ready, threads, peers, protocol, machine, interpreters, say):
    """The record of a prepared line: its limit, and for each peer what it took. `interpreters` has each peer's Python,
    or why there is none. `say` gets a word on what goes on."""
    line = ready.line
    record = {"name": line.name, "group": line.group, "threads": threads, "peers": {}}
    record["operations"] = sum(operations for _, operations, _ in ready.work or ())
    record["bytes"] = sum(count for _, _, count in ready.work or ())
    record["limit_s"] = limits.seconds(ready.work, machine)
    entries = record["peers"]
    with contextlib.ExitStack() as stack:
        workers = {}
        for peer in peers:
            say(f"{line.name}, {threads} threads: loading into {peer.name}")
            entry = entries[peer.name] = {}
            interpreter = interpreters[peer.name]
            try:
                if isinstance(interpreter, PeerFailed):
                    raise interpreter
                if peer.takes_artifact and ready.compiled is None:
                    ready.compiled = compile_artifact(ready.path, ready.artifact)
                entry.update(ready.compiled if peer.takes_artifact else {})
                worker = stack.enter_context(Worker("bench.worker", interpreter=interpreter))
                source = ready.artifact if peer.takes_artifact else ready.path
                answer = ask(worker, do="load", peer=peer.name, path=str(source), feeds=ready.feeds, threads=threads)
                outputs = answer.pop("outputs")
                entry.update(answer)
                entry["error"] = float(max(relative_error(got, want) for got, want in zip(outputs, ready.wanted)))
                workers[peer.name] = worker
                if peer.name == LATHE:
                    entry.update(deployed(ready.artifact, ready.feeds, threads, interpreter))
            except (PeerFailed, AssertionError) as failure:
                entry["failure"] = str(failure)
        judge_outputs(entries)
        probe = stack.enter_context(Worker("bench.worker", interpreter=interpreters[LATHE], recycle_after=10**9))
        sample_rounds(entries, workers, probe, threads, protocol, say, line.name)
    return record


def deployed(artifact, feeds, threads, interpreter):
    """The memory of a process that only loads the artifact and runs it."""
    with Worker("bench.worker", interpreter=interpreter) as worker:
        answer = ask(worker, do="load", peer=DEPLOYED.name, path=str(artifact), feeds=feeds, threads=threads)
    return {key: answer[key] for key in ("load_s", "first_s", "peak_bytes", "base_bytes")}


def sample_rounds(entries, workers, probe, threads, protocol, say, name):
    """Lets the peers take turns until each has its rounds, or the rounds to spare are spent."""
    running = [peer for peer in workers if "failure" not in entries[peer]]
    for peer in running:
        entries[peer]["rounds"] = []
    start = time.perf_counter()
    before = ask(probe, do="probe", threads=threads)
    for number in range(protocol.rounds + protocol.extra_rounds):
        if number >= protocol.rounds and time.perf_counter() - start > protocol.extra_seconds:
            break
        if all(sum(r["kept"] for r in entries[peer]["rounds"]) >= protocol.rounds for peer in running):
            break
        for peer in list(running):
            say(f"{name}, {threads} threads: round {number + 1}, {peer}")
            try:
                times = ask(workers[peer], do="sample", warm_ups=protocol.warm_ups, runs=protocol.runs,
                            seconds=protocol.seconds)  # fmt: skip
            except PeerFailed as failure:
                entries[peer]["failure"] = str(failure)
                running.remove(peer)
                continue
            after = ask(probe, do="probe", threads=threads)
            entries[peer]["rounds"].append({
                "min_s": min(times), "median_s": statistics.median(times), "probes": after,
                "kept": steady(before, after, protocol.drift),
            })  # fmt: skip
            before = after


def steady(before, after, drift):
    """Whether no probe moved by more than `drift` between the two readings."""
    return all(abs(after[name] / before[name] - 1) <= drift for name in before)
