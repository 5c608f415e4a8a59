"""The subcommands of ./dev, one row each: name, function, options, one line of help."""

import argparse
import os
import shutil
import subprocess
import sys

from . import build, coverage, parts, runner, setup
from .checks.clang_format import CLANG_FORMAT, formatted_files
from .checks.tree import Tree
from .setup import ROOT


def run_setup(options):
    setup.ensure()
    print("setup: ready")


def run_build(options):
    build.build(options.preset, options.targets)


def run_test(options):
    if not options.filter:
        return runner.run_parts(parts.TEST_PARTS, resume=not options.fresh)
    parts.build_everything()
    binaries = subprocess.run(
        ["ctest", "--test-dir", build.folder("dev"), "-N", "-R", options.filter], capture_output=True, text=True
    ).stdout
    if "Test #" in binaries:
        parts.unit_tests(options.filter)
    else:
        parts.pytest("-k", options.filter)


def run_check(options):
    rows = parts.CHECK_PARTS if options.full else parts.TEST_PARTS
    chosen = [part for part in rows if not options.parts or part.name in options.parts]
    unknown = set(options.parts) - {part.name for part in chosen}
    if unknown:
        known = " ".join(part.name for part in rows)
        raise setup.SetupError(f"no part is named {' '.join(sorted(unknown))}; there are {known}")
    return runner.run_parts(chosen, resume=not options.fresh)


def run_format(options):
    files = [str(path) for path in formatted_files(Tree(ROOT))]
    subprocess.run([CLANG_FORMAT, "-i", *files], check=True)


def run_lint(options):
    parts.lint()


def run_coverage(options):
    return coverage.run(options.rooms)


def run_bench(options):
    """What ships is what is measured: the preset of the wheel. To be told what there is takes neither it nor peers."""
    only_tells = not {"-h", "--help", "--list"}.isdisjoint(options.arguments)
    preset = "dev" if only_tells else "release"
    build.build(preset, ["product"])
    extra = () if only_tells else ("requirements-check.txt", "requirements-bench.txt")
    interpreter = setup.ensure_environment(extra=extra)
    folder = build.folder(preset)
    variables = {"LATHE_BUILD_DIR": str(folder), "PYTHONPATH": f"{folder / 'python'}:{ROOT / 'python'}"}
    parts.call(interpreter, "-m", "bench", *options.arguments[1:], env=parts.environment(**variables))


def run_demo(options):
    build.build("dev", ["product"])
    parts.call(parts.python(), "examples/03-digits/demo.py", env=parts.environment(PYTHONPATH="python"))


def run_update_expected(options):
    build.configure("dev")
    chosen = [target for target in build.test_targets("dev") if options.filter and options.filter in target]
    build.build("dev", sorted(chosen))
    parts.ctest("dev", options.filter or "", LATHE_UPDATE_EXPECTED="1")
    if not options.filter:
        parts.call(parts.python(), "-m", "scripts.tour", env=parts.environment())
    print("update-expected: expectations are rewritten; review them with git diff")


def run_clean(options):
    for path in [*ROOT.glob("build*"), ROOT / ".venv"]:
        if path.exists() or path.is_symlink():
            print(f"clean: removing {path.name}")
            path.unlink() if path.is_symlink() else shutil.rmtree(path)


def no_options(parser):
    pass


def build_options(parser):
    parser.add_argument("targets", nargs="*", help="ninja targets, as tir_test; everything when none is named")
    parser.add_argument("--preset", default="dev", help="of CMakePresets.json (default: dev)")


def filter_options(parser):
    parser.add_argument("filter", nargs="?", help="run the test binaries that match, else the Python tests that do")


def test_options(parser):
    filter_options(parser)
    parser.add_argument("--fresh", action="store_true", help="run also what passed before on this same tree")


def check_options(parser):
    parser.add_argument("--full", action="store_true", help="everything; without it, the same as ./dev test")
    parser.add_argument("--fresh", action="store_true", help="run also what passed before on this same tree")
    listing = "; ".join(f"{part.name}: {part.says}" for part in parts.CHECK_PARTS)
    parser.add_argument("parts", nargs="*", help=f"run only these parts. With --full: {listing}")


def coverage_options(parser):
    parser.add_argument("rooms", nargs="*", help="folders under src/, as tir; all when none is named")


def bench_options(parser):
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="handed on to bench/")


COMMANDS = [
    ("demo", run_demo, no_options, "the main job on real input: digits compiled, run and compared"),
    ("test", run_test, test_options, "build, then run all checks and tests"),
    ("build", run_build, build_options, "build everything, or the targets named"),
    ("check", run_check, check_options, "with --full: all that can be checked, in parts, resumable"),
    ("format", run_format, no_options, "format the C and C++ files"),
    ("lint", run_lint, no_options, "run clang-tidy over all sources"),
    ("coverage", run_coverage, coverage_options, "lines of the C++ sources that the tests run, room by room"),
    ("bench", run_bench, bench_options, "measure Lathe beside its peers; --help for what, --quick for a look"),
    ("update-expected", run_update_expected, filter_options, "rewrite the expected outputs of text tests, for review"),
    ("setup", run_setup, no_options, "only install what is needed (every command does)"),
    ("clean", run_clean, no_options, "remove the build folders and the link to the Python environment"),
]


def parse(arguments):
    width = max(len(name) for name, *_ in COMMANDS)
    listing = "\n".join(f"  {name:<{width}}  {line}" for name, _, _, line in COMMANDS)
    parser = argparse.ArgumentParser(
        prog="./dev",
        usage="./dev SUBCOMMAND [--help]",
        description=f"Build, test and try Lathe. Each subcommand sets up what it needs.\n\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(prog="./dev", help=argparse.SUPPRESS, metavar="")
    for name, function, add_options, line in COMMANDS:
        command = commands.add_parser(name, description=line)
        add_options(command)
        command.set_defaults(function=function)
    if not arguments:
        print(parser.format_help().split("\npositional")[0].split("\noptions")[0].rstrip())
        return None
    if arguments[0] == "bench":  # else argparse keeps a first option for itself
        arguments = ["bench", "--", *arguments[1:]]
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    if options is None:
        return 0
    os.chdir(ROOT)
    try:
        setup.ensure()
        return 1 if options.function(options) is False else 0
    except setup.SetupError as error:
        print(f"./dev {arguments[0]}: {error}", file=sys.stderr)
    except subprocess.CalledProcessError as error:
        print(f"./dev {arguments[0]}: '{' '.join(map(str, error.cmd[:6]))} …' failed", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"./dev {arguments[0]}: interrupted", file=sys.stderr)
    return 1
