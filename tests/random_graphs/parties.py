"""Who runs a graph. Each is a function of the model and its inputs that gives the outputs; NoAnswer where a party that
is no part of Lathe lacks an operator or a dtype."""

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from tests.support.backends import onnxruntime_session

# Rows of the pipeline without which a model still compiles, and those that only what is scheduled needs.
OPTIONAL_PASSES = [
    "simplify_algebra", "fold_batch_norm", "fold_constants", "eliminate_common_subexpressions", "merge_padding",
    "merge_branches", "convert_layout", "winograd", "fold_winograd", "pack_weights", "fold_packing",
    "eliminate_dead_code",
    "fuse_ops", "schedule_functions", "partition_loops", "simplify_partitions",
]  # fmt: skip
# Vectors are not for schedules alone: what scatters rows has loops in them by itself.
FOR_SCHEDULES = ["compact_buffers", "simplify", "unroll_loops", "simplify_vectors"]


class NoAnswer(Exception):
    pass


def lathe(**options):
    def run(model, feeds, **more):
        import lathe

        executable = lathe.compile(model, cache=False, compile_threads=1, verify=True, **options, **more)
        made = executable(*[feeds[i.name] for i in model.graph.input])
        return list(made) if isinstance(made, tuple) else [made]

    return run


def onnxruntime(model, feeds):
    """Without its optimisations, so that what one node does wrong is seen in that node alone."""
    if any(node.op_type == "Einsum" for node in model.graph.node) and not all(x.size for x in feeds.values()):
        raise NoAnswer("its Einsum of nothing divides by zero, and takes the process with it")
    try:
        return onnxruntime_session(model, optimised=False).run(None, feeds)
    except Exception as error:  # noqa: BLE001 (it lacks kernels for many dtypes)
        raise NoAnswer(str(error)) from None


def evaluator(model, feeds):
    try:
        return ReferenceEvaluator(model).run(None, feeds)
    except Exception as error:  # noqa: BLE001
        raise NoAnswer(str(error)) from None


PARTIES = {
    "optimised": lathe(threads=2),
    "unoptimised": lathe(threads=1),
    "interpreter": lathe(target="interp"),
    "onnxruntime": onnxruntime,
    "evaluator": evaluator,
}
OURS = ("optimised", "unoptimised", "interpreter")


def switched_off(model, feeds, drawn):
    """Every optional pass off, or a random half; symbols fixed in half of the graphs."""
    rng = np.random.default_rng([*drawn, 2])
    off = OPTIONAL_PASSES if rng.random() < 0.5 else [p for p in OPTIONAL_PASSES if rng.random() < 0.5]
    if "schedule_functions" in off:
        off = [*off, *FOR_SCHEDULES]
    fixed = {}
    if rng.random() < 0.5:
        for value in model.graph.input:
            dims = value.type.tensor_type.shape.dim
            fixed |= {d.dim_param: n for d, n in zip(dims, feeds[value.name].shape, strict=True) if d.dim_param}
    return {"disabled_passes": off, "dims": fixed}


def answer(party, model, feeds, drawn=(0, 0)):
    options = switched_off(model, feeds, drawn) if party == "unoptimised" else {}
    return [np.asarray(y) for y in PARTIES[party](model, feeds, **options)]


def shared_opset(model):
    (opset,) = [o.version for o in model.opset_import if o.domain == ""]
    return opset


def one_node(model, index, values):
    """The node number `index` of a model alone, with what it reads as inputs. `values`: arrays by name."""
    node = model.graph.node[index]
    names = [name for name in dict.fromkeys(node.input) if name]
    known = {w.name for w in model.graph.initializer}
    info = onnx.helper.make_tensor_value_info
    element = onnx.helper.np_dtype_to_tensor_dtype
    inputs = [info(n, element(values[n].dtype), values[n].shape) for n in names if n not in known]
    outputs = [info(n, element(values[n].dtype), [None] * values[n].ndim) for n in node.output]
    weights = [w for w in model.graph.initializer if w.name in names]
    graph = onnx.helper.make_graph([node], "one_node", inputs, outputs, weights)
    made = onnx.helper.make_model(graph, opset_imports=model.opset_import)
    made.ir_version = model.ir_version
    return made, {n: values[n] for n in names if n not in known}
