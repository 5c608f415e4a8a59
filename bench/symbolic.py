"""./dev bench symbolic: what a model whose sizes only the run knows loses to the same model of fixed sizes.

Each network is compiled once with its sizes told (`dims={"batch": "1..64:8"}`) and once for each size at which it is
timed. Both run in turn in one process; a row is the median over rounds of the one's time over the other's: at the
likely sizes, and at others.
"""

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import lathe
import numpy as np
import onnx

from bench.language import text_table
from bench.lines import Line
from tests.models import MODELS
from tests.models.bert import bert
from tests.models.gpt2 import gpt2

AIM = 1.1


@dataclass(frozen=True)
class Network:
    name: str
    make: object  # a function of the sizes' names
    told: dict
    sizes: tuple  # at which it is timed, the likely ones first

    def is_likely(self, sizes):
        """Whether every one of the sizes was told to be likely."""
        return all(str(size) in self.told[name].partition(":")[2].split(",") for name, size in sizes.items())


NETWORKS = [
    Network("ResNet-50", partial(MODELS["resnet50"], height=224, width=224), {"batch": "1..64:1,8"},
            ({"batch": 1}, {"batch": 8}, {"batch": 3})),
    Network("BERT-base", bert, {"batch": "1..8:1", "length": "1..512:128"},
            ({"batch": 1, "length": 128}, {"batch": 1, "length": 100}, {"batch": 3, "length": 128})),
    Network("GPT-2, one token", partial(gpt2, length=1), {"past": "1..1023:256"}, ({"past": 256}, {"past": 200})),
]  # fmt: skip
QUICK = [
    Network("BERT of two layers", partial(bert, layers=2, features=64, heads=4, inner=128, words=1000),
            {"batch": "1..8:2", "length": "1..512:16"}, ({"batch": 2, "length": 16}, {"batch": 3, "length": 9})),
    Network("GPT-2 of two layers", partial(gpt2, length=1, layers=2, features=64, heads=4, words=1000),
            {"past": "1..1023:16"}, ({"past": 16}, {"past": 7})),
]  # fmt: skip


def fixed(path, sizes):
    """The model's inputs with these sizes, for random values of them."""
    model = onnx.load(path, load_external_data=False)
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = sizes[dim.dim_param]
    return model


def ratio(first, other, feeds, seconds):
    """The median over rounds of the first's time over the other's, run in turn; and the other's time."""
    rounds, times = [], []
    first(*feeds), other(*feeds)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(rounds) < 5:
        spent = {}
        for run in (first, other) if len(rounds) % 2 else (other, first):
            start = time.perf_counter()
            run(*feeds)
            spent[run] = time.perf_counter() - start
        rounds.append(spent[first] / spent[other])
        times.append(spent[other])
    return statistics.median(rounds), statistics.median(times)


def largest_error(got, wanted):
    got, wanted = (np.asarray(values[0], np.float64) for values in (got, wanted))
    return float(np.abs(got - wanted).max() / np.abs(wanted).max())


def measured(networks, threads, seconds):
    """A row for each network and sizes, as a dict."""
    for network in networks:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            onnx.save(network.make(**{name: name for name in network.told}), path)
            start = time.perf_counter()
            any_size = lathe.compile(path, threads=threads, dims=network.told)
            compile_seconds = time.perf_counter() - start
            for number, sizes in enumerate(network.sizes):
                start = time.perf_counter()
                one_size = lathe.compile(path, threads=threads, dims=sizes)
                fixed_seconds = time.perf_counter() - start
                feeds = Line("", "", None).feeds(fixed(path, sizes), seed=number)
                error = largest_error(any_size(*feeds.values()), one_size(*feeds.values()))
                if error > 1e-4:
                    raise ValueError(f"{network.name} at {sizes}: outputs differ by {error:.2e}")
                slower, seconds_fixed = ratio(any_size, one_size, list(feeds.values()), seconds)
                yield {
                    "network": network.name, "told": network.told, "sizes": sizes,
                    "likely": network.is_likely(sizes), "ratio": slower,
                    "fixed_ms": 1e3 * seconds_fixed, "compile_s": compile_seconds, "fixed_compile_s": fixed_seconds,
                }  # fmt: skip


def cells(row):
    sizes = ", ".join(f"{name} {size}" for name, size in row["sizes"].items())
    told = " ".join(f"{name}={text}" for name, text in row["told"].items())
    aim = f"{AIM}" if row["likely"] else ""
    return [f"{row['network']}, {sizes}", told, aim, f"{row['ratio']:.3f}", f"{row['fixed_ms']:.2f}",
            f"{row['compile_s']:.1f} / {row['fixed_compile_s']:.1f}"]  # fmt: skip


def main(words):
    """The command."""
    parser = argparse.ArgumentParser(prog="./dev bench symbolic", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small networks, short rounds: shows that all of it runs")
    parser.add_argument("--threads", type=int, default=1, help="threads of a run (default: 1)")
    parser.add_argument("--seconds", type=float, default=20, help="time of each row (default: 20)")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the figures as JSON")
    options = parser.parse_args(words)
    networks, seconds = (QUICK, 0.1) if options.quick else (NETWORKS, options.seconds)
    rows = []
    for row in measured(networks, options.threads, seconds):
        rows.append(row)
        print("  ".join(cells(row)), flush=True)
    head = ["", "told", "aim", "any size over one size", "one size, ms", "compile, s: any / one"]
    print("\n" + text_table([head, *(cells(row) for row in rows)]))
    if options.save:
        options.save.write_text(json.dumps(rows, indent=1))
    return rows
