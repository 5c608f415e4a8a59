"""Writes docs/operators.md: each ONNX operator that is imported, with its versions, dtypes and tests.

The operators and versions are the rows under src/interchange/onnx/operators. Dtypes are those of the specification
that tests/operators/test_dtypes.py runs.
"""

import re
import sys
from collections import Counter, defaultdict

from .setup import ROOT

TABLE = ROOT / "docs" / "operators.md"
SOURCES = ROOT / "src" / "interchange" / "onnx" / "operators"
ROW = re.compile(r'\{\s*"([A-Z]\w*)",\s*\{([\d, ]+)\}')

GROUPS = {
    "floats": ("float16", "bfloat16", "float", "double"),
    "integers": ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    "bool": ("bool",),
    "float8": ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"),
    "packed": ("float8e8m0", "float4e2m1", "int4", "uint4", "int2", "uint2"),
}

HEAD = """# Operators

What the ONNX importer takes. Made by `python -m scripts.operator_table`.

- *changes*: the opsets in which something that matters changed; the newest that a model's opset reaches counts.
- *dtypes*: those that the specification lists for a type parameter and that run on random samples, each against a
  reference (`pytest tests/operators/test_dtypes.py --full`). *fixed*: it lists none, each input has one type.
  *floats*: {floats}.
  *integers*: {integers}.
  *float8*: {float8}.
  *packed*, and powers of two: {packed}.
- *gradient*: yes where the gradient is held against central differences in float64 (float32 where the specification
  has no float64; `pytest tests/operators/test_gradients.py`); a dash: it has none, and `tests/operators/gradients.py`
  says why.
- *suite*: cases of the onnx backend suite under this operator that pass, of all (`tests/onnx_backend`).

"""


def imported():
    """{operator: (its versions, the source)}"""
    found = {}
    for path in sorted(SOURCES.rglob("*.cpp")):
        if path.stem.endswith("_test"):
            continue
        for name, versions in ROW.findall(path.read_text()):
            found[name] = ([int(v) for v in versions.split(",")], path.stem)
    return found


def in_groups(names):
    """"floats, int8": whole groups by their names, then what is left."""
    left, said = list(names), []
    for group, members in GROUPS.items():
        if set(members) <= set(left):
            said.append(group)
            left = [name for name in left if name not in members]
    return ", ".join(said + left)


def dtypes_of(op):
    from tests.operators.claimed import CLAIMED
    from tests.operators.test_dtypes import rows, samples

    if op not in CLAIMED:
        return "-"
    drawn = defaultdict(list)
    for parameter, dtype in rows(op):
        if any(True for _ in samples(op, parameter, dtype)):
            drawn[parameter].append(dtype)
    return "; ".join(f"{parameter}: {in_groups(names)}" for parameter, names in sorted(drawn.items()))


def suite():
    """{operator: (passing, all)}"""
    from tests.onnx_backend import expected
    from tests.onnx_backend.cases import all_cases

    passing, counts, passed = expected.read("static"), Counter(), Counter()
    for case in all_cases():
        if case.kind != "node":
            continue
        counts[case.operator] += 1
        passed[case.operator] += f"{case.kind}/{case.name}" in passing
        case.__dict__.pop("model", None)
    return {op: (passed[op], counts[op]) for op in counts}


def text():
    from tests.operators.gradients import NO_GRADIENT

    cases, lines = suite(), ["| operator | changes | dtypes | gradient | suite | source |", "|---|---|---|---|---|---|"]
    for op, (versions, source) in sorted(imported().items()):
        dtypes = dtypes_of(op) or "fixed"
        passed, total = cases.get(op, (0, 0))
        told = f"{passed} of {total}" if total else "-"
        gradient = "-" if op in NO_GRADIENT else "yes"
        lines.append(f"| {op} | {', '.join(map(str, versions))} | {dtypes} | {gradient} | {told} | `{source}.cpp` |")
    groups = {group: ", ".join(members) for group, members in GROUPS.items()}
    return HEAD.format(**groups) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    TABLE.write_text(text())
    print(f"written: {TABLE.relative_to(ROOT)}")
    sys.exit(0)
