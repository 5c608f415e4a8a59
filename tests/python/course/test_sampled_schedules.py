"""Schedules with decisions left open: sampled, traced, replayed, searched."""

import numpy as np
import pytest

import lathe as tvm
from lathe.script import tir as T

N = 64


@T.prim_func
def main(A: T.Buffer((N, N), "float32"), B: T.Buffer((N, N), "float32"), C: T.Buffer((N, N), "float32")):
    for i, j, k in T.grid(N, N, N):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def fixed(sch, jfactor=4):
    """The schedule with a factor of the writer's choice."""
    block_C = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block_C)
    j_0, j_1 = sch.split(loop=j, factors=[None, jfactor])
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block_C, k)
    return sch


def stochastic(sch):
    """The same with the factors drawn."""
    block_C = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block_C)
    j_factors = sch.sample_perfect_tile(loop=j, n=2)
    j_0, j_1 = sch.split(loop=j, factors=j_factors)
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block_C, k)
    return sch, j_factors


def product(module):
    """The module's function with random arrays, and what it should give."""
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((N, N)).astype("float32") for _ in range(2))
    c = np.empty((N, N), "float32")
    built = tvm.build(module)
    built["main"](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
    return built.time_evaluator("main", tvm.cpu(), number=2)(a, b, c).mean


def test_a_sampled_factor_is_a_number_of_the_schedule():
    sch, factors = stochastic(tvm.tir.Schedule(main, seed=1))
    sizes = [int(sch.get(factor)) for factor in factors]
    assert sizes[0] * sizes[1] == N and sizes[1] <= 16
    extents = [int(sch.get(loop).extent) for loop in sch.get_loops("C_update")]
    assert extents == [N, sizes[0], N, sizes[1]]
    product(sch.mod)


def test_the_trace_has_the_decision_and_replays_it():
    sch, factors = stochastic(tvm.tir.Schedule(main, seed=1))
    (decision,) = sch.trace.decisions.values()
    assert decision == [int(sch.get(factor)) for factor in factors]
    assert any("sample_perfect_tile" in line and f"decision={decision}" in line for line in sch.trace.as_python())
    again = tvm.tir.Schedule(main)
    sch.trace.apply_to_schedule(again)
    tvm.ir.assert_structural_equal(again.mod, sch.mod)


def test_a_fixed_factor_is_one_of_those_that_may_be_drawn():
    drawn = {tvm.ir.structural_hash(stochastic(tvm.tir.Schedule(main, seed=seed))[0].mod) for seed in range(40)}
    assert len(drawn) == 5  # 1, 2, 4, 8, 16
    assert tvm.ir.structural_hash(fixed(tvm.tir.Schedule(main), 8).mod) in drawn


def test_a_seed_decides_what_is_drawn():
    def sizes(seed):
        sch, factors = stochastic(tvm.tir.Schedule(main, seed=seed))
        return [int(sch.get(factor)) for factor in factors]

    assert [sizes(seed) for seed in range(8)] == [sizes(seed) for seed in range(8)]
    assert len({tuple(sizes(seed)) for seed in range(8)}) > 1


def random_search(module, trials):
    """The fastest of some draws, and its time."""
    best, best_time = None, np.inf
    for trial in range(trials):
        sch, _ = stochastic(tvm.tir.Schedule(module, seed=trial))
        time = product(sch.mod)
        if time < best_time:
            best, best_time = sch, time
    return best, best_time


def test_a_search_over_draws_finds_a_program():
    best, time = random_search(main, 5)
    assert time > 0
    assert best.trace.decisions
    again = tvm.tir.Schedule(main)
    best.trace.apply_to_schedule(again)
    product(again.mod)


@pytest.mark.parametrize("candidates, probs", [([1, 2, 4], [0.0, 1.0, 0.0]), ([8], [1.0])])
def test_a_choice_follows_its_probabilities(candidates, probs):
    sch = tvm.tir.Schedule(main, seed=3)
    choice = sch.sample_categorical(candidates=candidates, probs=probs)
    assert int(sch.get(choice)) == candidates[int(np.argmax(probs))]
    i, j, k = sch.get_loops("C")
    sch.split(j, factors=[None, choice])
    product(sch.mod)
