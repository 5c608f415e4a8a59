"""lathe explain: a page by itself, the same as data, and a timeline."""

import json
import re

import numpy as np
import onnx
import pytest

from tests.models import MODELS
from tests.support import paths


def data_of(page, name):
    text = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL).group(1)
    return json.loads(text)


def test_a_page_by_itself(lathe_cli, tmp_path):
    page, timeline = tmp_path / "report.html", tmp_path / "timeline.json"
    options = ["--dim", "batch=2", "--threads", "1", "--seconds", "0.01", "--timeline", timeline]
    assert "kernels, " in lathe_cli("explain", paths.DIGITS_MODEL, *options, "-o", page).out
    text = page.read_text()
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")  # nothing comes from elsewhere
    data = data_of(text, "data")
    assert data["model"] == "digits.onnx" and data["run"]["threads"] == 1
    assert 0.1 < sum(kernel["share"] for kernel in data["kernels"]) < 1.001  # the rest: instructions between kernels
    events = json.loads(timeline.read_text())
    assert events == data_of(text, "events")
    starts = [event["ts"] for event in events["traceEvents"]]
    names = {event["name"] for event in events["traceEvents"]}
    assert starts == sorted(starts) and {kernel["name"] for kernel in data["kernels"]} <= names


def test_the_same_as_data_for_every_kind_of_model(lathe_cli, tmp_path):
    """One with control flow and one whose sizes are symbols, which cannot be run without more."""
    branch = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
    g (bool c, float[n] x) => (float[m] y) {
        y = If (c) <then_branch = t () => (float[a] p) { p = Neg(x) },
                    else_branch = e () => (float[b] q) { q = Concat<axis = 0>(x, x) }>
    }""")
    for name, model in (("branch", branch), ("transformer", MODELS["transformer"](batch="batch"))):
        onnx.save(model, tmp_path / f"{name}.onnx")
        outcome = lathe_cli("explain", tmp_path / f"{name}.onnx", "-o", tmp_path / "report.json")
        assert "not run" in outcome.out and "cannot be made up" in outcome.err
        data = json.loads((tmp_path / "report.json").read_text())
        assert data["run"] is None and data["kernels"] and all(kernel["asm"] for kernel in data["kernels"])
    for name, array in (("c", np.array(True)), ("x", np.ones(5, np.float32))):
        np.save(tmp_path / f"{name}.npy", array)
    inputs = [word for name in "cx" for word in ("--input", f"{name}={tmp_path / name}.npy")]
    command = ["explain", tmp_path / "branch.onnx", *inputs, "--seconds", "0.01", "-o", tmp_path / "report.json"]
    assert "not run" not in lathe_cli(*command).out


@pytest.mark.parametrize(
    "arguments, said",
    [(("-o", "/no/such/folder/r.html", "--no-run"), "cannot be written"), (("--no-run",), "--output is required"),
     (("-o", "r.html", "--no-run", "--timeline", "t.json"), "a timeline needs a run"),
     (("-o", "r.html", "--input", "image=none.npy"), "none.npy"), (("-o", "r.html", "--target", "pdp11"), "pdp11")],
)  # fmt: skip
def test_what_does_not_work_is_said(lathe_cli, tmp_path, arguments, said, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = lathe_cli.run("explain", paths.DIGITS_MODEL, "--dim", "batch=1", *arguments)
    assert outcome.code in (1, 2) and said in outcome.err, str(outcome)
