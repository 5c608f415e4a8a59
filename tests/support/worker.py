"""A child process that answers requests one after another, so that a crash or a hang costs one request and no more.

Requests and answers are pickles over pipes. A worker module calls `serve(handle)`; the parent holds a `Worker`.

A limit is one of processor time: a loaded machine, or one that stops the lot for a while, makes nothing fail. A child
that uses none is given up as well, after as many seconds in which this process watched it sleep.
"""

import os
import pickle
import select
import signal
import struct
import subprocess
import sys
from pathlib import Path

from tests.support import paths
from tests.support.command import limit_memory


class WorkerFailed(Exception):
    """The worker died or overran its time; the text says which."""


class _Watch:
    """What a child has used since its request: processor time, and seconds asleep."""

    def __init__(self, pid, limit):
        self.pid, self.limit = pid, limit
        self.step = min(0.25, limit / 4)
        _, self.start = self._state_and_used()
        self.last = self.start
        self.asleep = 0.0
        self.spent_how = "of processor time"

    def _state_and_used(self):
        """The first thread's state, a letter, and seconds of all threads, as proc(5) tells them."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def look(self):
        """Called once a step in which no answer came; raises TimeoutError when the limit is spent."""
        state, used = self._state_and_used()
        if used != self.last:
            self.asleep = 0.0
        elif state in "SD":  # neither waiting for a processor nor stopped
            self.asleep += self.step  # steps are counted, not a clock: while this process is stopped, so is the child
        self.last = used
        if used - self.start > self.limit:
            raise TimeoutError
        if self.asleep > self.limit:
            self.spent_how = "asleep"
            raise TimeoutError


class Worker:
    def __init__(self, module, *arguments, env=None, memory=None, recycle_after=300, interpreter=sys.executable):
        self.command = [str(interpreter), "-W", "ignore", "-m", module, *map(str, arguments)]
        self.env = env or paths.environment()
        self.memory = memory
        self.recycle_after = recycle_after
        self.child = None
        self.served = 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop()

    def start(self):
        read_end, write_end = os.pipe()  # answers come by a pipe of their own: libraries may print
        self.child = subprocess.Popen(
            [*self.command, str(write_end)], pass_fds=[write_end], env=self.env, cwd=paths.ROOT,
            preexec_fn=limit_memory(self.memory), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(write_end)
        self.answers = read_end
        self.served = 0

    def stop(self):
        if self.child is None:
            return
        self.child.kill()
        self.child.wait()
        self.child.stdin.close()
        os.close(self.answers)
        self.child = None

    def ask(self, request, timeout):
        """Sends a request and returns ("ok", what the handler returned) or ("error", what it raised)."""
        if self.child is not None and self.served >= self.recycle_after:
            self.stop()
        if self.child is None:
            self.start()
        payload = pickle.dumps(request, protocol=5)
        watch = _Watch(self.child.pid, timeout)
        try:
            self.child.stdin.write(struct.pack("<Q", len(payload)) + payload)
            self.child.stdin.flush()
            (size,) = struct.unpack("<Q", self._read(8, watch))
            answer = pickle.loads(self._read(size, watch))
        except (BrokenPipeError, EOFError):
            code = self.child.wait()
            self.stop()
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise WorkerFailed(f"the process crashed ({how})") from None
        except TimeoutError:
            self.stop()
            raise WorkerFailed(f"no answer within {timeout:g} s {watch.spent_how}") from None
        self.served += 1
        return answer

    def _read(self, size, watch):
        parts = []
        while size:
            ready, _, _ = select.select([self.answers], [], [], watch.step)
            if not ready:
                watch.look()
                continue
            part = os.read(self.answers, min(size, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def serve(handle):
    """The worker's side. `handle(request)` returns the answer; ("error", text) is sent when it raises."""
    answers = os.fdopen(int(sys.argv[-1]), "wb")
    source = sys.stdin.buffer
    while header := source.read(8):
        request = pickle.loads(source.read(struct.unpack("<Q", header)[0]))
        try:
            answer = ("ok", handle(request))
        except Exception as error:  # noqa: BLE001 (whatever the library raises is the answer)
            answer = ("error", f"{type(error).__name__}: {error}")
        payload = pickle.dumps(answer, protocol=5)
        answers.write(struct.pack("<Q", len(payload)) + payload)
        answers.flush()
