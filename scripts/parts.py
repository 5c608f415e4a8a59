"""The parts of `./dev test` and `./dev check --full`, as rows: what each runs, in order."""

import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from . import build, setup
from .runner import state_key
from .setup import ROOT

# Rooms that read what others wrote, and the IR: their tests run under the sanitizers in ./dev test.
SANITIZED_ROOMS = ["support", "ir", "script", "interchange", "abi", "runtime"]
SANITIZER_OPTIONS = {
    # gtest and protobuf come from Debian, not built with the sanitizer: containers that cross over look overflown.
    "ASAN_OPTIONS": "detect_container_overflow=0:detect_leaks=1:abort_on_error=0:allocator_may_return_null=1:"
    "malloc_context_size=8",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1",
}
# Python tests that do not run under the sanitizers, and why.
NOT_SANITIZED = {
    "tests/cli/test_archive.py": "plain C programs, which the runtime's archive would need the sanitizer for",
    "bench/tests/test_calls.py::test_rows": "the same",
    "tests/cli/test_run.py::test_verify": "the interpreters take minutes there; the C++ tests run them sanitized",
    "tests/cli/test_codes.py::test_verify_without": "the same",
    "tests/determinism/test_determinism.py::test_same_bytes_from_two": "compiles again what others have compiled",
    "tests/support": "the workers of the tests, made to crash and to run out of memory; nothing of Lathe",
    "tests/hostile/test_corpus.py::test_the_measure": "measures memory, which the sanitizer takes, too",
}
FUZZ_SECONDS_IN_TEST = 5
FUZZ_SECONDS_IN_CHECK = 120
RANDOM_GRAPHS = 5000


@dataclass
class Part:
    name: str
    run: Callable[[], None]
    says: str
    always: bool = False  # also when it passed before: quick, and others rely on what it leaves


def call(*command, **options):
    subprocess.run([str(word) for word in command], check=True, cwd=options.pop("cwd", ROOT), **options)


def environment(**changes):
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **changes}


def python():
    return ROOT / ".venv" / "bin" / "python"


def checks():
    call(python(), "-m", "scripts.checks", env=environment())


def build_everything():
    build.build("dev", [])


def share_proofs(preset):
    """What is proved of the simplifier's rules holds under every preset: the part `proofs` proves anew."""
    proved = build.folder("dev") / "arith-proofs"
    if preset != "dev" and proved.is_dir():
        shutil.copytree(proved, build.folder(preset) / "arith-proofs", dirs_exist_ok=True)


def ctest(preset, pattern="", **variables):
    share_proofs(preset)
    command = ["ctest", "--test-dir", build.folder(preset), "--output-on-failure", "--no-tests=error", f"-j{jobs()}"]
    call(*command, *(["-R", pattern] if pattern else []), env=environment(**variables))


def jobs():
    return len(os.sched_getaffinity(0))


def unit_tests(pattern=""):
    ctest("dev", pattern)


def test_binaries(preset, rooms):
    """The test binaries that belong to `rooms` or to rooms inside them."""
    build.configure(preset)
    names = build.test_targets(preset)
    return sorted(n for n in names if any(n == f"{room}_test" or n.startswith(f"{room}_") for room in rooms))


def sanitized_readers():
    """Of the objects that the fuzz targets are made of, so that `./dev test` builds them once."""
    binaries = test_binaries("fuzz", SANITIZED_ROOMS)
    build.build("fuzz", binaries)
    ctest("fuzz", "^(" + "|".join(binaries) + ")$", **SANITIZER_OPTIONS)


def sanitized_everything():
    """The runtime is a library, since Python loads it before all others; loaders do not look for it where it lies."""
    build.build("asan", [])
    ctest("asan", LD_LIBRARY_PATH=str(sanitizer_runtime().parent), **SANITIZER_OPTIONS)


def thread_sanitized():
    build.configure("tsan")
    build.build("tsan", [*sorted(build.test_targets("tsan")), "lathe"])
    ctest("tsan", **SANITIZER_OPTIONS)
    # Without what takes Python's own process, or minutes in the interpreters.
    chosen = ["tests/cli/test_run.py", "-k", "not demo and not verify"]
    pytest("-q", *chosen, LATHE_BUILD_DIR=str(build.folder("tsan")), **SANITIZER_OPTIONS)


def pytest(*arguments, interpreter=None, **variables):
    call(interpreter or python(), "-m", "pytest", *arguments, env=environment(**variables))


def pytest_everywhere(*arguments, **options):
    """Each core takes the next test when it is free; those of one xdist_group stay together."""
    pytest("-q", "-n", jobs(), "--dist", "loadgroup", "--durations=10", *arguments, **options)


def python_tests():
    pytest_everywhere()


def full_python_tests():
    interpreter = setup.ensure_environment(extra=("requirements-check.txt",))
    pytest_everywhere("--full", interpreter=interpreter)


def sanitizer_runtime():
    """The address sanitizer as a library that Python loads before all others."""
    asked = ["clang++-19", "-print-file-name=libclang_rt.asan-x86_64.so"]
    return Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())


def sanitized_python():
    """What the sanitizers find goes to files beside each other: pytest would swallow it, and so would a test that
    expects its command to fail."""
    build.build("asan", ["product"])
    folder = build.folder("asan")
    with tempfile.TemporaryDirectory() as reports:
        log = f":log_path={reports}/found"
        variables = {
            # Python itself leaves memory behind. What is left of a stack after its function the C++ tests watch:
            # it takes time for each call.
            "ASAN_OPTIONS": SANITIZER_OPTIONS["ASAN_OPTIONS"].replace("detect_leaks=1", "detect_leaks=0")
            + ":detect_stack_use_after_return=0"
            + log,
            "UBSAN_OPTIONS": SANITIZER_OPTIONS["UBSAN_OPTIONS"] + log,
            "LD_PRELOAD": str(sanitizer_runtime()),
            "LATHE_BUILD_DIR": str(folder),
            "PYTHONMALLOC": "malloc",
        }
        left_out = [f"--deselect={test}" for test in NOT_SANITIZED] + ["--count", "2"]  # two samples of each operator
        try:
            pytest_everywhere(*left_out, **variables)
        finally:
            found = sorted(Path(reports).iterdir())
            for report in found:
                print(report.read_text(errors="replace"), flush=True)
        if found:
            raise subprocess.CalledProcessError(1, ["sanitized-python", f"{len(found)} reports"])


def fuzz_one(source, seconds, seed):
    """Runs a target: its exit status, and what it said. With seed 0 libFuzzer draws one."""
    target = build.folder("fuzz") / "bin" / source.stem
    seeds, words = source.with_name(f"{source.stem}_seeds"), source.with_suffix(".dict")
    with tempfile.TemporaryDirectory() as corpus:
        limits = [f"-seed={seed}", f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-verbosity=0"]
        limits += ["-print_final_stats=1", f"-artifact_prefix={build.folder('fuzz')}/{source.stem}-"]
        limits += [f"-dict={words}"] if words.exists() else []
        folders = [corpus] + ([str(seeds)] if seeds.exists() else [])
        ran = subprocess.run(
            [str(target), *limits, *folders], cwd=ROOT, env=environment(**SANITIZER_OPTIONS),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
    runs = re.search(r"number_of_executed_units: *([0-9]+)", ran.stdout)
    print(f"fuzz: {source.stem}, {seconds} s, {runs[1] if runs else 'unknown'} inputs", flush=True)
    return ran


def fuzz(seconds, seed=0):
    """Every target, as many at once as there are cores; what those that found something said comes last."""
    sources = sorted([*ROOT.glob("src/**/*_fuzz.cpp"), *ROOT.glob("tools/**/*_fuzz.cpp")])
    build.build("fuzz", ["fuzzers"])
    with concurrent.futures.ThreadPoolExecutor(jobs()) as pool:
        runs = list(pool.map(lambda source: fuzz_one(source, seconds, seed), sources))
    failed = {source.stem: ran for source, ran in zip(sources, runs, strict=True) if ran.returncode}
    for name, ran in failed.items():
        said = [line for line in ran.stdout.splitlines() if not line.startswith(("\tNEW_FUNC", "INFO:"))]
        print(f"fuzz: {name} ended with {ran.returncode}", *said, sep="\n", flush=True)
    if failed:
        raise subprocess.CalledProcessError(1, ["fuzz:", *failed])


def fuzz_briefly():
    """With a seed of its own, so that a change is held against the inputs that the last one saw."""
    fuzz(FUZZ_SECONDS_IN_TEST, seed=1)


def fuzz_fully():
    fuzz(FUZZ_SECONDS_IN_CHECK)


def proofs():
    """Every simplifier rule proved anew: the kept proofs are set aside."""
    build.build("dev", ["arith_test"])
    test = build.folder("dev") / "bin" / "arith_test"
    call(test, "--gtest_brief=1", cwd=build.folder("dev"), env=dict(os.environ, LATHE_PROVE_ALL="1"))


def walks():
    """Ten thousand accepted steps of random walks over the schedule primitives; refusals are held against the truth."""
    build.build("dev", ["schedule_test"])
    test = build.folder("dev") / "bin" / "schedule_test"
    call(test, "--gtest_filter=primitives.*", cwd=build.folder("dev"), env=dict(os.environ, LATHE_LONG_WALKS="0"))


def all_floats():
    """The functions of one argument over all 2^32 values of float32: half a minute to minutes each, and what was found
    for a function's very code is kept."""
    build.build("dev", ["codegen_llvm_test"])
    test = build.folder("dev") / "bin" / "codegen_llvm_test"
    kept = build.folder("dev") / "all-floats"
    kept.mkdir(exist_ok=True)
    call(test, "--gtest_filter=math/EveryFloat.*", cwd=build.folder("dev"),
         env=dict(os.environ, LATHE_ALL_FLOATS=str(kept)))  # fmt: skip


def random_graphs():
    """Graphs that were compared in this very state of the tree are not compared again."""
    build.build("dev", ["product"])
    kept = build.folder("dev") / "random-graphs" / f"{hashlib.sha256(state_key().encode()).hexdigest()[:16]}.jsonl"
    kept.parent.mkdir(exist_ok=True)
    call(
        python(), "-W", "ignore", "-m", "tests.random_graphs", "--count", RANDOM_GRAPHS, "--kept", kept,
        env=environment(PYTHONPATH="python"),
    )  # fmt: skip


def seeded_faults():
    call(python(), "-m", "scripts.seeded_faults", env=environment())


def lint():
    """clang-tidy over every source of ours, by the units that the build folder compiles; those that were clean, and in
    which nothing has changed since, are not asked again."""
    build.build("dev", [])
    folder = build.folder("dev")
    units = json.loads((folder / "compile_commands.json").read_text())
    ours = [str(ROOT / name) for name in ("src", "tools", "python")] + [str(folder / "unity")]
    digests = unit_digests(folder, [unit for unit in units if unit["file"].startswith(tuple(ours))])
    kept = folder / "clang-tidy-clean.json"
    clean = json.loads(kept.read_text()) if kept.exists() else {}
    asked = sorted(file for file, digest in digests.items() if clean.get(file) != digest)
    print(f"{len(asked)} of {len(digests)} units to look at", flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs()) as pool:
        for file, found in zip(asked, pool.map(lambda file: tidy(folder, file), asked), strict=True):
            if found:
                print(found, flush=True)
            else:
                clean[file] = digests[file]
                kept.write_text(json.dumps(clean))
    if failed := [file for file in asked if clean.get(file) != digests[file]]:
        raise subprocess.CalledProcessError(1, "clang-tidy: " + ", ".join(failed))


def tidy(folder, file):
    """What clang-tidy finds in one unit; nothing where it is clean."""
    ran = subprocess.run(
        ["clang-tidy-19", "--quiet", "-p", str(folder), file],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    return ran.stdout if ran.returncode or "warning:" in ran.stdout else ""


def unit_digests(folder, units):
    """By file, what its diagnostics depend on: its command, our settings, and all files of ours that it reads."""
    listing = subprocess.run(
        ["ninja", "-C", str(folder), "-t", "deps"], env=build.environment(), capture_output=True, text=True, check=True
    ).stdout
    read = {}
    for block in listing.split("\n\n"):
        head, *files = block.strip().split("\n")
        read[head.partition(":")[0]] = [(folder / file.strip()).resolve() for file in files]
    contents = {}

    def content(path):
        if path not in contents:
            contents[path] = hashlib.sha256(path.read_bytes()).digest() if path.is_relative_to(ROOT) else b""
        return contents[path]

    settings = (ROOT / ".clang-tidy").read_bytes()
    digests = {}
    for unit in units:
        digest = hashlib.sha256(settings + unit["command"].encode())
        for path in sorted({Path(unit["file"]).resolve(), *read[os.path.relpath(unit["output"], folder)]}):
            digest.update(str(path).encode() + content(path))
        digests[unit["file"]] = digest.hexdigest()
    return digests


def types():
    """The package as type checkers see it, and the examples, which are what its users write."""
    interpreter = setup.ensure_environment(extra=("requirements-check.txt",))
    for what in (["-p", "lathe"], *([str(path)] for path in sorted(ROOT.glob("examples/*/*.py")))):
        call(interpreter, "-m", "mypy", "--ignore-missing-imports", *what, env=environment(MYPYPATH="python"))


def wheel():
    """`pip install .` into an environment of its own, and the package and command it gives."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "venv"
        call(sys.executable, "-m", "venv", fresh)
        call(fresh / "bin" / "pip", "install", "-q", "--disable-pip-version-check", ROOT)
        call(fresh / "bin" / "python", "-c", "import lathe; print(lathe.__file__)", cwd=folder)
        call(fresh / "bin" / "lathe", "--help", cwd=folder, stdout=subprocess.DEVNULL)


TEST_PARTS = [
    Part("build", build_everything, "everything", always=True),
    Part("checks", checks, "format, layers, sizes, passes' tests, heavy headers, codes without a test", always=True),
    Part("unit", unit_tests, "every C++ test binary, through ctest"),
    Part("python", python_tests, "the Python and whole-system tests, through pytest"),
    Part("sanitized", sanitized_readers, "C++ tests of the readers and the IR, address and undefined behaviour"),
    Part("fuzz", fuzz_briefly, f"each fuzz target for {FUZZ_SECONDS_IN_TEST} seconds"),
]

# Those of ./dev test, but for the ones that a longer part here includes.
CHECK_PARTS = [
    *[part for part in TEST_PARTS if part.name not in ("python", "sanitized", "fuzz")],
    Part("python-full", full_python_tests, "all Python tests, PyTorch as the reference at full size"),
    Part(
        "random-graphs", random_graphs, f"{RANDOM_GRAPHS} random graphs, compiled, interpreted and by two other engines"
    ),
    Part("proofs", proofs, "every simplifier rule proved anew"),
    Part("walks", walks, "ten thousand steps of random schedules, by the interpreter"),
    Part("all-floats", all_floats, "vector math over all values of float32, within two units in the last place"),
    Part("sanitized-all", sanitized_everything, "all C++ tests, address and undefined behaviour"),
    Part("sanitized-python", sanitized_python, "the Python tests, compiler and artifacts under the same sanitizers"),
    Part("tsan", thread_sanitized, "all C++ tests and the command that runs artifacts, under the thread sanitizer"),
    Part("fuzz-full", fuzz_fully, f"each fuzz target for {FUZZ_SECONDS_IN_CHECK} seconds"),
    Part("seeded-faults", seeded_faults, "each seeded miscompilation is found by its tests"),
    Part("lint", lint, "clang-tidy over all sources"),
    Part("types", types, "mypy over the Python package"),
    Part("wheel", wheel, "pip install . into a fresh environment"),
]
