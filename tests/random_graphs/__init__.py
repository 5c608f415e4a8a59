"""Random valid graphs, run by five parties: Lathe optimised, Lathe without its passes, Lathe's interpreters, ONNX
Runtime and the `onnx` reference evaluator. `python -m tests.random_graphs --help` runs many, or one again."""
