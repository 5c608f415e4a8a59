"""lathe compile --debug-info: lines of the printed kernels in gdb and perf, the same code, kernels by name."""

import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.support import paths
from tests.support.command import run_command
from tests.support.elf import functions, section

SYMBOLIZER = shutil.which("llvm-symbolizer-19") or shutil.which("llvm-symbolizer")
GDB = shutil.which("gdb")

SUMS = """# lathe script 1
from lathe.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def row_sums(A: T.Buffer((7, 33), "float32"), B: T.Buffer((7,), "float32")):
        for i in range(7):
            B[i] = T.float32(0)
            for j in range(33):
                B[i] = B[i] + A[i, j]
"""


def compiled(source, output, *options):
    outcome = run_command([paths.LATHE, "compile", source, "-o", output, *options])
    assert outcome.code == 0, str(outcome)
    return output


@pytest.mark.parametrize("dims", ["batch=3", "batch=1..9"])
def test_the_code_of_a_model_is_the_same(lathe_cli, tmp_path, dims):
    plain = compiled(paths.DIGITS_MODEL, tmp_path / "plain.so", "--dim", dims)
    lined = compiled(paths.DIGITS_MODEL, tmp_path / "lined.so", "--dim", dims, "--debug-info")
    assert section(plain, ".text") == section(lined, ".text") != b""
    assert section(plain, ".debug_line") is None and section(lined, ".debug_line")
    assert [row[:2] for row in functions(plain)] == [row[:2] for row in functions(lined)]
    assert lined.stat().st_size < 1.1 * plain.stat().st_size


def test_kernels_of_an_artifact_have_their_names(lathe_cli, tmp_path):
    library = compiled(paths.DIGITS_MODEL, tmp_path / "model.so", "--dim", "batch=3")
    names = {name for name, _, _ in functions(library)}
    assert {"lathe::max_pool", "lathe::fused_matmul_add", "lathe::program_0"} <= names
    assert not any("lathe_kernel" in name or "lathe_program" in name for name in names)


def lines_by_function(library):
    """For each function of a kernel, the lines that its addresses come from."""
    found = {}
    for name, address, size in functions(library):
        if "program" in name:
            continue
        asked = "".join(f"{at:#x}\n" for at in range(address, address + size))
        outcome = subprocess.run([SYMBOLIZER, "-e", library, "-f=none"], input=asked, text=True,
                                 capture_output=True, check=True)  # fmt: skip
        found[name.removeprefix("lathe::")] = {tuple(line.rsplit(":", 2)[:2]) for line in outcome.stdout.split()}
    return found


@pytest.mark.skipif(not SYMBOLIZER, reason="llvm-symbolizer is not installed")
def test_lines_point_into_the_kernels_own_programs(lathe_cli, tmp_path):
    library = compiled(paths.DIGITS_MODEL, tmp_path / "model.so", "--dim", "batch=3", "-g")
    text = (tmp_path / "model.kernels.tir").read_text().splitlines()
    starts = {match[1]: number for number, line in enumerate(text, 1) if (match := re.match(r"    def (\w+)", line))}
    for name, places in lines_by_function(library).items():
        kernel = name.removesuffix(".parallel").split("|")[0]
        later = [number for number in starts.values() if number > starts[kernel]]
        lines = {int(line) for file, line in places if line not in ("0", "?")}
        assert {file for file, line in places if line not in ("0", "?")} == {str(tmp_path / "model.kernels.tir")}
        assert len(lines) > 1 and starts[kernel] <= min(lines) and max(lines) < min(later, default=len(text) + 1)


def test_the_programs_are_a_script(lathe_cli, tmp_path):
    compiled(paths.DIGITS_MODEL, tmp_path / "model.so", "--dim", "batch=3", "--debug-text", tmp_path / "here" / "x.tir")
    outcome = run_command([paths.LATHE, "opt", tmp_path / "here" / "x.tir", "-o", tmp_path / "again.tir"])
    assert outcome.code == 0, str(outcome)


def test_a_file_that_cannot_be_written_is_said(lathe_cli, tmp_path):
    (tmp_path / "file").write_text("")
    output = tmp_path / "model.so"
    outcome = run_command([paths.LATHE, "compile", paths.DIGITS_MODEL, "-o", output,
                           "--debug-text", tmp_path / "file" / "x.tir"])  # fmt: skip
    assert outcome.code == 1 and "cannot be written" in outcome.err and not output.exists()


def in_gdb(program, *commands):
    words = [GDB, "-nx", "-batch", "-ex", "set breakpoint pending on", "-ex", "set debuginfod enabled off"]
    for command in commands:
        words += ["-ex", command]
    outcome = run_command([*words, "--args", sys.executable, "-c", program], timeout=120)
    assert outcome.code == 0, str(outcome)
    return outcome.out


RUN = """
import numpy, lathe
built = lathe.build(lathe.import_onnx({path!r}), debug_info={debug!r})
b = numpy.zeros(7, "float32")
built["row_sums"](numpy.ones((7, 33), "float32"), b)
assert (b == 33).all()
del built
"""


@pytest.mark.skipif(not GDB or paths.SANITIZED, reason="gdb is not installed, or a sanitizer is in its way")
def test_gdb_stops_in_kernels_of_the_process(lathe_cli, tmp_path):
    (tmp_path / "sums.tir").write_text(SUMS)
    said = in_gdb(RUN.format(path=str(tmp_path / "sums.tir"), debug=str(tmp_path / "kernels.tir")),
                  "break row_sums", "run", "next", "next", "delete", "continue")  # fmt: skip
    assert re.search(r"Breakpoint 1.*row_sums \(\) at .*kernels\.tir:8", said), said
    assert re.search(r"^(9|11|12)\s+.*(for|B\[)", said, re.MULTILINE), said
    assert "exited normally" in said, said
    said = in_gdb(RUN.format(path=str(tmp_path / "sums.tir"), debug=False), "break 'lathe::row_sums'", "run", "delete",
                  "continue")  # fmt: skip
    assert re.search(r"Breakpoint 1.* in lathe::row_sums \(\)", said) and "exited normally" in said, said


def test_python_writes_the_programs_where_it_is_told(lathe_cli, tmp_path, monkeypatch):
    import lathe

    (tmp_path / "sums.tir").write_text(SUMS)
    module = lathe.import_onnx(str(tmp_path / "sums.tir"))
    monkeypatch.setenv("LATHE_CACHE_DIR", str(tmp_path / "kept"))
    (tmp_path / "folder").mkdir()
    for where in (True, tmp_path / "folder", tmp_path / "some" / "file.tir"):
        built = lathe.build(module, debug_info=where)
        b = np.zeros(7, "float32")
        built["row_sums"](np.ones((7, 33), "float32"), b)
        assert (b == 33).all()
    written = [*(tmp_path / "kept" / "debug").iterdir(), *(tmp_path / "folder").iterdir(),
               tmp_path / "some" / "file.tir"]  # fmt: skip
    assert len(written) == 3 and len({file.read_text() for file in written}) == 1
    assert written[0].name == written[1].name
    assert "def row_sums" in written[0].read_text()
    model = lathe.compile(str(paths.DIGITS_MODEL), dims={"batch": 1}, debug_info=tmp_path / "digits.tir")
    assert "def max_pool" in (tmp_path / "digits.tir").read_text()
    model.save(tmp_path / "digits.so")
    assert section(tmp_path / "digits.so", ".debug_line")
