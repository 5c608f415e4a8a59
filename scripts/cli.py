"""The subcommands of ./dev, one row each: name, function, one line of help."""

import argparse
import os
import shutil
import subprocess
import sys

from . import build, setup
from .setup import ROOT


def run_setup(options):
    setup.ensure()
    print("setup: ready")


def run_build(options):
    build.build(options.preset, options.targets)


def run_test(options):
    build.build("dev", [], unity=build.is_empty("dev"))
    subprocess.run(["ctest", "--test-dir", build.folder("dev"), "--output-on-failure"], check=True)


def run_clean(options):
    for path in [*ROOT.glob("build*"), ROOT / ".venv"]:
        print(f"clean: removing {path.name}")
        path.unlink() if path.is_symlink() else shutil.rmtree(path)


def build_options(parser):
    parser.add_argument("targets", nargs="*", help="ninja targets, as tir_test; all when none is named")
    parser.add_argument("--preset", default="dev", help="one of CMakePresets.json (default: dev)")


def no_options(parser):
    pass


COMMANDS = [
    ("setup", run_setup, no_options, "install Debian packages and the Python environment (every command does)"),
    ("build", run_build, build_options, "build everything, or the targets named"),
    ("test", run_test, no_options, "build, then run all checks and tests"),
    ("clean", run_clean, no_options, "remove build folders and the link to the Python environment"),
]


def main(arguments):
    parser = argparse.ArgumentParser(prog="./dev", description="Build, test and try Lathe.")
    commands = parser.add_subparsers(title="subcommands", metavar="")
    for name, function, add_options, help_line in COMMANDS:
        command = commands.add_parser(name, help=help_line, description=help_line)
        add_options(command)
        command.set_defaults(function=function)
    if not arguments:
        parser.print_help()
        return 0
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    try:
        options.function(options)
    except setup.SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"./dev {arguments[0]}: '{' '.join(map(str, error.cmd[:4]))} …' failed", file=sys.stderr)
        return 1
    return 0
