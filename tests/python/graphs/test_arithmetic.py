"""Arithmetic of R that is made of arithmetic, against NumPy."""

import numpy as np

from .running import check

rng = np.random.default_rng(11)
X = rng.uniform(-3, 3, (3, 5)).astype("float32")
I = rng.integers(-9, 9, (2, 3)).astype("int32")


def test_square():
    check("R.square(x)", {"x": X}, X * X)
    check("R.square(i)", {"i": I}, I * I)
    check("R.square(x)", {"x": np.zeros((0, 4), "float64")}, np.zeros((0, 4)))


def test_trunc():
    check("R.trunc(x)", {"x": X}, np.trunc(X))
    check("R.trunc(i)", {"i": I}, I)
