"""Runs one expression of R on arrays: compiled and interpreted, with constant extents and with symbols."""

import numpy as np

import lathe


def _shape(array, symbolic, name):
    extents = [f'"{name}{d}"' if symbolic else str(extent) for d, extent in enumerate(array.shape)]
    return "(" + ", ".join(extents) + ("," if len(extents) == 1 else "") + ")"


def text_of(expression, arrays, symbolic=()):
    """A graph function of the arrays by name that gives the expression; extents of those in `symbolic` are symbols."""
    params = ", ".join(
        f'{name}: R.Tensor({_shape(array, name in symbolic, name)}, "{array.dtype}")' for name, array in arrays.items()
    )
    return f"@R.function\ndef main({params}):\n    result = {expression}\n    return result\n"


def outputs_of(text, arrays, target):
    """The function's outputs as a list."""
    function = lathe.script.from_source(text)
    outputs = lathe.compile(lathe.IRModule({"main": function}), target=target)(*arrays.values())
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


def _largest(array):
    """Its largest finite magnitude, 1 at least; 1 for what is not float."""
    finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind == "f" else np.zeros(0)
    return max(1.0, float(finite.max(initial=0)))


def check(expression, arrays, expected, symbolic=None, rtol=1e-5, atol=1e-6):
    """Asserts that the expression gives `expected` (an array or a tuple of them), its shapes and dtypes included.

    Three runs: compiled and interpreted with constant extents, compiled with those of `symbolic` (all arrays unless
    given; an empty tuple for expressions that need constant extents) as symbols. The text prints and is read again.
    atol: of the largest element, from 1 on; sums that cancel are as exact as their terms.
    """
    expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    symbolic = tuple(arrays) if symbolic is None else symbolic
    for symbols in [(), symbolic] if symbolic else [()]:
        text = text_of(expression, arrays, symbols)
        function = lathe.script.from_source(text)
        assert lathe.ir.structural_equal(lathe.script.from_source(function.script()), function)
        for target in ("native",) if symbols else ("native", "interp"):
            outputs = outputs_of(text, arrays, target)
            assert len(outputs) == len(expected)
            for got, wanted in zip(outputs, expected, strict=True):
                got, wanted = np.asarray(got), np.asarray(wanted)
                assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), (target, symbols)
                said = f"{target}, symbols {symbols}"
                np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol * _largest(wanted), err_msg=said)


def refusal(expression, arrays):
    """The message with which the text is refused."""
    try:
        lathe.script.from_source(text_of(expression, arrays))
    except lathe.Error as error:
        return str(error)
    raise AssertionError(f"{expression} was accepted")
