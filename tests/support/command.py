"""Runs the `lathe` command under limits of time and memory, and says what came of it."""

import resource
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support import paths


@dataclass
class Outcome:
    command: list
    code: int  # negative: ended by that signal
    out: str
    err: str
    seconds: float
    timed_out: bool

    def __str__(self):
        how = "timed out" if self.timed_out else f"exit code {self.code}"
        if self.code < 0 and not self.timed_out:
            how = f"ended by {signal.Signals(-self.code).name}"
        said = self.out[-2000:] + self.err[-4000:]
        return f"{' '.join(map(str, self.command))}: {how} after {self.seconds:.1f} s\n{said}"


def limit_memory(limit):
    """For a child process: bounds its address space (bytes) and leaves no core file."""

    def apply():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if limit and not paths.SANITIZED:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    return apply


def run_command(command, *, cwd=None, timeout=120.0, memory=None, env=None, stdin=None):
    started = time.monotonic()
    timeout *= 10 if paths.SANITIZED else 1
    child = subprocess.Popen(
        [str(part) for part in command], cwd=cwd, env=env or paths.environment(), preexec_fn=limit_memory(memory),
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
    )  # fmt: skip
    timed_out = False
    try:
        out, err = child.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        child.kill()
        out, err = child.communicate()
    return Outcome(list(command), child.returncode, out, err, time.monotonic() - started, timed_out)


class Lathe:
    """The `lathe` command: `lathe("compile", model, "-o", artifact)` runs it and wants success."""

    def __init__(self, binary: Path = paths.LATHE):
        self.binary = binary

    def run(self, *arguments, **options):
        return run_command([self.binary, *arguments], **options)

    def __call__(self, *arguments, **options):
        outcome = self.run(*arguments, **options)
        assert outcome.code == 0, str(outcome)
        return outcome

    def fails(self, *arguments, **options):
        """Runs it, wants exit code 1 and one clear sentence on standard error, and returns the outcome."""
        outcome = self.run(*arguments, **options)
        assert_clear_failure(outcome)
        return outcome


# Words by which an internal failure, rather than a sentence to the user, shows.
INTERNAL_WORDS = (
    "internal error", "Assertion", "terminate called", "Traceback", "Segmentation", "std::", "core dumped",
    "AddressSanitizer", "runtime error:", "0x7f", "bad_alloc", "LLVM ERROR", "stack dump", "PLEASE submit a bug",
)  # fmt: skip


def message_lines(text):
    """Lines of standard error that state an error: notes, help, excerpts and carets belong to the sentence before."""
    result = []
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or line[0].isspace() or stripped.startswith(("note:", "help:", "^", "|")):
            continue
        result.append(stripped)
    return result


def assert_clear_failure(outcome, sentences=1):
    assert not outcome.timed_out, str(outcome)
    assert outcome.code == 1, str(outcome)
    for word in INTERNAL_WORDS:
        assert word not in outcome.err, f"{word!r} in the message\n{outcome}"
    lines = message_lines(outcome.err)
    assert 1 <= len(lines) <= sentences, f"{len(lines)} messages, wanted 1 to {sentences}\n{outcome}"
    for line in lines:
        assert len(line) <= 600, f"a message of {len(line)} characters\n{outcome}"
        assert len(line.split()) >= 3, f"not a sentence: {line!r}\n{outcome}"
        assert line.isprintable(), f"unprintable characters: {line!r}\n{outcome}"
