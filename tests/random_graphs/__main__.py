"""python -m tests.random_graphs --count 500: so many graphs; --index 17: that one again, node by node."""

import argparse
import os
import sys
from pathlib import Path

from tests.random_graphs.compare import compared, written
from tests.random_graphs.growing import grown
from tests.random_graphs.many import compare_many
from tests.support import paths


def show(seed, index):
    graph = grown(seed, index)
    print(f"graph {index} of seed {seed}, opset {graph.opset}")
    for value in graph.inputs:
        print(f"  {value.name}: {value.dtype}{graph.axes_of[value.name]} = {list(value.shape)}")
    for node in graph.nodes:
        reads = ", ".join(f"{v.name}{list(v.shape)}" if v else "-" for v in node.inputs)
        gives = ", ".join(f"{v.name}: {v.dtype}{list(v.shape)}" for v in node.outputs)
        print(f"  {gives} = {node.op}({reads}) {node.attributes or ''}")
    print("  gives " + ", ".join(v.name for v in graph.results()))


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.random_graphs", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the first graph's number")
    parser.add_argument("--count", type=int, default=100, help="how many graphs")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes")
    parser.add_argument("--kept", type=Path, help="a file in which what was done is kept, to go on later")
    parser.add_argument("--index", type=int, help="one graph: shows it and what each party says")
    parser.add_argument("--save", type=Path, help="with --index: a folder for its model and inputs")
    options = parser.parse_args()
    paths.make_importable()
    if options.index is not None:
        if options.save:
            print(written(options.seed, options.index, options.save))
        show(options.seed, options.index)
        outcome = compared(options.seed, options.index)
        print("answered: " + ", ".join(outcome.answered))
        print("\n".join(outcome.findings + [f"explained: {reason}" for reason in outcome.explained]) or "all agree")
        return bool(outcome.findings)

    def done(index, outcome):
        for sentence in outcome["findings"]:
            print(f"graph {index}: {sentence}", flush=True)

    indices = range(options.first, options.first + options.count)
    tally = compare_many(options.seed, indices, options.jobs, options.kept, done)
    print(tally)
    return bool(tally.findings)


if __name__ == "__main__":
    sys.exit(main())
