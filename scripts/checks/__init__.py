"""The checks of the house, one module each: `check(tree)` returns a line for each problem."""
