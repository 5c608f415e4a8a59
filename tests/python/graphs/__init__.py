"""Tests of graph functions written as text: every name of R, run and compared with NumPy."""
