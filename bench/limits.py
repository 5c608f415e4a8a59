"""The least time that a model can take on a machine: for each operator the larger of its operations over the peak and
of its bytes over the bandwidth, added up.

Bytes are those that no fusion can save: weights, the model's inputs and its outputs; what lies between operators is
free. The bandwidth is that of the smallest level of memory that holds all of them.
"""

import math

import onnx


def work_of(model):
    """[(operator, float operations, bytes)] for each node that has any; a multiply-add is two operations. None where
    the shape of a product is not known."""
    try:
        return _work_of(model, _shapes(model))
    except KeyError:
        return None


def _work_of(model, shapes):
    weights = {tensor.name for tensor in model.graph.initializer}
    outside = weights | {v.name for v in model.graph.input} | {v.name for v in model.graph.output}
    renamed = {n.input[0]: n.output[0] for n in model.graph.node if n.op_type == "Identity"}
    seen, result = set(), []
    for node in model.graph.node:
        if node.op_type == "Identity":
            continue
        names = [*node.input, *(renamed.get(name, name) for name in node.output)]
        touched = {name for name in names if name in outside and name not in seen}
        seen |= touched
        count = sum(math.prod(shapes[name][0]) * shapes[name][1] for name in touched)
        if node.op_type == "Gather" and node.input[0] in touched:  # only the rows that are asked for
            table, rows = shapes[node.input[0]], math.prod(shapes[node.input[1]][0])
            count += (rows - table[0][0]) * math.prod(table[0][1:]) * table[1]
            seen.discard(node.input[0])
        operations = _operations(node, shapes)
        if operations or count:
            result.append((node.op_type, operations, count))
    return result


PRODUCTS = ("MatMul", "Gemm", "Conv", "ConvTranspose", "LSTM", "GRU", "RNN")


def _operations(node, shapes):
    if node.op_type not in PRODUCTS:
        return 0
    operands = [shapes[name][0] if name else () for name in node.input]
    output = math.prod(shapes[node.output[0]][0])
    if node.op_type == "MatMul":
        return 2 * output * operands[0][-1]
    if node.op_type == "Gemm":
        transposed = any(a.name == "transA" and a.i for a in node.attribute)
        return 2 * output * operands[0][0 if transposed else 1]
    if node.op_type == "Conv":
        return 2 * output * math.prod(operands[1][1:])
    if node.op_type == "ConvTranspose":  # each element of the input meets the whole kernel of its group
        return 2 * math.prod(operands[0]) * math.prod(operands[1][1:])
    # A cell: x [length, batch, inputs], both weights once for each of its elements.
    return 2 * math.prod(operands[0][:2]) * (math.prod(operands[1]) + math.prod(operands[2]))


def _shapes(model):
    """{value: (shape, bytes of an element)}, of those whose shape is known."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    inferred = onnx.shape_inference.infer_shapes(bare, data_prop=True)
    result = {}
    for tensor in model.graph.initializer:
        result[tensor.name] = tuple(tensor.dims), onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    for value in [*inferred.graph.value_info, *inferred.graph.input, *inferred.graph.output]:
        tensor = value.type.tensor_type
        if not tensor.HasField("shape") or not all(d.HasField("dim_value") for d in tensor.shape.dim):
            continue
        size = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
        result[value.name] = tuple(d.dim_value for d in tensor.shape.dim), size
    return result


def seconds(work, machine):
    """The limit on a machine as `Probes.limits` describes it; None where the work is not known."""
    if work is None:
        return None
    total = sum(count for _, _, count in work)
    bandwidth = next(
        level["gb_s"] for level in machine["memory"] if level["bytes"] is None or total <= level["bytes"] // 2
    )
    return sum(max(operations / machine["gflop_s"], count / bandwidth) / 1e9 for _, operations, count in work)
