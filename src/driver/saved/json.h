// Programs as JSON: any node, any module, and plain values that hold them, exactly.
//
//   {"format": "lathe", "version": 1,
//    "nodes": [["expr.Var", {"name": "x", "dtype": {"dtype": "int64"}, "is_size": false}],
//              ["expr.Add", {"a": {"node": 0}, "b": {"node": 0}}]],
//    "root": {"node": 1}}
//
// The nodes stand in post-order, each once however often it is used: variables and buffers stay the ones they are.
// null, true, numbers, strings and lists are themselves; an object has one key that says what else it is: "node",
// "dtype", "map", "float" (what JSON has no number for: "inf", "-inf", or the bits in base 16), "bytes" (a string that
// is no UTF-8, in base 64). Places in texts and models, and the numbers that schedules give to loops, are not saved.
#pragma once

#include "ir/value.h"
#include "support/result.h"

namespace lathe::driver::saved {

// Modules inside are `module_node`s (driver/saved/node_kinds.h).
support::Result<std::string> save_json(const ir::Value& value);
// What was saved. Modules are verified as those of scripts are.
support::Result<ir::Value> load_json(std::string_view text);

inline constexpr std::string_view format = "lathe";
inline constexpr int64_t version = 1;
inline constexpr int max_nesting = 256;  // of lists and dicts in one field

// The struct info of graph expressions is no field of theirs, except where a variable is defined, and some derive it.
bool has_struct_info_beside(const ir::NodeClass& kind);
// Whether strings of a kind are bytes: those of tensors of strings are.
bool holds_bytes(const ir::NodeClass& kind);
// Whether a field says something of this process alone.
bool is_left_out(const ir::NodeClass& kind, std::string_view field);
}  // namespace lathe::driver::saved
