"""A program that runs two artifacts from eight threads and, in their midst, from forked children.

    python -m tests.determinism.many_callers runtime|package first.so first.npz second.so second.npz

`runtime` opens artifacts by runtime_ctypes.py alone, `package` by `lathe.load`. Each .npz holds inputs by name and the
wanted outputs as out_0, out_1 ...; exit code 0 says that every run of every caller gave those bits.
"""

import os
import sys
import threading
import time

import numpy as np

CALLERS, RUNS, FORKS = 8, 25, 4


def opener(kind):
    if kind == "runtime":
        from tests.support.artifacts import load_runtime

        return lambda path: load_runtime().Artifact(path).run
    import lathe

    def open_package(path):
        exe = lathe.load(path)

        def run(feeds):
            outputs = exe(**feeds)
            return list(outputs) if isinstance(outputs, tuple) else [outputs]

        return run

    return open_package


def main():
    kind, *pairs = sys.argv[1:]
    loaded = []
    for artifact, data in zip(pairs[::2], pairs[1::2], strict=True):
        with np.load(data) as arrays:
            feeds = {name: arrays[name] for name in arrays if not name.startswith("out_")}
            wanted = [arrays[name] for name in sorted(arrays) if name.startswith("out_")]
        loaded.append((opener(kind)(artifact), feeds, wanted))
    wrong = []

    def call(index, runs=RUNS):
        for turn in range(runs):
            run, feeds, wanted = loaded[(index + turn) % len(loaded)]
            outputs = run(feeds)
            if [np.asarray(y).tobytes() for y in outputs] != [y.tobytes() for y in wanted]:
                wrong.append((index, turn))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(CALLERS)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(FORKS):
        child = os.fork()
        if child == 0:
            try:
                call(0, 4)  # the pool of threads must come to life again in the child
                inner = [threading.Thread(target=call, args=(i, 4)) for i in range(2)]
                for thread in inner:
                    thread.start()
                for thread in inner:
                    thread.join()
                os._exit(1 if wrong else 0)
            except BaseException as error:  # noqa: BLE001
                print(f"child: {error}", file=sys.stderr, flush=True)
                os._exit(2)
        children.append(child)
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    call(0, 4)  # and the parent still works
    if wrong or any(codes):
        sys.exit(f"{len(wrong)} wrong answers, children ended with {codes}")


if __name__ == "__main__":
    main()
