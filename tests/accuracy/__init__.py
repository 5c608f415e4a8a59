"""Whole models against float64, and ONNX Runtime's own error as the measure."""
