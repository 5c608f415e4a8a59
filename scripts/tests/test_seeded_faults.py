"""The judge of seeded faults, against stand-ins for test binaries."""

from scripts.seeded_faults import judge, read_faults

FINDS = '[ -z "$LATHE_FAULT" ] || { echo "$LATHE_FAULT" >> "$LATHE_FAULT_LOG"; exit 1; }'
OVERLOOKS = '[ -z "$LATHE_FAULT" ] || echo "$LATHE_FAULT" >> "$LATHE_FAULT_LOG"'
NEVER_THERE = '[ -z "$LATHE_FAULT" ] || exit 1'


def binaries(folder, **scripts):
    for name, body in scripts.items():
        path = folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    return folder / "bin"


def test_a_fault_that_a_test_fails_on_is_found(tmp_path, capsys):
    folder = binaries(tmp_path, a_test=FINDS, b_test=OVERLOOKS)
    assert judge([("wrong_bound", ["b_test", "a_test"], "a bound")], folder) == 0
    assert "found" in capsys.readouterr().out


def test_a_fault_that_tests_pass_with_is_missed(tmp_path, capsys):
    assert judge([("wrong_bound", ["a_test"], "a bound")], binaries(tmp_path, a_test=OVERLOOKS)) == 1
    assert "its tests pass with it" in capsys.readouterr().out


def test_a_fault_that_is_never_executed_is_missed_whatever_fails(tmp_path, capsys):
    assert judge([("wrong_bound", ["a_test"], "a bound")], binaries(tmp_path, a_test=NEVER_THERE)) == 1
    assert "no test executes it" in capsys.readouterr().out


def test_tests_that_fail_with_no_fault_prove_nothing(tmp_path):
    assert judge([("wrong_bound", ["a_test"], "a bound")], binaries(tmp_path, a_test=FINDS + "; exit 1")) == 1


def test_a_test_binary_that_does_not_exist_misses_the_fault(tmp_path, capsys):
    assert judge([("wrong_bound", ["a_test", "b_test"], "a bound")], binaries(tmp_path, a_test=FINDS)) == 1
    assert "there is no b_test" in capsys.readouterr().out


def test_faults_are_read_from_the_sources():
    text = '//   LATHE_FAULT(name, "a_test", "in a comment");\nLATHE_FAULT(swaps, "a_test b_test", "x - y");\n'
    text += 'LATHE_FAULT(x, "c_test",\n            "two "\n            "parts");\n'
    assert read_faults(text) == [("swaps", ["a_test", "b_test"], "x - y"), ("x", ["c_test"], "two parts")]
