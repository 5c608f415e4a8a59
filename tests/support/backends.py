"""What runs a model in a test: Lathe, or (to validate the tests themselves) ONNX Runtime or the reference evaluator."""

import numpy as np
import onnx


class UnsupportedModel(Exception):
    """The stand-in does not implement the model. Never raised for Lathe: there it is a failure."""


def compile_lathe(model, **options):
    import lathe

    exe = lathe.compile(model, **options)
    names = [i.name for i in model.graph.input]

    def run(feeds):
        outputs = (
            exe(**feeds) if all(n.isidentifier() for n in names) else exe(*[feeds[n] for n in names if n in feeds])
        )
        return list(outputs) if isinstance(outputs, tuple) else [outputs]

    return run


def onnxruntime_session(model, threads=1, optimised=True):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def compile_onnxruntime(model, **options):
    try:
        session = onnxruntime_session(model)
    except Exception as error:  # noqa: BLE001
        raise UnsupportedModel(str(error)) from None

    def run(feeds):
        try:
            return session.run(None, feeds)
        except Exception as error:  # noqa: BLE001
            raise UnsupportedModel(str(error)) from None

    return run


def compile_reference(model, **options):
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    return lambda feeds: evaluator.run(None, feeds)


BACKENDS = {"lathe": compile_lathe, "onnxruntime": compile_onnxruntime, "reference": compile_reference}


def run_model(backend, model, feeds, **options):
    """The outputs: arrays; lists of them for sequences; None for an optional without a value."""
    outputs = BACKENDS[backend](model, **options)(feeds)
    return [y if y is None or isinstance(y, list) else np.asarray(y) for y in outputs]
