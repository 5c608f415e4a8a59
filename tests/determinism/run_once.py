"""Runs an artifact by the runtime alone: python -m tests.determinism.run_once model.so feeds.npz outputs.npz"""

import sys

import numpy as np

from tests.support.artifacts import assert_without_compiler, load_runtime

artifact, feeds, outputs = sys.argv[1:]
with np.load(feeds) as arrays:
    results = load_runtime().Artifact(artifact).run(dict(arrays))
assert_without_compiler()
np.savez(outputs, **{f"out_{i}": np.asarray(y) for i, y in enumerate(results)})
