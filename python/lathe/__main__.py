"""python -m lathe: the `lathe` command."""

import sys

from ._lathe import run_command


def main():
    return run_command(["lathe", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
