// The bounded first reading of a model file, before protobuf sees it.
//
// It walks the wire format by ONNX's schema, checks lengths and nesting, and gives the message without what the
// compiler does not read (documentation, training information) and without tensors' payloads: each raw_data is replaced
// by where it lies in the file. So protobuf parses something small, nested no deeper than `deepest`, and weights are
// never copied. The file may be larger than the 2 GB that protobuf can hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/result.h"

namespace lathe::onnx {

// What raw_data holds in the outline: offset and size in the file. Only the walk writes it, so it can be trusted.
struct PayloadPlace {
  uint64_t offset = 0, size = 0;
};

struct WireLimits {
  int deepest = 90;               // messages inside each other: about 30 graphs
  int64_t messages = 2'000'000;   // nodes, attributes, tensors, types
  int64_t fields = 20'000'000;    // strings and the like
  uint64_t outline = 1ull << 30;  // bytes
};

// `name` is what diagnostics call the file.
support::Result<std::string> read_outline(std::string_view file, const std::string& name,
                                          const WireLimits& limits = {});

}  // namespace lathe::onnx
