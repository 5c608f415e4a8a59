"""./dev bench compile: how compile time grows with a model, in processor time of this process.

Chains of 1,250, 5,000 and 20,000 nodes, compiled by one thread with nothing cached, and how much longer four times as
many nodes take; a transformer of 64 layers beside one of 16; the import of a model of 400 MB that the system has
cached.
"""

import argparse
import json
import tempfile
from pathlib import Path

import lathe
import numpy as np
import onnx

from bench.language import spent, text_table
from tests.models.builder import ModelBuilder
from tests.models.transformer import transformer

GROWTH = "from 5,000 to 20,000 nodes"
IMPORT = "import of 400 MB, s"
LAYERS = "64-layer transformer, s"
QUICK_DIVISOR = 25


def elementwise(nodes):
    """A chain of functions of one element, which fusion cuts into groups."""
    model = ModelBuilder("elementwise", 1)
    x = model.input("x", [64])
    for n in range(nodes):
        x = model.node(("Relu", "Neg", "Abs", "Sigmoid", "Tanh")[n % 5], x)
    return finished(model, x, [64])


def products(nodes):
    """Products, softmax and sums with what went before them: groups of many kinds."""
    model = ModelBuilder("products", 2)
    x = model.input("x", [4, 16])
    weight = model.normal([16, 16], 0.1)
    for _ in range(nodes // 4):
        y = model.node("MatMul", x, weight)
        x = model.node("Add", y, model.node("Softmax", model.node("Relu", y)))
    return finished(model, x, [4, 16])


def residuals(nodes):
    """Sums of values that are far apart: long lives, which the memory plan has to cross."""
    model = ModelBuilder("residuals", 3)
    values = [model.input("x", [64])] * 8
    for _ in range(nodes // 2):
        y = model.node("Tanh", values[-1])
        values = [*values[1:], model.node("Add", y, values[0])]
    return finished(model, values[-1], [64])


CHAINS = {"elementwise chain": elementwise, "chain of products": products, "chain of residuals": residuals}
AIMS = {f"{chain}, {GROWTH}": 4.6 for chain in CHAINS} | {IMPORT: 0.5}


def finished(model, value, shape):
    """The model whose result is the value."""
    model.output(value, "y", shape)
    return model.build()


def compiled(model, rounds):
    """Seconds from the model's bytes to something that can be called."""
    content = model.SerializeToString()
    return spent(lambda: lathe.compile(content, cache=False, compile_threads=1), rounds)


def compiled_in_turn(models, rounds):
    """The same of several models, one after the other in each round: a machine that slows down slows down all."""
    found = [float("inf")] * len(models)
    for _ in range(rounds):
        found = [min(best, compiled(model, 1)) for best, model in zip(found, models, strict=True)]
    return found


def big_model(path, megabytes):
    """A chain of products with that many megabytes of weights."""
    model = ModelBuilder("big", 4)
    x = model.input("x", [1, 1024])
    block = model.rng.standard_normal((1024, 1024), np.float32)
    for n in range(megabytes // 4):
        x = model.node("MatMul", x, model.weight(block + np.float32(n)))
    onnx.save(finished(model, x, [1, 1024]), path)


def measured(quick=False):
    """The figures by name; `quick` measures the same on small models, which only shows that all of it runs."""
    rounds, divisor = (1, QUICK_DIVISOR) if quick else (7, 1)
    found, sizes = {}, (1250, 5000, 20000)
    for chain, make in CHAINS.items():
        models = [make(nodes // divisor) for nodes in sizes]
        times = dict(zip(sizes, compiled_in_turn(models, rounds), strict=True))
        for nodes, seconds in times.items():
            found[f"{chain}, {nodes:,} nodes, s"] = seconds
        found[f"{chain}, {GROWTH}"] = times[20000] / times[5000]
    found["16-layer transformer, s"] = compiled(transformer(1, layers=16 // min(divisor, 8)), rounds)
    found[LAYERS] = compiled(transformer(1, layers=64 // min(divisor, 8)), rounds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.onnx"
        big_model(path, 400 // divisor)
        path.read_bytes()
        found[IMPORT] = spent(lambda: lathe.import_onnx(path), rounds)
    return found


def main(words):
    """The command."""
    parser = argparse.ArgumentParser(prog="./dev bench compile", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small models, one round: shows that all of it runs")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the figures as JSON")
    options = parser.parse_args(words)
    found = measured(options.quick)
    rows = [[name, f"{AIMS[name]:.4g}" if name in AIMS else "", f"{value:.3g}"] for name, value in found.items()]
    print(text_table([["", "aim", f"lathe {lathe.__version__}"], *rows]))
    if options.save:
        options.save.write_text(json.dumps(found, indent=1))
    return found
