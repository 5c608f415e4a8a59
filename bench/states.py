"""./dev bench states: a decoder that keeps its cache of keys and values, beside the same decoder that is handed it.

A row is one token after another from `before` positions on. `Kept`: the cache is a state that the model writes in place
(docs/states.md). `Handed`: what one call gives is what the next one gets, as arrays; ONNX Runtime's go along as
OrtValues, which are not copied. All three run in turn in one process; times are the least of the rounds' means.
"""

import argparse
import json
import tempfile
import time
from functools import partial
from pathlib import Path

import lathe
import numpy as np
import onnx
import onnxruntime

from bench.language import text_table
from tests.models.gpt2 import gpt2
from tests.models.llama import llama

LLAMA = {"features": 512, "heads": 8, "shared": 2, "layers": 6, "inner": 1408, "words": 8000, "positions": 1024}
NETWORKS = {
    "GPT-2": (partial(gpt2, 1, 1, past="past"), {"past": "0..1023:256"}, 256),
    "LLaMA-like": (partial(llama, 1, "length", past="past", **LLAMA),
                   {"past": "0..1007:256", "length": "1..16:1"}, 256),
}  # fmt: skip
QUICK = {"GPT-2 of two layers": (partial(gpt2, 1, 1, past="past", layers=2, features=64, heads=4, words=1000),
                                 {"past": "0..1023:16"}, 16)}  # fmt: skip


def cache_of(model, before):
    """Random keys and values for so many positions, by the names of the model's inputs."""
    random, cache = np.random.default_rng(1), {}
    for value in model.graph.input:
        dims = [dim.dim_value or before for dim in value.type.tensor_type.shape.dim]
        if value.name != "x":
            cache[value.name] = random.standard_normal(dims).astype(np.float32)
    return cache


class Kept:
    def __init__(self, path, dims, cache, threads):
        self.model = lathe.compile(path, dims=dims, states={"past_*": "*"}, threads=threads)
        self.state, self.cache, self.token = self.model.make_state(), cache, np.zeros((1, 1), np.int64)
        self.call = self.model.prepare(self.token, state=self.state)

    def begin(self):
        self.state.update(self.cache)

    def step(self, token):
        self.token[0, 0] = token
        return self.call()


class Handed:
    def __init__(self, path, dims, cache, threads):
        self.model, self.cache = lathe.compile(path, dims=dims, threads=threads), cache
        self.names = [f"past_{port.name}" for port in self.model.outputs[1:]]

    def begin(self):
        self.now = self.cache

    def step(self, token):
        y, *cache = self.model(x=np.full((1, 1), token), **self.now)
        self.now = dict(zip(self.names, cache))
        return y


class OnnxRuntime:
    def __init__(self, path, dims, cache, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.outputs = [output.name for output in self.session.get_outputs()]
        self.cache = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in cache.items()}

    def begin(self):
        self.now = self.cache

    def step(self, token):
        binding = self.session.io_binding()
        binding.bind_cpu_input("x", np.full((1, 1), token))
        for name, value in self.now.items():
            binding.bind_ortvalue_input(name, value)
        for name in self.outputs:
            binding.bind_output(name)
        self.session.run_with_iobinding(binding)
        y, *cache = binding.get_outputs()
        self.now = {f"past_{name}": value for name, value in zip(self.outputs[1:], cache)}
        return y.numpy()


def measured(networks, threads, tokens, rounds):
    """A row for each network, as a dict."""
    for name, (make, dims, before) in networks.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            model = make()
            onnx.save(model, path)
            cache = cache_of(model, before)
            runs = {kind.__name__: kind(path, dims, cache, threads) for kind in (Kept, Handed, OnnxRuntime)}
            least, first = dict.fromkeys(runs, float("inf")), {}
            for number in range(rounds):
                for kind in list(runs) if number % 2 else reversed(list(runs)):
                    run = runs[kind]
                    run.begin()
                    first[kind] = np.array(run.step(7))
                    start = time.perf_counter()
                    for token in range(tokens):
                        run.step(token)
                    least[kind] = min(least[kind], (time.perf_counter() - start) / tokens)
            for kind, answer in first.items():
                error = np.abs(answer - first["OnnxRuntime"]).max() / np.abs(answer).max()
                if error > 1e-4:
                    raise ValueError(f"{name}, {kind}: outputs differ by {error:.2e}")
            yield {"network": name, "before": before, "tokens": tokens, "ms": {k: 1e3 * v for k, v in least.items()}}


def cells(row):
    times = row["ms"]
    ratios = [f"{times[kind] / times['Kept']:.2f}" for kind in ("Handed", "OnnxRuntime")]
    return [f"{row['network']}, {row['tokens']} tokens behind {row['before']}", f"{times['Kept']:.3f}", *ratios]


def main(words):
    """The command."""
    parser = argparse.ArgumentParser(prog="./dev bench states", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small network, few rounds: shows that all of it runs")
    parser.add_argument("--threads", type=int, default=1, help="threads of a run (default: 1)")
    parser.add_argument("--tokens", type=int, default=64, help="of a round (default: 64)")
    parser.add_argument("--rounds", type=int, default=7, help="(default: 7)")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the figures as JSON")
    options = parser.parse_args(words)
    networks, rounds = (QUICK, 2) if options.quick else (NETWORKS, options.rounds)
    rows = list(measured(networks, options.threads, options.tokens, rounds))
    print(text_table([["", "kept, ms a token", "handed over kept", "ONNX Runtime over kept"], *map(cells, rows)]))
    if options.save:
        options.save.write_text(json.dumps(rows, indent=1))
    return rows
