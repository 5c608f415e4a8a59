"""Every way to misuse every operator at import: the message names the node, the operator and what the operands are."""

import onnx
import pytest

from tests.errors import misuse
from tests.operators.table import GENERATORS

# What the shape rules of ONNX refuse and Lathe takes, each with a reason.
TAKEN = {
    **dict.fromkeys(
        [("ReduceMax", "dtype"), ("ReduceMin", "dtype"), ("TopK", "dtype")], "a newer release takes the type"
    ),
    ("CausalConvWithState", "shape"): "a bias of one value is every channel's",
    ("Scan", "shape"): "any rank that the body's nodes take",
    ("SequenceMap", "shape"): "any rank that the body's nodes take",
}


def refusal(lathe, model):
    """What Lathe says of the model, or None where it takes it."""
    try:
        lathe.import_onnx(model)
    except lathe.Error as error:
        return str(error)
    return None


def problem(lathe, op, model, kind, judged):
    """What is wrong with Lathe's answer to a misuse, or None. `judged`: whether ONNX's shape inference can tell."""
    said = refusal(lathe, model)
    if said is None:
        return "taken" if judged and misuse.is_invalid(model) and (op, kind) not in TAKEN else None
    if "internal" in said.lower():
        return f"an internal failure: {said}"
    if f"{misuse.NODE}/body" in said:  # a node inside of it that does not take what comes in
        return None
    wanted = [misuse.NODE, op] + (misuse.operands(model)[:8] if kind in ("shape", "dtype") else [])
    missing = [word for word in wanted if word not in said]
    return f"does not say {', '.join(missing)}: {said}" if missing else None


@pytest.mark.parametrize("op", sorted(GENERATORS))
def test_misuse(lathe, op):
    valid = misuse.sample_model(op)
    assert refusal(lathe, valid) is None
    judged = not misuse.is_invalid(valid)
    problems, tried = [], 0
    for label, kind, change in misuse.misuses(valid):
        model = onnx.ModelProto()
        model.CopyFrom(valid)
        change(model)
        tried += 1
        if said := problem(lathe, op, model, kind, judged):
            problems.append(f"{label}: {said[:700]}")
    assert tried >= 2
    assert not problems, f"{len(problems)} of {tried}\n" + "\n".join(problems[:8])
    assert refusal(lathe, valid) is None  # the process goes on as before
