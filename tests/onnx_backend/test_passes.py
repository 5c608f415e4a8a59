"""Without each pass cases of the suite give what they give with it. All of them: python -m tests.onnx_backend.passes"""

from tests.onnx_backend.cases import all_cases
from tests.onnx_backend.passes import ALL, LOWERING, STATES, Without, faults, is_fault, run_passes, table

SHARE, FULL_SHARE = 60, 6  # one case of so many, without and with --full


def test_outputs_do_not_depend_on_a_pass(backend, request):
    assert backend == "lathe", "passes are switched off in Lathe alone"
    whole = request.config.getoption("--full")
    outcomes = run_passes(all_cases()[:: FULL_SHARE if whole else SHARE])
    print(table(outcomes))
    assert sum(bool(outcome.states) for outcome in outcomes) > 0.98 * len(outcomes)
    found = faults(outcomes)
    assert not found, f"{len(found)} faults\n" + "\n".join(found[:20])
    compared = {name for outcome in outcomes for name, state in outcome.states.items() if state == "same outputs"}
    assert {ALL, "fuse_ops", "schedule_functions"} <= compared


def test_what_is_a_fault():
    assert [is_fault("fuse_ops", state) for state in STATES] == [False, False, True, True]
    name = sorted(LOWERING)[0]
    assert [is_fault(name, state) for state in STATES] == [False, False, False, True]
    outcome = Without("case", {"fuse_ops": "differs"}, {"fuse_ops": "1 is not 2"})
    assert faults([outcome]) == ["case without fuse_ops [differs] 1 is not 2"]
