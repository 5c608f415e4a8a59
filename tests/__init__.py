"""Whole-system tests: they meet the compiler from outside, by its command line, its Python package and its artifacts."""
