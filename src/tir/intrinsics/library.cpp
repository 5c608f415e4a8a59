#include "tir/intrinsics/library.h"

#include "script/parse.h"
#include "tir/script/dialect.h"

namespace lathe::tir {

namespace {

// A row of products a vector wide: C[lanes] += B[lanes, group] @ A[group], in one instruction.
struct DotRow {
  std::string name, feature;
  std::string a, b, c;  // element types
  int lanes, group;
  std::string word;  // of `group` elements of A
  std::string wide;  // A's vector, as the instruction has it
  std::string instruction;
};

const DotRow dot_rows[] = {
    // Intel SDM, VPDPBUSD: exact, the sum wraps
    {"dot_16x4_vnni", "avx512vnni", "uint8", "int8", "int32", 16, 4, "int32", "int32x16",
     "llvm.x86.avx512.vpdpbusd.512"},
    // Intel SDM, VDPBF16PS: products exact, sums rounded to even with denormals taken for zero
    {"dot_16x2_bf16", "avx512bf16", "bfloat16", "bfloat16", "float32", 16, 2, "int32", "bfloat16x32",
     "llvm.x86.avx512bf16.dpbf16ps.512"},
    // Arm ARM, SDOT and UDOT (vector)
    {"dot_4x4_i8i8s32_sdot", "dotprod", "int8", "int8", "int32", 4, 4, "int32", "int8x16",
     "llvm.aarch64.neon.sdot.v4i32.v16i8"},
    {"dot_4x4_u8u8u32_udot", "dotprod", "uint8", "uint8", "uint32", 4, 4, "int32", "uint8x16",
     "llvm.aarch64.neon.udot.v4i32.v16i8"},
};

// A block of 32 by 32 results in four tiles, over all of the reduced axis: `group` elements of it lie together in B.
struct TileRow {
  std::string name, feature;
  std::string a, b, c;
  int group;
  std::string instruction;
};

// Intel SDM, TDPBSSD and its like, TDPBF16PS. A row of a tile has 64 bytes.
const TileRow tile_rows[] = {
    {"amx_dot_32x32_u8s8s32", "amx-int8", "uint8", "int8", "int32", 4, "llvm.x86.tdpbusd"},
    {"amx_dot_32x32_s8s8s32", "amx-int8", "int8", "int8", "int32", 4, "llvm.x86.tdpbssd"},
    {"amx_dot_32x32_bf16bf16f32", "amx-bf16", "bfloat16", "bfloat16", "float32", 2, "llvm.x86.tdpbf16ps"},
};
constexpr const char* update_suffix = "_update";  // the one that adds to what is there

Function parsed(const std::string& text) {
  const script::Dialect* const dialects[] = {&script_dialect()};
  return ir::cast<PrimFunc>(script::parse_function({"<intrinsic>", text}, dialects).value_or_throw());
}

TensorIntrin dot(const DotRow& row) {
  const std::string parameters = fmt::format(
      "@T.prim_func\ndef main(A: T.Buffer(({group},), \"{a}\"{whole_a}), B: T.Buffer(({lanes}, {group}), "
      "\"{b}\"{whole_b}), "
      "C: T.Buffer(({lanes},), \"{c}\"{whole_a})):\n",
      fmt::arg("group", row.group), fmt::arg("lanes", row.lanes), fmt::arg("a", row.a), fmt::arg("b", row.b),
      fmt::arg("c", row.c), fmt::arg("whole_a", ", strides=[1]"),
      fmt::arg("whole_b", fmt::format(", strides=[{}, 1]", row.group)));
  const std::string loops = fmt::format(
      "    for i, k in T.grid({lanes}, {group}):\n"
      "        with T.block(\"update\"):\n"
      "            vi, vk = T.axis.remap(\"SR\", [i, k])\n"
      "            C[vi] = C[vi] + T.Cast(\"{c}\", A[vk]) * T.Cast(\"{c}\", B[vi, vk])\n",
      fmt::arg("group", row.group), fmt::arg("lanes", row.lanes), fmt::arg("c", row.c));
  // The rows of B follow one another, so that all of it is one vector.
  const std::string code = fmt::format(
      "    C[0:{lanes}] = T.call_llvm_pure_intrin(\"{c}x{lanes}\", \"{instruction}\", C[0:{lanes}], "
      "T.reinterpret(\"{wide}\", T.broadcast(T.reinterpret(\"{word}\", A[0:{group}]), {lanes})), "
      "B[0, T.ramp(T.int64(0), T.int64(1), {all})])\n",
      fmt::arg("group", row.group), fmt::arg("lanes", row.lanes), fmt::arg("c", row.c), fmt::arg("wide", row.wide),
      fmt::arg("word", row.word), fmt::arg("instruction", row.instruction), fmt::arg("all", row.lanes * row.group));
  return {parsed(parameters + loops), parsed(parameters + code)};
}

std::string evaluated(const std::string& name, const std::string& arguments) {
  return fmt::format("T.evaluate(T.call_llvm_intrin(\"void\", \"{}\", {}))\n", name, arguments);
}

TensorIntrin tiles(const TileRow& row, bool update) {
  const int step = 16 * row.group;  // of the reduced axis: a tile's row
  const auto head = [&](bool with_strides) {
    const auto strides = [&](const char* list) {
      return with_strides ? fmt::format(", strides=[{}]", list) : std::string();
    };
    return fmt::format(
        "@T.prim_func\ndef main(a: T.handle, b: T.handle, c: T.handle):\n"
        "    K = T.int64()\n    sa = T.int64()\n    sb = T.int64()\n    sc = T.int64()\n"
        "    A = T.match_buffer(a, (32, K * {step}), \"{a}\"{sa})\n"
        "    B = T.match_buffer(b, (K * 16, 32, {group}), \"{b}\"{sb})\n"
        "    C = T.match_buffer(c, (32, 32), \"{c}\"{sc})\n",
        fmt::arg("step", step), fmt::arg("group", row.group), fmt::arg("a", row.a), fmt::arg("b", row.b),
        fmt::arg("c", row.c), fmt::arg("sa", strides("sa, 1")),
        fmt::arg("sb", strides(fmt::format("sb, {}, 1", row.group).c_str())), fmt::arg("sc", strides("sc, 1")));
  };
  const std::string init =
      update ? std::string() : fmt::format("            with T.init():\n                C[vi, vj] = T.{}(0)\n", row.c);
  const std::string loops = fmt::format(
      "    for i, j, ko, ki in T.grid(32, 32, K, {step}):\n"
      "        with T.block(\"update\"):\n"
      "            vi = T.axis.spatial(32, i)\n            vj = T.axis.spatial(32, j)\n"
      "            vk = T.axis.reduce(K * {step}, ko * {step} + ki)\n"
      "{init}"
      "            C[vi, vj] = C[vi, vj] + T.Cast(\"{c}\", A[vi, vk]) * T.Cast(\"{c}\", B[vk // {group}, vj, vk % "
      "{group}])\n",
      fmt::arg("step", step), fmt::arg("group", row.group), fmt::arg("c", row.c), fmt::arg("init", init));
  const int bytes = 4 / row.group;  // of an element of A and B
  std::string code = "    with T.block(\"tiles\"):\n        T.reads(A[0:32, 0:K * " + std::to_string(step) +
                     "], B[0:K * 16, 0:32, 0:" + std::to_string(row.group) + "], C[0:32, 0:32])\n" +
                     "        T.writes(C[0:32, 0:32])\n";
  const auto corner = [](int tile) { return fmt::format("C[{}, {}]", 16 * (tile / 2), 16 * (tile % 2)); };
  for (int t = 0; t < 4; ++t)
    code += "        " + (update ? evaluated("llvm.x86.tileloadd64",
                                             fmt::format("T.int8({}), T.address_of({}), sc * 4", t, corner(t)))
                                 : evaluated("llvm.x86.tilezero", fmt::format("T.int8({})", t)));
  code += "        for k in range(K):\n";
  const auto inside = [&](const std::string& line) { code += "            " + line; };
  for (int t = 0; t < 2; ++t)
    inside(evaluated("llvm.x86.tileloadd64",
                     fmt::format("T.int8({}), T.address_of(A[{}, k * {}]), sa * {}", 4 + t, 16 * t, step, bytes)));
  // B only passes by while A, read again for the next columns, stays in the first cache: the hint is worth a fifth.
  for (int t = 0; t < 2; ++t)
    inside(evaluated("llvm.x86.tileloaddt164",
                     fmt::format("T.int8({}), T.address_of(B[k * 16, {}, 0]), sb * {}", 6 + t, 16 * t, bytes)));
  for (int t = 0; t < 4; ++t)
    inside(evaluated(row.instruction, fmt::format("T.int8({}), T.int8({}), T.int8({})", t, 4 + t / 2, 6 + t % 2)));
  for (int t = 0; t < 4; ++t)
    code += "        " +
            evaluated("llvm.x86.tilestored64", fmt::format("T.int8({}), T.address_of({}), sc * 4", t, corner(t)));
  return {parsed(head(false) + loops), parsed(head(true) + code)};
}

// What each is called and needs, and how it is made.
struct Entry {
  std::string feature;
  std::function<TensorIntrin()> make;
};

const std::map<std::string, Entry>& entries() {
  static const std::map<std::string, Entry> all = [] {
    std::map<std::string, Entry> list;
    for (const DotRow& row : dot_rows) list[row.name] = {row.feature, [&row] { return dot(row); }};
    for (const TileRow& row : tile_rows)
      for (const bool update : {false, true})
        list[row.name + (update ? update_suffix : "")] = {row.feature, [&row, update] { return tiles(row, update); }};
    return list;
  }();
  return all;
}

}  // namespace

std::optional<TensorIntrin> library_intrin(const std::string& name) {
  const auto it = entries().find(name);
  if (it == entries().end()) return std::nullopt;
  static std::mutex mutex;
  static std::map<std::string, TensorIntrin> made;
  const std::lock_guard lock(mutex);
  const auto known = made.find(name);
  return known != made.end() ? known->second : made.emplace(name, it->second.make()).first->second;
}

std::vector<std::string> library_intrin_names() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries()) names.push_back(name);
  return names;
}

std::vector<std::string> offered_intrins(const target::Target& target) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries())
    if (target.has(entry.feature)) names.push_back(name);
  return names;
}

}  // namespace lathe::tir
