#include "script/vocabulary.h"

#include <fmt/format.h>

#include <vector>

#include "support/nearest.h"

namespace lathe::script {

namespace {

// What is no intrinsic: statements, and expressions of a form of their own.
constexpr std::string_view words[] = {"Add",
                                      "And",
                                      "Assert",
                                      "Broadcast",
                                      "Buffer",
                                      "BufferLoad",
                                      "Call",
                                      "Cast",
                                      "Div",
                                      "EQ",
                                      "FloorDiv",
                                      "FloorMod",
                                      "GE",
                                      "GT",
                                      "If",
                                      "LE",
                                      "LT",
                                      "Let",
                                      "LetStmt",
                                      "Max",
                                      "Min",
                                      "Mod",
                                      "Mul",
                                      "NE",
                                      "Not",
                                      "Or",
                                      "Ptr",
                                      "Ramp",
                                      "Reduce",
                                      "Select",
                                      "Shuffle",
                                      "Sub",
                                      "Tuple",
                                      "Var",
                                      "While",
                                      "address_of",
                                      "alloc_buffer",
                                      "allocate",
                                      "allocate_const",
                                      "attr",
                                      "block",
                                      "block_attr",
                                      "bool",
                                      "buffer_decl",
                                      "buffer_store",
                                      "call_extern",
                                      "call_intrin",
                                      "call_llvm_intrin",
                                      "call_llvm_pure_intrin",
                                      "call_packed",
                                      "call_pure_extern",
                                      "cast",
                                      "ceildiv",
                                      "comm_reducer",
                                      "decl_buffer",
                                      "env_thread",
                                      "evaluate",
                                      "fabs",
                                      "float16",
                                      "float32",
                                      "float64",
                                      "floordiv",
                                      "floormod",
                                      "func_attr",
                                      "get_active_lane_mask",
                                      "grid",
                                      "handle",
                                      "handle_add_byte_offset",
                                      "if_then_else",
                                      "ignore_loop_partition",
                                      "index_map",
                                      "infinity",
                                      "init",
                                      "int16",
                                      "int32",
                                      "int64",
                                      "int8",
                                      "isnullptr",
                                      "iter_var",
                                      "launch_thread",
                                      "let",
                                      "match_buffer",
                                      "max",
                                      "max_value",
                                      "meta_var",
                                      "min",
                                      "min_value",
                                      "parallel",
                                      "prim_func",
                                      "q_multiply_shift",
                                      "reads",
                                      "reduce_axis",
                                      "reinterpret",
                                      "sblock",
                                      "serial",
                                      "size_var",
                                      "target",
                                      "thread_binding",
                                      "truncdiv",
                                      "truncmod",
                                      "tvm_access_ptr",
                                      "type_annotation",
                                      "uint16",
                                      "uint32",
                                      "uint64",
                                      "uint8",
                                      "unroll",
                                      "vectorcombine",
                                      "vectorhigh",
                                      "vectorized",
                                      "vectorlow",
                                      "where",
                                      "writes"};

}  // namespace

std::string nearest_help(std::string_view name, std::string_view prefix, std::span<const std::string_view> known) {
  return fmt::format("the nearest name is {}{}", prefix, support::nearest(name, known));
}

std::string nearest_help(std::string_view path) {
  if (!path.starts_with("tir.")) return {};
  static const std::vector<std::string_view> known = [] {
    std::vector<std::string_view> all(std::begin(words), std::end(words));
#define LATHE_INTRINSIC(NAME, ARITY, EFFECT, MEANING) all.emplace_back(#NAME);
#include "ir/intrinsic.def"
#undef LATHE_INTRINSIC
    return all;
  }();
  return nearest_help(path.substr(4), "T.", known);
}

}  // namespace lathe::script
