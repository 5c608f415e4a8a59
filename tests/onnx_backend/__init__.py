"""The backend suite of the `onnx` package, run from saved artifacts. `python -m tests.onnx_backend --help`."""
