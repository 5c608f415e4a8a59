"""Each check finds a bad input, and leaves a good one alone."""

import importlib
from pathlib import Path

import pytest

from scripts.checks.__main__ import CHECKS, run
from scripts.checks.tree import Rooms, Tree

TABLE = """set(LATHE_ROOMS
  "abi:"
  "support: abi"
  "runtime: abi"
  "target: support runtime/cpu"
  "tir: target"
  "codegen/emit: tir abi"
  "codegen/*: codegen/emit"
  "graph: tir"
  "driver: graph codegen"
)
"""


@pytest.fixture
def house(tmp_path):
    def build(files):
        for name, text in {"cmake/rooms.cmake": TABLE, "src/support/std.h": "#pragma once\n", **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Tree(tmp_path)

    return build


def problems(check, tree):
    return importlib.import_module(f"scripts.checks.{check}").check(tree)


def include(name):
    return f'#include "{name}"\n'


HEADERS = {f"src/{name}": "#pragma once\n" for name in (
    "abi/a.h", "runtime/core/c.h", "runtime/cpu/c.h", "target/t.h", "tir/t.h", "graph/g.h", "codegen/emit/e.h",
    "codegen/null/n.h", "codegen/llvm/l.h", "driver/d.h",
)}  # fmt: skip


@pytest.mark.parametrize(
    "file, included",
    [
        ("src/support/x.cpp", "target/t.h"),
        ("src/target/x.cpp", "runtime/core/c.h"),
        ("src/tir/x.cpp", "graph/g.h"),
        ("src/codegen/null/x.cpp", "codegen/llvm/l.h"),
        ("src/codegen/emit/x.cpp", "codegen/null/n.h"),
        ("src/abi/x.h", "support/std.h"),
        ("src/graph/x.cpp", "driver/d.h"),
    ],
)
def test_layers_refuses_what_a_room_does_not_see(house, file, included):
    found = problems("layers", house({**HEADERS, file: "\n" + include(included)}))
    assert len(found) == 1 and found[0].startswith(f"{file}:2: ") and included in found[0]


@pytest.mark.parametrize(
    "file, included",
    [
        ("src/target/x.cpp", "runtime/cpu/c.h"),
        ("src/target/x.cpp", "abi/a.h"),
        ("src/tir/x.cpp", "support/std.h"),
        ("src/codegen/null/x.cpp", "codegen/emit/e.h"),
        ("src/codegen/null/x.cpp", "tir/t.h"),
        ("src/driver/x.cpp", "codegen/llvm/l.h"),
        ("src/tir/x_test.cpp", "graph/g.h"),
        ("src/runtime/cpu/x.cpp", "runtime/core/c.h"),
    ],
)
def test_layers_allows_what_a_room_sees(house, file, included):
    assert problems("layers", house({**HEADERS, file: include(included)})) == []


def test_layers_wants_a_room_for_each_file_and_includes_from_src(house):
    tree = house({"src/attic/x.cpp": "", "src/tir/t.h": "", "src/tir/y.cpp": include("t.h")})
    found = problems("layers", tree)
    assert len(found) == 2 and "no room" in found[0] and "from src/" in found[1]


def test_layers_keeps_an_outside_parts_headers_in_one_room(house):
    tree = house({"src/tir/x.cpp": "\n#include <isl/set.h>\n", "src/tir/y.cpp": "#include <islands.h>\n"})
    assert problems("layers", tree) == ["src/tir/x.cpp:2: headers of isl belong to room arith/polyhedral"]


def test_rooms_expands_stars_to_folders_without_a_row():
    rooms = Rooms(TABLE, {Path("codegen/emit"), Path("codegen/llvm"), Path("codegen/llvm/inner")})
    assert rooms.sees["codegen/llvm"] == ["codegen/emit"]
    assert rooms.sees["codegen/emit"] == ["tir", "abi"]
    assert rooms.room_of("codegen/llvm/inner/x.h") == "codegen/llvm"


def test_include_cycles_finds_headers_and_rooms_in_a_circle(house):
    files = {"src/tir/a.h": include("tir/b.h"), "src/tir/b.h": include("tir/c.h"), "src/tir/c.h": include("tir/a.h")}
    assert problems("include_cycles", house(files)) == ["include cycle: tir/a.h -> tir/b.h -> tir/c.h -> tir/a.h"]
    across = {"src/graph/a.h": include("tir/d.h"), "src/tir/e.h": include("graph/b.h")}
    assert any(line.startswith("rooms in a cycle") for line in problems("include_cycles", house(across)))


def test_include_cycles_leaves_diamonds_alone(house):
    files = {"src/tir/a.h": include("tir/b.h") + include("tir/c.h"), "src/tir/b.h": include("tir/d.h")}
    files |= {"src/tir/c.h": include("tir/d.h"), "src/tir/d.h": ""}
    assert problems("include_cycles", house(files)) == []


def test_sizes_finds_long_files_wide_lines_and_crowded_folders(house):
    long = house({"src/tir/long.cpp": "\n" * 801, "src/tir/table.def": "\n" * 2000, "src/tir/fine.cpp": "\n" * 800})
    assert [line.split(":")[0] for line in problems("sizes", long)] == ["src/tir/long.cpp"]


def test_sizes_finds_wide_python_and_crowded_folders(house):
    wide = {"python/x.py": "x" * 121 + "\n", "python/y.py": "x" * 120 + "\n"}
    crowd = {f"src/tir/file{i}.cpp": "" for i in range(41)}
    found = problems("sizes", house(wide | crowd))
    assert len(found) == 2 and found[0].startswith("python/x.py:1:") and found[1].startswith("src/tir: 41 files")


def test_pass_tests_wants_a_test_and_a_text_of_the_same_name(house):
    definition = "Result<IRModule> {}(IRModule module, const PassContext& context) {{\n"
    tree = house({
        "src/graph/fuse_ops.cpp": definition.format("fuse_ops"),
        "src/graph/fold.cpp": definition.format("fold"),
        "src/graph/fold_test.cpp": "",
        "src/graph/fold_test.txt": "",
        "src/graph/pack.cpp": definition.format("pack"),
        "src/graph/pack_test.cpp": "",
        "src/tir/passes/flatten.cpp": definition.format("flatten"),
        "src/graph/groups.cpp": "void merge(Group& a) {\n",
        "src/tir/printer.cpp": "std::string printer(int x) {\n",
    })  # fmt: skip
    found = [f"{Path(line.split(':')[0]).stem}{line.split(':')[2]}" for line in problems("pass_tests", tree)]
    assert found == [
        "fuse_ops fuse_ops_test.cpp is missing",
        "fuse_ops fuse_ops_test.txt is missing",
        "pack pack_test.txt is missing",
        "flatten flatten_test.cpp is missing",
        "flatten flatten_test.txt is missing",
    ]


PAGE = """rows() {
  return {
      {"fuse_ops", graph::fuse_ops, {"fold"}},
      {"fold_packing", graph::fold},
      {"pack", with_target(graph::pack_weights, target), {"fold"}},
      {"schedule", default_schedule(target)},
  };
}
"""
FAULTS = ["fuse_ops_swaps", "fold_bound", "pack_weights_order", "schedule_late", "plan_memory_x", "write_program_x",
          "llvm_x"]  # fmt: skip


def faults_house(names, flipped):
    declared = "".join(f'LATHE_FAULT({name}, "a_test", "m");\n' for name in names)
    flips = "".join(f"if (support::flip({name})) x();\n" for name in flipped)
    return {"src/driver/pipeline.cpp": PAGE, "src/graph/passes.cpp": declared + flips}


def test_seeded_faults_takes_a_fault_named_after_the_pass_or_its_function(house):
    assert problems("seeded_faults", house(faults_house(FAULTS, FAULTS))) == []


def test_seeded_faults_wants_one_for_each_pass_and_each_flipped_once(house):
    found = problems("seeded_faults", house(faults_house([*FAULTS[1:], "fuse_opsy", "llvm_x"], FAULTS[1:])))
    assert "the pass fuse_ops has no seeded fault" in found[0]
    assert [line.split(": ")[1] for line in found[1:]] == ["nothing flips fuse_opsy"] + ["llvm_x is declared twice"] * 2


def test_heavy_headers_measures_what_a_header_adds_and_keeps_the_result(house):
    lines = "".join(f"int x{i};\n" for i in range(5001))
    tree = house({"src/tir/heavy.h": "#pragma once\n" + lines, "src/tir/user.h": include("tir/heavy.h"),
                  "src/tir/light.h": "#pragma once\nint y;\n", "src/tir/broken.h": include("tir/none.h")})  # fmt: skip
    (tree.root / "build").mkdir()
    for _ in range(2):  # the second time from what was kept
        found = problems("heavy_headers", tree)
        assert sorted(line.split(":")[0] for line in found) == [
            "src/tir/broken.h", "src/tir/heavy.h", "src/tir/user.h"
        ]  # fmt: skip
        assert any("adds 5001 preprocessed lines" in line for line in found)


def test_environment_finds_other_readers(house):
    read = 'auto x = std::getenv("X");\n'
    tree = house({"src/support/environment.cpp": read, "src/tir/x.cpp": read, "src/tir/y.cpp": "// getenv(x)\n"})
    assert [line.split(":")[0] for line in problems("environment", tree)] == ["src/tir/x.cpp"]


CODES = """namespace lathe::tir::codes {
inline constexpr support::Code bounds{"tir-bounds"};
inline constexpr support::Code depth{"tir-depth"};
}
"""


def test_diagnostic_codes_wants_a_test_for_each_code(house):
    interface = "enum {\n  LATHE_OK = 0,\n  LATHE_TORN = 1,\n};\nenum { LATHE_TENSOR = 1 };\n"
    tree = house({"src/tir/codes.h": CODES, "src/abi/lathe.h": interface, "src/tir/x.cpp": "codes::depth"})
    assert problems("diagnostic_codes", tree) == [
        "src/tir/codes.h: no test expects tir-bounds",
        "src/tir/codes.h: no test expects tir-depth",
        "src/abi/lathe.h: no test expects LATHE_TORN",
    ]


@pytest.mark.parametrize(
    "test, tested",
    [
        ("src/graph/x_test.cpp", 'code == "tir-depth"'),
        ("src/graph/x_test.cpp", "tir::codes::depth"),
        ("src/tir/passes/x_test.cpp", "codes::depth"),
        ("tests/cli/test_x.py", "'tir-depth: too deep'"),
    ],
)
def test_diagnostic_codes_knows_how_tests_name_them(house, test, tested):
    tree = house({"src/tir/codes.h": CODES, test: tested})
    assert problems("diagnostic_codes", tree) == ["src/tir/codes.h: no test expects tir-bounds"]


@pytest.mark.parametrize("test", ["codes::depth", "relax::codes::depth", '"tir-depths"', '"my-tir-depth"'])
def test_diagnostic_codes_takes_nothing_else_for_a_test(house, test):
    found = problems("diagnostic_codes", house({"src/tir/codes.h": CODES, "src/graph/x_test.cpp": test}))
    assert "src/tir/codes.h: no test expects tir-depth" in found


@pytest.mark.parametrize("text", ['.code = {"x-y"}', 'Code{"x-y"}', 'constexpr Code x{"x-y"};'])
def test_diagnostic_codes_wants_them_declared_in_codes_h(house, text):
    tree = house({"tools/lathe/x.cpp": text, "src/tir/x_test.cpp": text, "src/tir/testing/x.cpp": text})
    assert problems("diagnostic_codes", tree) == ["tools/lathe/x.cpp: the code x-y belongs in its folder's codes.h"]


# In pieces, so that the check does not find them here.
BAD_WORDS = ["// TO" + "DO: later", "# FIX" + "ME", "not " + "implemented", "/ho" + "me/me/x", '"/ro' + 'ot/x"']


@pytest.mark.parametrize("text", BAD_WORDS)
def test_words_finds_marks_and_machine_paths(house, text):
    assert len(problems("words", house({"src/tir/x.cpp": f"\n{text}\n"}))) == 1


@pytest.mark.parametrize("text", ["method", "a/work/b", "$HOME/x", "https://x.org/home/x", "todo list"])
def test_words_leaves_plain_text_alone(house, text):
    assert problems("words", house({"src/tir/x.cpp": f"{text}\n"})) == []


def test_clang_format_names_the_file(house):
    style = {".clang-format": "BasedOnStyle: Google\n"}
    tree = house({**style, "src/tir/x.cpp": "int  x ;\n", "src/tir/y.cpp": "int x;\n"})
    found = problems("clang_format", tree)
    assert len(found) == 1 and found[0].startswith("src/tir/x.cpp:")


def test_the_runner_says_which_check_failed(house, capsys):
    tree = house({"src/tir/x.cpp": include("graph/g.h"), "src/graph/g.h": "#pragma once\n"})
    assert run(["layers", "sizes"], tree.root) is False
    assert "checks: 1 of 2 passed" in capsys.readouterr().out
    assert run(["sizes"], tree.root) is True


def test_every_check_module_is_run():
    for name in CHECKS:
        assert callable(importlib.import_module(f"scripts.checks.{name}").check)
