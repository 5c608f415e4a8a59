"""Whole-system tests: they meet the compiler by its command line, its Python package and its artifacts."""
