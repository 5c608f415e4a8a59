"""Samples of If, Loop and Scan with small bodies, and what they must answer. `test_control_flow` nests them."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tests.operators.sample import DTYPES, PLAIN, allowed_dtypes, is_float


def kind(name, dtype, rank):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), [None] * rank)


def whole(d, shape, dtype):
    """Values whose sums are exact in every dtype."""
    x = d.array(shape, dtype, -3, 3)
    return np.asarray(np.rint(x.astype(np.float64)).astype(dtype)) if is_float(dtype) else x


def adds(d, dtype):
    """Whether elements of the dtype can be added at the opset."""
    return dtype in [DTYPES[name] for name in allowed_dtypes("Add", d.opset, "T")]


def combined(d, dtype, a, b, result):
    """The node that makes `a + b`, or `a` where the dtype has no sums."""
    return helper.make_node("Add", [a, b], [result]) if adds(d, dtype) else helper.make_node("Identity", [a], [result])


def if_(d):
    """Branches give constants of one rank, of extents of their own."""
    count = d.integer(1, 3)
    dtypes = [d.dtype("V") for _ in range(count)]
    ranks, branches, values = [d.integer(0, 3) for _ in range(count)], {}, {}
    for name in ("then_branch", "else_branch"):
        values[name] = [d.array([d.integer(0, 4) for _ in range(r)], t) for r, t in zip(ranks, dtypes, strict=True)]
        nodes = [helper.make_node("Constant", [], [f"{name}{k}"], value=numpy_helper.from_array(value))
                 for k, value in enumerate(values[name])]  # fmt: skip
        kinds = [kind(f"{name}{k}", t, r) for k, (t, r) in enumerate(zip(dtypes, ranks, strict=True))]
        branches[name] = helper.make_graph(nodes, name, [], kinds)
    condition = np.array(d.chance(0.5)).reshape(d.choice([[], [1]]))
    constants = {0} if d.chance(0.2) else set()
    return d.sample([condition], attributes=branches, outputs=count, types=dtypes, plan=values, constants=constants)


def loop(d):
    """Carries a tensor that grows by itself's first value, and one that is handed on; keeps each turn's."""
    dtype, rank = d.dtype("V"), d.integer(0, 3)
    x = whole(d, [d.integer(0, 4) for _ in range(rank)], dtype)
    trips = d.integer(0, 5)
    limit = d.integer(0, 5) if d.chance(0.5) else None  # the turn after which the body says no
    m = np.array(trips, np.int64).reshape(d.choice([[], [1]])) if limit is None or d.chance(0.7) else None
    condition = np.array(d.chance(0.8)).reshape(d.choice([[], [1]])) if d.chance(0.6) else None
    step = whole(d, [], dtype)
    nodes = [
        helper.make_node("Constant", [], ["step"], value=numpy_helper.from_array(step)),
        combined(d, dtype, "carried", "step", "next"),
        helper.make_node("Identity", ["carried"], ["kept"]),
        helper.make_node("Identity", ["turn"], ["number"]),
    ]
    if limit is None:
        nodes.append(helper.make_node("Identity", ["on"], ["goes_on"]))
    else:
        most = numpy_helper.from_array(np.array(limit, np.int64))
        nodes += [
            helper.make_node("Constant", [], ["most"], value=most),
            helper.make_node("Less", ["turn", "most"], ["goes_on"]),
        ]
    inputs = [helper.make_tensor_value_info("turn", TensorProto.INT64, []),
              helper.make_tensor_value_info("on", TensorProto.BOOL, []), kind("carried", dtype, rank)]  # fmt: skip
    outputs = [helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []), kind("next", dtype, rank),
               kind("kept", dtype, rank), helper.make_tensor_value_info("number", TensorProto.INT64, [])]  # fmt: skip
    body = helper.make_graph(nodes, "body", inputs, outputs)
    plan = {"limit": limit, "step": step if adds(d, dtype) else None}
    types = [dtype, dtype, np.dtype(np.int64)]
    constants = {0} if m is not None and d.chance(0.3) else set()
    given = {"attributes": {"body": body}, "constants": constants}
    return d.sample([m, condition, x], outputs=3, types=types, plan=plan, **given)


def scan(d):
    """Adds up the parts of one input, keeps the sums so far, and hands on the parts of another."""
    d.opset = max(d.opset, 9)  # before, it was over batches
    dtype = d.dtype("V")
    shape, turns = [d.integer(1, 4) for _ in range(d.integer(0, 2))], d.integer(1, 5)
    axes = [d.integer(0, len(shape)) for _ in range(2)]
    out_axes = [d.integer(0, len(shape)) for _ in range(2)]
    directions, out_directions = ([d.integer(0, 1) for _ in range(2)] for _ in range(2))
    parts = []
    for axis in axes:
        own = list(shape)
        own.insert(axis, turns)
        parts.append(whole(d, own, dtype))
    state = whole(d, shape, dtype)
    nodes = [
        combined(d, dtype, "state", "part", "sum"),
        helper.make_node("Identity", ["sum"], ["kept"]),
        helper.make_node("Identity", ["other"], ["handed"]),
    ]
    rank = len(shape)
    kinds = [kind(name, dtype, rank) for name in ("state", "part", "other", "sum", "kept", "handed")]
    body = helper.make_graph(nodes, "body", kinds[:3], kinds[3:])
    attributes = {"body": body, "num_scan_inputs": 2}

    def counted(axis):
        return axis - rank - 1 if d.opset >= 11 and d.chance(0.4) else axis

    for name, values, default in (
        ("scan_input_axes", [counted(a) for a in axes], axes == [0, 0]),
        ("scan_output_axes", [counted(a) for a in out_axes], out_axes == [0, 0]),
        ("scan_input_directions", directions, directions == [0, 0]),
        ("scan_output_directions", out_directions, out_directions == [0, 0]),
    ):
        if not default or d.chance(0.4):
            attributes[name] = values
    plan = {"adds": adds(d, dtype), "axes": axes, "out_axes": out_axes, "back": directions, "out_back": out_directions}
    s = d.sample([state, *parts], attributes=attributes, outputs=3, types=[dtype] * 3, plan=plan, symbolic=False)
    if d.chance(0.4):
        s.symbolic = {(1 + k, axis): "turns" for k, axis in enumerate(axes)}
    return s


# What they must answer.


def chosen(s, condition):
    return s.plan["then_branch" if condition.item() else "else_branch"]


def looped(s, m, condition, x):
    dtype, kept, turn = x.dtype, [], 0
    goes_on = condition is None or bool(condition.item())
    while goes_on and (m is None or turn < m.item()):
        kept.append(x)
        x = x if s.plan["step"] is None else np.asarray(x + s.plan["step"].astype(dtype), dtype)
        goes_on = s.plan["limit"] is None or turn < s.plan["limit"]
        turn += 1
    rows = np.stack(kept) if kept else np.zeros([0, *x.shape], dtype)
    return [x, rows, np.arange(turn)]


def scanned(s, state, *parts):
    p = s.plan
    parts = [np.flip(np.moveaxis(x, axis, 0), 0) if back else np.moveaxis(x, axis, 0)
             for x, axis, back in zip(parts, p["axes"], p["back"], strict=True)]  # fmt: skip
    made = [[], []]
    for part, other in zip(*parts, strict=True):
        state = np.asarray(state + part, state.dtype) if p["adds"] else state
        made[0].append(state)
        made[1].append(other)
    rows = [np.stack(rows[::-1] if back else rows) for rows, back in zip(made, p["out_back"], strict=True)]
    return [state, *(np.moveaxis(x, 0, axis) for x, axis in zip(rows, p["out_axes"], strict=True))]


GENERATORS = {"If": if_, "Loop": loop, "Scan": scan}
OWN = {"If": (PLAIN, chosen), "Loop": (PLAIN, looped), "Scan": (PLAIN, scanned)}
EXACT = set(OWN)
