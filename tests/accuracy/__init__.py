"""Whole models against float64, and ONNX Runtime's own error as the measure."""

from pathlib import Path

torch_reference_path = Path(__file__).with_name("torch_reference.py")
