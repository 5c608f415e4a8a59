"""lathe opt model.onnx -o smaller.onnx: models made smaller, cut, renamed and rounded, and the same in meaning."""

import gzip

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.models import MODELS, input_for
from tests.models.light import LIGHT, NARROW, light
from tests.random_graphs.compare import differences
from tests.random_graphs.growing import grown
from tests.random_graphs.parties import PARTIES, NoAnswer
from tests.support.float64 import reference_outputs, relative_error

OPSET = helper.make_opsetid("", 17)


def info(name, dims, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def weight(name, *shape, seed=1):
    return numpy_helper.from_array(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), name)


def model_of(nodes, inputs, outputs, initializers=(), opsets=(OPSET,), functions=()):
    graph = helper.make_graph(nodes, "the_graph", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=list(opsets), functions=list(functions), ir_version=8)


@pytest.fixture
def rewrite(lathe_cli, tmp_path):
    """Saves the model, runs `lathe opt` with the words, and gives the checked result; what was said is in `.said`."""

    def run(model, *words):
        onnx.save(model, tmp_path / "given.onnx")
        run.said = lathe_cli("opt", tmp_path / "given.onnx", *words, "-o", tmp_path / "made.onnx", timeout=300)
        onnx.checker.check_model(tmp_path / "made.onnx", full_check=True)
        assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []
        return onnx.load(tmp_path / "made.onnx")

    return run


def kinds(model):
    return [node.op_type for node in model.graph.node]


def assert_same(model, made, feeds, bound=2e-6):
    for got, expected in zip(reference_outputs(made, feeds), reference_outputs(model, feeds), strict=True):
        assert got.shape == expected.shape
        assert relative_error(got, expected) < bound


def shapes_and_norm():
    """A convolution with its normalisation, a reshape whose shape is computed, equal nodes, and nodes of no use."""
    vectors = [weight(n, 6, seed=i) for i, n in enumerate(("scale", "shift", "mean"))]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"], epsilon=0.01),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Relu", ["n"], ["again"]),
        helper.make_node("Add", ["r", "again"], ["sum"]),
        helper.make_node("Identity", ["sum"], ["same"]),
        helper.make_node("Shape", ["same"], ["dims"]),
        helper.make_node("Gather", ["dims", "two"], ["width"]),
        helper.make_node("Unsqueeze", ["width", "zero"], ["widths"]),
        helper.make_node("Concat", ["minus", "widths"], ["target"], axis=0),
        helper.make_node("Reshape", ["same", "target"], ["y"]),
        helper.make_node("Exp", ["n"], ["nobody"]),
    ]
    integers = [numpy_helper.from_array(np.array(v, np.int64), n)
                for n, v in (("two", 2), ("zero", [0]), ("minus", [-1]))]  # fmt: skip
    var = numpy_helper.from_array(np.linspace(0.5, 2, 6).astype(np.float32), "var")
    return model_of(nodes, [info("x", ["batch", 4, 9, 5])], [info("y", None)],
                    [weight("w", 6, 4, 3, 3), var, *vectors, *integers])  # fmt: skip


def test_what_is_known_is_computed_and_what_is_double_goes(rewrite):
    model = shapes_and_norm()
    made = rewrite(model)
    assert kinds(made) == ["Conv", "Relu", "Add", "Reshape"]
    assert [i.name for i in made.graph.input] == ["x"] and [o.name for o in made.graph.output] == ["y"]
    assert made.graph.node[0].name == "conv" and len(made.graph.node[0].input) == 3
    batch = made.graph.input[0].type.tensor_type.shape.dim[0]
    assert batch.dim_param == "batch"
    assert {v.name for v in made.graph.value_info} >= {"r", "sum"}
    assert "3 random inputs" in rewrite.said.out and "4 nodes" in rewrite.said.out and "12 nodes" in rewrite.said.out
    assert_same(model, made, {"x": np.random.default_rng(5).standard_normal((3, 4, 9, 5)).astype(np.float32)})


def test_passes_by_name(rewrite):
    model = shapes_and_norm()
    assert kinds(rewrite(model, "--passes=none")).count("Relu") == 2
    made = rewrite(model, "--passes=eliminate_common_subexpressions,eliminate_dead_code")
    assert kinds(made).count("Relu") == 1 and "BatchNormalization" in kinds(made) and "Exp" not in kinds(made)


def test_a_transposed_convolution_takes_its_normalisation(rewrite):
    nodes = [helper.make_node("ConvTranspose", ["x", "w", "b"], ["c"], strides=[2, 1]),
             helper.make_node("BatchNormalization", ["c", "s", "h", "m", "v"], ["y"])]  # fmt: skip
    var = numpy_helper.from_array(np.linspace(0.5, 2, 6).astype(np.float32), "v")
    weights = [weight("w", 4, 6, 3, 2), var, *[weight(n, 6, seed=i) for i, n in enumerate("bshm")]]
    model = model_of(nodes, [info("x", [2, 4, 5, 7])], [info("y", None)], weights)
    made = rewrite(model)
    assert kinds(made) == ["ConvTranspose"]
    assert_same(model, made, {"x": np.random.default_rng(5).standard_normal((2, 4, 5, 7)).astype(np.float32)})


@pytest.mark.parametrize("reason", ["used twice", "in groups, transposed", "statistics are inputs"])
def test_a_normalisation_that_cannot_be_folded_stays(rewrite, reason):
    transposed = reason == "in groups, transposed"
    nodes = [helper.make_node("ConvTranspose" if transposed else "Conv", ["x", "w"], ["c"], group=2),
             helper.make_node("BatchNormalization", ["c", "s", "h", "m", "v"], ["n"]),
             helper.make_node("Add", ["n", "c" if reason == "used twice" else "n"], ["y"])]  # fmt: skip
    var = numpy_helper.from_array(np.linspace(0.5, 2, 6).astype(np.float32), "v")
    shape = (4, 3, 3, 2) if transposed else (6, 2, 3, 2)
    weights = [weight("w", *shape), var, *[weight(n, 6, seed=i) for i, n in enumerate("shm")]]
    inputs = [info("x", [2, 4, 5, 7])]
    if reason == "statistics are inputs":
        weights = [w for w in weights if w.name != "s"]
        inputs.append(info("s", [6]))
    made = rewrite(model_of(nodes, inputs, [info("y", None)], weights))
    assert "BatchNormalization" in kinds(made)


def test_parts_by_the_names_of_values(rewrite, lathe_cli, tmp_path):
    model = shapes_and_norm()
    head = rewrite(model, "--outputs", "n,c")
    assert [o.name for o in head.graph.output] == ["n", "c"] and kinds(head) == ["Conv", "BatchNormalization"]
    tail = rewrite(model, "--inputs", "n")
    assert [i.name for i in tail.graph.input] == ["n"] and kinds(tail) == ["Relu", "Add", "Reshape"]
    assert tail.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    middle = rewrite(model, "--inputs", "c", "--outputs", "r")
    assert kinds(middle) == ["BatchNormalization", "Relu"]
    x = {"c": np.random.default_rng(5).standard_normal((2, 6, 9, 5)).astype(np.float32)}
    whole = onnx.utils.Extractor(onnx.shape_inference.infer_shapes(model)).extract_model(["c"], ["r"])
    assert_same(whole, middle, x)
    assert "'nothing'" in lathe_cli.fails("opt", tmp_path / "given.onnx", "--outputs", "nothing",
                                          "-o", tmp_path / "no.onnx").err  # fmt: skip
    words = ["--inputs", "r", "--outputs", "c", "-o", tmp_path / "no.onnx"]
    refused = lathe_cli.fails("opt", tmp_path / "given.onnx", *words)
    assert "need the input 'x' too" in refused.err and not (tmp_path / "no.onnx").exists()


def test_other_names(rewrite, lathe_cli, tmp_path):
    made = rewrite(shapes_and_norm(), "--rename", "x=image", "--rename", "y=out")
    assert [i.name for i in made.graph.input] == ["image"] and [o.name for o in made.graph.output] == ["out"]
    plain = rewrite(shapes_and_norm(), "--passes=none", "--rename", "w=weights")
    assert "weights" in [t.name for t in plain.graph.initializer] and "w" not in plain.graph.node[0].input
    refused = lathe_cli.fails("opt", tmp_path / "given.onnx", "--rename", "q=r", "-o", tmp_path / "no.onnx")
    assert "there is no value 'q'" in refused.err


def test_weights_of_few_values(rewrite, tmp_path):
    model = MODELS["mlp"]()
    made = rewrite(model, "--round-weights", "16")
    assert max(len(np.unique(numpy_helper.to_array(t))) for t in made.graph.initializer) == 16
    size = {name: len(gzip.compress((tmp_path / name).read_bytes())) for name in ("given.onnx", "made.onnx")}
    assert size["made.onnx"] < 0.25 * size["given.onnx"]
    assert "outputs differ" in rewrite.said.out
    feeds = input_for(model, 3, 1)
    assert relative_error(reference_outputs(made, feeds)[0], reference_outputs(model, feeds)[0]) < 0.5


def test_weights_beside_the_model(rewrite, tmp_path):
    model = MODELS["mlp"]()
    made = rewrite(model, "--data-file")
    assert (tmp_path / "made.onnx.data").stat().st_size > 10 * (tmp_path / "made.onnx").stat().st_size
    assert_same(model, made, input_for(model, 2, 1))


def test_inputs_that_nothing_reads(rewrite):
    model = model_of([helper.make_node("Relu", ["a"], ["y"])], [info("a", [3]), info("b", [4])], [info("y", [3])])
    assert [i.name for i in rewrite(model).graph.input] == ["a", "b"]
    assert [i.name for i in rewrite(model, "--passes=drop_unused_inputs").graph.input] == ["a"]


def test_functions_become_their_nodes(rewrite):
    scaled = helper.make_function(
        "mine", "Scaled", ["a", "b"], ["r", "a"],
        [helper.make_node("Selu", ["a"], ["t"]), helper.make_node("Mul", ["t", "b"], ["r"])], [OPSET], ["alpha"],
    )  # fmt: skip
    reference = onnx.AttributeProto(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    scaled.node[0].attribute.append(reference)
    nodes = [helper.make_node("Scaled", ["x", "z"], ["u", "v"], domain="mine", alpha=0.5),
             helper.make_node("Scaled", ["u", "v"], ["y", ""], domain="mine", alpha=2.0)]  # fmt: skip
    model = model_of(nodes, [info("x", ["n"]), info("z", ["n"])], [info("y", ["n"]), info("v", ["n"])],
                     opsets=[OPSET, helper.make_opsetid("mine", 1)], functions=[scaled])  # fmt: skip
    made = rewrite(model)
    assert sorted(kinds(made)) == ["Identity", "Mul", "Mul", "Selu", "Selu"] and not made.functions
    feeds = {name: np.random.default_rng(i).standard_normal(5).astype(np.float32) for i, name in enumerate("xz")}
    for got, expected in zip(ReferenceEvaluator(made).run(None, feeds), ReferenceEvaluator(model).run(None, feeds),
                             strict=True):  # fmt: skip
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_graphs_inside_nodes_read_what_is_around_them(rewrite):
    """A branch captures a folded constant, a value that another takes the place of, and a renamed input."""
    then = helper.make_graph([helper.make_node("Mul", ["second", "k"], ["a"])], "then", [], [info("a", None)])
    other = helper.make_graph([helper.make_node("Sub", ["x", "first"], ["b"])], "otherwise", [], [info("b", None)])
    nodes = [helper.make_node("Relu", ["x"], ["first"]), helper.make_node("Relu", ["x"], ["second"]),
             helper.make_node("Exp", ["ten"], ["k"]),
             helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)]  # fmt: skip
    ten = numpy_helper.from_array(np.full(5000, 0.25, np.float32), "ten")
    model = model_of(nodes, [info("c", [], TensorProto.BOOL), info("x", [5000])], [info("y", None)], [ten])
    made = rewrite(model, "--rename", "x=data")
    assert kinds(made) == ["Relu", "If"] and [i.name for i in made.graph.input] == ["c", "data"]
    x = np.random.default_rng(3).standard_normal(5000).astype(np.float32)
    for c in (np.array(True), np.array(False)):
        (expected,) = ReferenceEvaluator(model).run(None, {"c": c, "x": x})
        (got,) = ReferenceEvaluator(made).run(None, {"c": c, "data": x})
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_random_numbers_are_drawn_each_for_itself(rewrite):
    nodes = [helper.make_node("RandomUniform", [], [name], shape=[4]) for name in "ab"]
    nodes.append(helper.make_node("Sub", ["a", "b"], ["y"]))
    made = rewrite(model_of(nodes, [info("x", [1])], [info("y", None)]), "--no-check")
    assert kinds(made) == ["RandomUniform", "RandomUniform", "Sub"]


def test_a_result_that_differs_is_not_written(lathe_cli, tmp_path):
    """The numbers that a node draws depend on those drawn before it, by a node that no output needs."""
    nodes = [helper.make_node("RandomUniform", [], [name], shape=[4]) for name in ("nobody", "r")]
    nodes.append(helper.make_node("Add", ["x", "r"], ["y"]))
    onnx.save(model_of(nodes, [info("x", [4])], [info("y", None)]), tmp_path / "given.onnx")
    refused = lathe_cli.fails("opt", tmp_path / "given.onnx", "-o", tmp_path / "no.onnx")
    assert "the output 'y' of the model that would be written differs" in refused.err
    assert [p.name for p in tmp_path.iterdir()] == ["given.onnx"]


def test_outputs_that_no_node_computes(rewrite):
    nodes = [helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Relu", ["x"], ["z"]),
             helper.make_node("Identity", ["z"], ["t"])]  # fmt: skip
    model = model_of(nodes, [info("x", [3])], [info(n, [3]) for n in "yztw"], [weight("w", 3)])
    made = rewrite(model)
    assert [o.name for o in made.graph.output] == ["y", "z", "t", "w"]
    feeds = {"x": np.array([1, -2, 3], np.float32)}
    for got, expected in zip(ReferenceEvaluator(made).run(None, feeds), ReferenceEvaluator(model).run(None, feeds),
                             strict=True):  # fmt: skip
        np.testing.assert_array_equal(got, expected)


def test_nodes_as_text_come_back(lathe_cli, tmp_path):
    nodes = [helper.make_node("Split", ["x", "sizes"], ["a", "b"], axis=0),
             helper.make_node("Elu", ["b"], ["y"], alpha=0.5)]  # fmt: skip
    sizes = numpy_helper.from_array(np.array([1, 2], np.int64), "sizes")
    onnx.save(model_of(nodes, [info("x", [3, "n"])], [info("y", None)], [sizes]), tmp_path / "given.onnx")
    text = lathe_cli("opt", tmp_path / "given.onnx", "--emit", "nodes").out
    assert "R.onnx_node(" in text and 'op="Split"' in text
    (tmp_path / "nodes.relax").write_text(text)
    assert lathe_cli("opt", tmp_path / "nodes.relax").out == text


def test_refusals_leave_nothing(lathe_cli, tmp_path):
    onnx.save(shapes_and_norm(), tmp_path / "given.onnx")
    assert "fold_constants" in lathe_cli.fails(
        "opt", tmp_path / "given.onnx", "--passes=fuse_ops", "-o", tmp_path / "no.onnx").err  # fmt: skip
    assert "cannot be written" in lathe_cli.fails(
        "opt", tmp_path / "given.onnx", "-o", tmp_path / "absent" / "no.onnx").err  # fmt: skip
    (tmp_path / "a.tir").write_text("")
    assert "script" in lathe_cli.fails("opt", tmp_path / "a.tir", "-o", tmp_path / "no.onnx").err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tir", "given.onnx"]


# ---- whole models ----


@pytest.mark.parametrize("name", ["squeezenet", "mobilenet_v2", "transformer", "unet"])
def test_networks(rewrite, name):
    model = MODELS[name]() if name in ("transformer", "unet") else MODELS[name](multiplier=0.25, height=49, width=67)
    made = rewrite(model)
    assert len(made.graph.node) <= len(model.graph.node) and "BatchNormalization" not in kinds(made)
    assert_same(model, made, input_for(model, 2, 1), bound=1e-5)


@pytest.mark.full
@pytest.mark.parametrize("name", LIGHT)
def test_light_models(rewrite, name):
    model = light(name, narrow=NARROW[name])
    made = rewrite(model)
    assert_same(model, made, input_for(model, 2, 1), bound=1e-5)


def survives(rewrite, seed, index):
    """A random graph made again has the same true results; whether ONNX Runtime or the onnx evaluator runs it."""
    graph = grown(seed, index)
    results, feeds = graph.results(), graph.feeds()
    model = graph.model(results)
    made = rewrite(model, "--no-check")
    assert not differences(results, PARTIES["optimised"](made, feeds)), (seed, index)
    runs = False
    for party in (PARTIES["onnxruntime"], PARTIES["evaluator"]):
        try:
            if not differences(results, party(model, feeds)):
                assert not differences(results, party(made, feeds)), (seed, index)
                runs = True
        except NoAnswer:
            continue
    return runs


def test_random_graphs(rewrite, seed):
    assert sum(survives(rewrite, seed, index) for index in range(10)) > 5


@pytest.mark.full
def test_a_hundred_random_graphs(rewrite):
    assert sum(survives(rewrite, 11, index) for index in range(100)) > 70
