"""The subcommands of ./dev take the arguments that their help promises."""

import pytest

from scripts import cli


@pytest.mark.parametrize("arguments", [["--list"], ["--quick", "--threads", "1"], ["resnet50-b1", "--quick"], []])
def test_bench_hands_everything_on(arguments, monkeypatch):
    called = []
    monkeypatch.setattr(cli.build, "build", lambda *_: None)
    monkeypatch.setattr(cli.setup, "ensure_environment", lambda extra: "python")
    monkeypatch.setattr(cli.parts, "call", lambda *words, **_: called.append(words))
    options = cli.parse(["bench", *arguments])
    options.function(options)
    assert called == [("python", "-m", "bench", *arguments)]


def test_wrong_use_is_refused():
    for arguments in (["frobnicate"], ["build", "--colour"]):
        with pytest.raises(SystemExit) as left:
            cli.parse(arguments)
        assert left.value.code == 2
