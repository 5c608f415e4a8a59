"""Help, examples, exit codes of wrong use."""

import re

import pytest

SUBCOMMANDS = ("compile", "run", "bench", "verify", "reduce", "opt", "doctor")


def test_help_lists_the_subcommands(lathe_cli):
    out = lathe_cli("--help").out
    for name in SUBCOMMANDS:
        assert re.search(rf"^\s+{name}\b", out, re.MULTILINE), out


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_each_subcommand_shows_an_example(lathe_cli, name):
    out = lathe_cli(name, "--help").out
    examples = re.findall(rf"^.*\blathe {name}\b.*$", out, re.MULTILINE)
    assert any("example" in out.lower() and "[OPTIONS]" not in e for e in examples), out


def test_version(lathe_cli):
    assert re.search(r"\d+\.\d+", lathe_cli("--version").out)


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("compile",),
        ("compile", "a.onnx", "--colour", "red"),
        ("run",),
        ("opt",),
        ("compile", "--target"),
    ],
)
def test_wrong_use_fails_with_a_message(lathe_cli, arguments):
    outcome = lathe_cli.run(*arguments)
    assert outcome.code not in (0,) and outcome.code > 0, str(outcome)
    assert outcome.err.strip() and "terminate" not in outcome.err


def test_doctor_says_what_is_there(lathe_cli):
    out = lathe_cli("doctor").out
    for word in ("LLVM", "native", "thread"):
        assert word.lower() in out.lower(), out
