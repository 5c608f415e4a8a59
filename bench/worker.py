"""The process in which one peer runs one line. It answers three requests, each a dict with a "do":

load    {"peer", "path", "feeds", "threads"} → {"load_s", "first_s", "peak_bytes", "outputs"}; pins the process first
sample  {"warm_ups", "runs", "seconds"}      → the times of the runs, in seconds
probe   {}                                   → {probe: figure}; in a process that loaded no peer
"""

import os
import time

import numpy as np

from bench.memory import aligned_empty
from bench.peers import DEPLOYED, PEERS
from tests.support.worker import serve

state = {}


def pin(threads):
    """This process on the first cores that it may use, at real-time priority where that is allowed."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, cores)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    except PermissionError:
        return


def peak_bytes():
    """The most memory that this program had; getrusage begins with that of the process it was forked from."""
    with open("/proc/self/status") as status:
        (line,) = [line for line in status if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def load(request):
    pin(request["threads"])
    (peer,) = [peer for peer in (*PEERS, DEPLOYED) if peer.name == request["peer"]]
    __import__(peer.module or peer.package)  # what every program that uses it pays once is not this model's
    feeds = state["feeds"] = aligned(request["feeds"])  # not every peer that shares their memory keeps them
    before, start = peak_bytes(), time.perf_counter()
    run, outputs = peer.load(request["path"], feeds, request["threads"])
    loaded = time.perf_counter()
    run()
    first = time.perf_counter()
    state["run"] = run
    return {
        "load_s": loaded - start, "first_s": first - loaded, "peak_bytes": peak_bytes(), "base_bytes": before,
        "outputs": [np.array(output) for output in outputs()],
    }  # fmt: skip


def aligned(feeds):
    """The inputs in whole cache lines, for all peers alike."""
    result = {}
    for name, array in feeds.items():
        result[name] = aligned_empty(array.shape, array.dtype)
        result[name][...] = array
    return result


def sample(request):
    run, times = state["run"], []
    for _ in range(request["warm_ups"]):
        run()
    end = time.perf_counter() + request["seconds"]
    while len(times) < request["runs"] and (not times or time.perf_counter() < end):
        start = time.perf_counter_ns()
        run()
        times.append((time.perf_counter_ns() - start) / 1e9)
    return times


def probe(request):
    if "probes" not in state:
        from bench.probes import Probes

        os.environ["LATHE_NUM_THREADS"] = str(request["threads"])
        pin(request["threads"])
        state["probes"] = Probes(request["threads"])
        state["probes"].read()  # once for the caches and the clock
    return state["probes"].limits() if request.get("limits") else state["probes"].read()


def handle(request):
    return {"load": load, "sample": sample, "probe": probe}[request["do"]](request)


if __name__ == "__main__":
    serve(handle)
