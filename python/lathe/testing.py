"""What tests of programs use."""

import numpy as np


def assert_allclose(actual, desired, rtol=1e-7, atol=1e-7, verbose=True):
    """Raises AssertionError unless two arrays are close."""
    actual, desired = (np.asarray(thing) for thing in (actual, desired))
    np.testing.assert_equal(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=verbose)
