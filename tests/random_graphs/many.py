"""Many graphs in several processes; what was compared on this very build is kept in a file and not compared again."""

import collections
import json
import threading
import time
from dataclasses import dataclass, field

from tests.support.worker import Worker, WorkerFailed

SECONDS_A_GRAPH = 240  # a crash shows at once; this ends what hangs


@dataclass
class Tally:
    graphs: int = 0
    answered: collections.Counter = field(default_factory=collections.Counter)
    explained: collections.Counter = field(default_factory=collections.Counter)
    operators: collections.Counter = field(default_factory=collections.Counter)
    findings: list = field(default_factory=list)  # (index, sentences)
    slowest: tuple = (0.0, -1)
    stopped_at: int | None = None

    def add(self, index, outcome, seconds):
        self.graphs += 1
        self.answered.update(outcome["answered"])
        self.explained.update(outcome["explained"])
        self.operators.update(outcome["operators"])
        self.slowest = max(self.slowest, (seconds, index))
        if outcome["findings"]:
            self.findings.append((index, outcome["findings"]))

    def __str__(self):
        parties = ", ".join(f"{n} {name}" for name, n in sorted(self.answered.items()))
        lines = [f"{self.graphs} graphs of {len(self.operators)} operators; answered: {parties}"]
        lines += [f"explained {n} times: {reason}" for reason, n in self.explained.most_common()]
        lines += [f"graph {index}: {sentence}" for index, said in sorted(self.findings) for sentence in said]
        lines.append(
            f"{len(self.findings)} graphs with findings; the slowest took {self.slowest[0]:.1f} s ({self.slowest[1]})"
        )
        return "\n".join(lines)


def compare_many(seed, indices, jobs, kept=None, on_done=None):
    """Compares the graphs numbered `indices`. `kept`: a file of lines of JSON, of what was done before and is not done
    again."""
    tally, lock = Tally(), threading.Lock()
    indices = list(indices)
    if kept and kept.exists():
        done = {}
        for line in kept.read_text().splitlines():
            row = json.loads(line)
            done[row["index"]] = row
        for index in [i for i in indices if i in done]:
            tally.add(index, done[index]["outcome"], done[index]["seconds"])
        indices = [i for i in indices if i not in done]
    queue = iter(indices)

    def work():
        with Worker("tests.random_graphs.worker", recycle_after=200) as worker:
            while True:
                with lock:
                    index = next(queue, None)
                if index is None:
                    return
                start = time.monotonic()
                try:
                    verdict, answer = worker.ask((seed, index), SECONDS_A_GRAPH)
                except WorkerFailed as failure:
                    verdict, answer = "error", str(failure)
                if verdict == "error":
                    answer = {"answered": [], "explained": [], "operators": [], "findings": [answer]}
                seconds = time.monotonic() - start
                with lock:
                    tally.add(index, answer, seconds)
                    if kept:
                        with open(kept, "a") as file:
                            file.write(json.dumps({"index": index, "outcome": answer, "seconds": seconds}) + "\n")
                    if on_done:
                        on_done(index, answer)

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tally
