"""States: what a model keeps from one call to the next is what it gives when everything is passed along."""

import lathe
import numpy as np
import pytest

from lathe.script import from_source
from tests.models.gpt2 import gpt2
from tests.models.llama import llama
from tests.models.recurrent import lstm_language
from tests.support.backends import onnxruntime_session

WORDS = 43
GPT2 = {"features": 24, "heads": 3, "layers": 2, "words": WORDS, "positions": 40}
LLAMA = {"features": 24, "heads": 6, "shared": 3, "words": WORDS}
CACHE = {"past_*": "*"}
ONE_TOKEN = ({"past": "0..24"}, [1] * 25)
ANY_LENGTH = ({"past": "0..24", "length": "1..9"}, [7, 1, 1, 3, 9, 1, 2])
WITH_VERSIONS = ({"past": "0..24:7,8", "length": "1..9:1"}, [7, 1, 1, 3, 9, 1])

DECODERS = {
    "gpt2": (lambda: gpt2(1, 1, past="past", **GPT2), *ONE_TOKEN),
    "gpt2 of two": (lambda: gpt2(2, 1, past="past", **GPT2), *ONE_TOKEN),
    "gpt2 of any length": (lambda: gpt2(1, "length", past="past", **GPT2), *ANY_LENGTH),
    "gpt2 with versions": (lambda: gpt2(1, "length", past="past", **GPT2), *WITH_VERSIONS),
    "llama": (lambda: llama(1, "length", past="past", **LLAMA), *ANY_LENGTH),
    "llama with versions": (lambda: llama(2, "length", past="past", **LLAMA), *WITH_VERSIONS),
}


def tokens(rng, model, length):
    batch = model.graph.input[[i.name for i in model.graph.input].index("x")].type.tensor_type.shape.dim[0].dim_value
    return rng.integers(0, WORDS, (batch, length))


def empty_cache(model):
    return {
        i.name: np.zeros([d.dim_value for d in i.type.tensor_type.shape.dim], np.float32)
        for i in model.graph.input
        if i.name != "x"
    }


def passed_along(model, inputs, pairs):
    """What ONNX Runtime gives for x after x when each call gets the states that the last one gave."""
    session = onnxruntime_session(model.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    states, answers = empty_cache(model), []
    for x in inputs:
        results = dict(zip(names, session.run(names, {"x": x, **states})))
        states = {state: results[output] for state, output in pairs.items()}
        answers.append((results["y"], states))
    return answers


def cache_pairs(model):
    return {i.name: i.name.removeprefix("past_") for i in model.graph.input if i.name != "x"}


def assert_close(got, want):
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("disabled", [(), ("states_in_place",)], ids=["in place", "replaced"])
@pytest.mark.parametrize("name", DECODERS)
def test_a_cache_of_keys_and_values(name, disabled):
    make, dims, lengths = DECODERS[name]
    model, rng = make(), np.random.default_rng(3)
    inputs = [tokens(rng, model, length) for length in lengths]
    run = lathe.compile(model, dims=dims, states=CACHE, disabled_passes=disabled)
    assert [port.name for port in run.inputs] == ["x"] and [port.name for port in run.outputs] == ["y"]
    state = run.make_state()
    for x, (y, states) in zip(inputs, passed_along(model, inputs, cache_pairs(model))):
        assert_close(run(x, state=state), y)
        kept = state.arrays()
        assert set(kept) == set(states)
        for state_name, array in states.items():
            assert_close(kept[state_name], array)


@pytest.mark.parametrize("name", DECODERS)
def test_the_cache_is_written_in_place(name, tmp_path):
    make, dims, _ = DECODERS[name]
    lathe.compile(make(), dims=dims, states=CACHE, dump_ir=tmp_path)
    (dump,) = tmp_path.glob("*states_in_place.py")
    main = dump.read_text().split("def main")[1].split("cls = Module")[0]
    assert '"past", 8' not in main and 'states": [{"axis": 2, "length": "past"}, {"axis"' in main
    assert main.count('{"axis": 2') == 4 and main.count('{"output"') == 1


def test_a_recurrent_network_goes_on():
    model, rng = lstm_language(2, 5, words=WORDS), np.random.default_rng(4)
    names = [i.name for i in model.graph.input if i.name != "x"]
    inputs = [rng.integers(0, WORDS, (2, 5)) for _ in range(4)]
    run = lathe.compile(model, states={"hidden_*": "new_hidden_*", "cell_*": "new_cell_*"})
    state = run.make_state()
    for x, (y, states) in zip(inputs, passed_along(model, inputs, {name: f"new_{name}" for name in names})):
        assert_close(run(x, state=state), y)
        for name, array in state.arrays().items():
            assert_close(array, states[name])


@pytest.fixture(scope="module")
def decoder():
    return lathe.compile(gpt2(1, "length", past="past", **GPT2), dims=ANY_LENGTH[0], states=CACHE)


def test_states_of_one_model_are_apart(decoder):
    rng = np.random.default_rng(5)
    first, second = rng.integers(0, WORDS, (2, 1, 6))
    one, two = decoder.make_state(), decoder.make_state()
    alone = [decoder(x, state=decoder.make_state()) for x in (first, second)]
    mixed = [decoder(first[:, :3], state=one), decoder(second[:, :3], state=two)]
    rest = [decoder(first[:, 3:], state=one), decoder(second[:, 3:], state=two)]
    for before, behind, whole in zip(mixed, rest, alone):
        assert_close(np.concatenate([before, behind], axis=1), whole)


def test_copy_reset_and_update(decoder):
    rng = np.random.default_rng(6)
    prompt, x = rng.integers(0, WORDS, (1, 5)), rng.integers(0, WORDS, (1, 2))
    state = decoder.make_state()
    decoder(prompt, state=state)
    kept = state.arrays()
    other = state.copy()
    want = decoder(x, state=state)
    assert decoder(x, state=other).tobytes() == want.tobytes()
    state.update({name: np.asfortranarray(array) for name, array in kept.items()})
    assert decoder(x, state=state).tobytes() == want.tobytes()
    state.reset()
    assert state.arrays()["past_key_0"].shape == (1, 3, 0, 8)
    decoder(prompt, state=state)
    assert decoder(x, state=state).tobytes() == want.tobytes()


def test_a_prepared_call_goes_on_with_the_state(decoder):
    rng = np.random.default_rng(7)
    state, other = decoder.make_state(), decoder.make_state()
    x = rng.integers(0, WORDS, (1, 1))
    call = decoder.prepare(x, state=state)
    assert state.arrays()["past_key_0"].shape[2] == 0, "binding is no call"
    for _ in range(4):
        x[:] = rng.integers(0, WORDS, (1, 1))
        assert call().tobytes() == decoder(x, state=other).tobytes()


def test_a_call_that_fails_changes_nothing(decoder):
    rng = np.random.default_rng(8)
    state, other = decoder.make_state(), decoder.make_state()
    good, bad = rng.integers(0, WORDS, (1, 4)), np.full((1, 4), WORDS + 5)
    for each in (state, other):
        decoder(good, state=each)
    with pytest.raises(lathe.RunError):
        decoder(bad, state=state)
    with pytest.raises(lathe.RunError, match="'past' is|length"):
        decoder(rng.integers(0, WORDS, (1, 12)), state=state)
    with pytest.raises(lathe.RunError):
        decoder(good, state=state, limits=lathe.Limits(max_steps=20))
    assert decoder(good, state=state).tobytes() == decoder(good, state=other).tobytes()


def test_a_full_cache_says_so(decoder):
    state = decoder.make_state()
    x = np.zeros((1, 9), np.int64)
    for _ in range(3):
        decoder(x, state=state)
    with pytest.raises(lathe.RunError, match="'past' is 27; it must be from 0 to 24"):
        decoder(x[:, :1], state=state)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda a: a.pop("past_key_0"), "the state 'past_key_0' is missing"),
        (lambda a: a.update(more=np.zeros(1)), "no state 'more'"),
        (lambda a: a.update(past_key_0=np.zeros((1, 3, 5, 8))), "must be float32"),
        (lambda a: a.update(past_key_0=np.zeros((1, 3, 5), "float32")), "must have the shape"),
        (lambda a: a.update(past_key_0=np.zeros((1, 2, 5, 8), "float32")), "must have the shape"),
        (lambda a: a.update(past_key_0=np.zeros((1, 3, 4, 8), "float32")), "has size 5 for 'past'.* has 4"),
        (lambda a: a.update({n: np.zeros((1, 3, 99, 8), "float32") for n in a}), "room for 33 elements along axis 2"),
    ],
)
def test_states_that_do_not_fit_are_refused(decoder, change, words):
    state = decoder.make_state()
    decoder(np.zeros((1, 5), np.int64), state=state)
    kept = state.arrays()
    changed = dict(kept)
    change(changed)
    with pytest.raises(lathe.Error, match=words):
        state.update(changed)
    assert all(array.tobytes() == kept[name].tobytes() for name, array in state.arrays().items())


def test_calls_need_the_right_state(decoder):
    x = np.zeros((1, 1), np.int64)
    with pytest.raises(lathe.InputError, match="make_state"):
        decoder(x)
    with pytest.raises(lathe.InputError, match="none that make_state"):
        decoder(x, state={})
    other = lathe.compile(lstm_language(1, 1), states={"hidden_*": "new_hidden_*"})
    with pytest.raises(lathe.InputError, match="another model's"):
        decoder(x, state=other.make_state())
    with pytest.raises(lathe.InputError, match="keeps no states"):
        lathe.compile(lstm_language(1, 1)).make_state()


@pytest.mark.parametrize(
    "states, words",
    [
        ({"nothing": "y"}, "no input 'nothing'"),
        ({"past_*": "none_*"}, "no such output"),
        ({"past_*": "key_0"}, "one side alone"),
        ({"x": "y"}, "cannot become 'y'"),
        ({"past_key_0": "key_0", "past_key_*": "key_*"}, "the same state"),
        ({"past_key_0": "key_0", "past_key_1": "key_0"}, "the same state"),
    ],
)
def test_states_that_cannot_be_are_refused(states, words):
    with pytest.raises(lathe.Error, match=words):
        lathe.compile(gpt2(1, 1, past="past", **GPT2), states=states)


def test_a_fixed_size_cannot_become_another():
    words = "6 elements along axis 2 at every call, and cannot become 'key_0', which has 7"
    with pytest.raises(lathe.Error, match=words):
        lathe.compile(gpt2(1, 1, past=6, **GPT2), states=CACHE)


def test_the_interpreters_keep_none():
    with pytest.raises(lathe.Error, match="interpreters keep none"):
        lathe.compile(gpt2(1, 1, past="past", **GPT2), "interp", states=CACHE)


def test_a_session_has_a_state_of_its_own():
    model, rng = gpt2(1, "length", past="past", **GPT2), np.random.default_rng(9)
    inputs = [tokens(rng, model, length) for length in (4, 1, 2)]
    session = lathe.InferenceSession(model, dims=ANY_LENGTH[0], states=CACHE)
    for x, (y, _) in zip(inputs, passed_along(model, inputs, cache_pairs(model))):
        assert_close(session.run(["y"], {"x": x})[0], y)
    session.state.reset()
    assert session.state.arrays()["past_key_0"].shape[2] == 0


def test_an_artifact_keeps_states(tmp_path):
    model, rng = llama(1, "length", past="past", **LLAMA), np.random.default_rng(10)
    inputs = [tokens(rng, model, length) for length in (4, 1, 2)]
    path = tmp_path / "llama.so"
    lathe.compile(model, dims=ANY_LENGTH[0], states=CACHE).save(path)
    run = lathe.load(path)
    state = run.make_state()
    from lathe.runtime_ctypes import Artifact

    artifact = Artifact(path)
    assert [port.shape for port in artifact.states] == [(1, 2, "past", 4)] * 4
    for x, (y, states) in zip(inputs, passed_along(model, inputs, cache_pairs(model))):
        assert_close(run(x, state=state), y)
        assert_close(artifact.run({"x": x})[0], y)
        for name, array in artifact.get_states().items():
            assert_close(array, states[name])
    kept = artifact.get_states()
    last = artifact.run([inputs[1]])[0]
    artifact.set_states(kept)
    assert artifact.run([inputs[1]])[0].tobytes() == last.tobytes()
    artifact.reset_states()
    assert artifact.get_states()["past_key_1"].size == 0


SUM = """# lathe script 1
from lathe.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(total: R.Tensor(("n", 3), "float32"), x: R.Tensor(("n", 3), "float32")):
        R.func_attr({"output_names": ["mean", "next"]})
        with R.dataflow():
            next = R.add(total, x)
            mean = R.multiply(next, R.const(0.5, "float32"))
            R.output(next, mean)
        return mean, next
"""


def test_an_empty_state_has_the_sizes_of_the_call():
    run = lathe.compile(from_source(SUM), states={"total": "next"})
    state = run.make_state()
    x = np.arange(12, dtype="float32").reshape(4, 3)
    for step in (1, 2, 3):
        np.testing.assert_array_equal(run(x, state=state), step * x / 2)
    np.testing.assert_array_equal(state.arrays()["total"], 3 * x)
    with pytest.raises(lathe.InputError, match="has size 4 for 'n'.*'x' has 5|has size 5 for 'n'|'total' has size 4"):
        run(np.zeros((5, 3), "float32"), state=state)
