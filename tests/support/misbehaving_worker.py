"""A worker that dies or hangs on request: what the tests of `Worker` run."""

import os
import signal
import time

from tests.support.worker import serve


def handle(request):
    match request:
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "exit":
            os._exit(3)
        case "hang":
            time.sleep(60)
        case "spin":
            while True:
                pass
        case "raise":
            raise ValueError("no such operator")
        case "print":
            print("noise on standard output", flush=True)
        case "memory":
            return len(bytearray(8 << 30))
    return (os.getpid(), request)


if __name__ == "__main__":
    serve(handle)
