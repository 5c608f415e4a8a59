#include "interchange/onnx/read/wire.h"

#include "interchange/onnx/codes.h"

namespace lathe::onnx {

using support::Diagnostic;
using support::DiagnosticError;

namespace {

// The messages the walk enters. `leaf` ones are copied whole: protobuf bounds what little nesting they have.
enum class Message : uint8_t {
  model,
  function,
  graph,
  node,
  attribute,
  tensor,
  sparse_tensor,
  value_info,
  type,
  sequence_type,
  map_type,
  optional_type,
};

constexpr std::string_view message_names[] = {
    "ModelProto",        "FunctionProto",  "GraphProto", "NodeProto",          "AttributeProto", "TensorProto",
    "SparseTensorProto", "ValueInfoProto", "TypeProto",  "TypeProto.Sequence", "TypeProto.Map",  "TypeProto.Optional"};

enum class Action : uint8_t { enter, drop, payload };

struct Row {
  Message in;
  uint32_t field;
  Action action;
  Message child = Message::model;
};

// Fields of onnx-ml.proto; those without a row are copied.
constexpr Row rows[] = {
    {Message::model, 6, Action::drop},  // doc_string
    {Message::model, 7, Action::enter, Message::graph},
    {Message::model, 14, Action::drop},  // metadata_props
    {Message::model, 20, Action::drop},  // training_info
    {Message::model, 25, Action::enter, Message::function},
    {Message::model, 26, Action::drop},  // configuration
    {Message::function, 7, Action::enter, Message::node},
    {Message::function, 8, Action::drop},
    {Message::function, 11, Action::enter, Message::attribute},
    {Message::function, 12, Action::drop},  // value_info
    {Message::function, 14, Action::drop},
    {Message::graph, 1, Action::enter, Message::node},
    {Message::graph, 5, Action::enter, Message::tensor},
    {Message::graph, 10, Action::drop},
    {Message::graph, 11, Action::enter, Message::value_info},
    {Message::graph, 12, Action::enter, Message::value_info},
    {Message::graph, 13, Action::drop},  // value_info: types are computed
    {Message::graph, 14, Action::drop},  // quantization_annotation
    {Message::graph, 15, Action::enter, Message::sparse_tensor},
    {Message::graph, 16, Action::drop},
    {Message::node, 5, Action::enter, Message::attribute},
    {Message::node, 6, Action::drop},
    {Message::node, 9, Action::drop},
    {Message::node, 10, Action::drop},
    {Message::attribute, 5, Action::enter, Message::tensor},
    {Message::attribute, 6, Action::enter, Message::graph},
    {Message::attribute, 10, Action::enter, Message::tensor},
    {Message::attribute, 11, Action::enter, Message::graph},
    {Message::attribute, 13, Action::drop},
    {Message::attribute, 14, Action::enter, Message::type},
    {Message::attribute, 15, Action::enter, Message::type},
    {Message::attribute, 22, Action::enter, Message::sparse_tensor},
    {Message::attribute, 23, Action::enter, Message::sparse_tensor},
    {Message::tensor, 9, Action::payload},
    {Message::tensor, 12, Action::drop},
    {Message::tensor, 16, Action::drop},
    {Message::sparse_tensor, 1, Action::enter, Message::tensor},
    {Message::sparse_tensor, 2, Action::enter, Message::tensor},
    {Message::value_info, 2, Action::enter, Message::type},
    {Message::value_info, 3, Action::drop},
    {Message::value_info, 4, Action::drop},
    {Message::type, 4, Action::enter, Message::sequence_type},
    {Message::type, 5, Action::enter, Message::map_type},
    {Message::type, 9, Action::enter, Message::optional_type},
    {Message::sequence_type, 1, Action::enter, Message::type},
    {Message::map_type, 2, Action::enter, Message::type},
    {Message::optional_type, 1, Action::enter, Message::type},
};

const Row* find_row(Message in, uint64_t field) {
  for (const Row& row : rows)
    if (row.in == in && row.field == field) return &row;
  return nullptr;
}

void append_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7f) | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

class Walk {
 public:
  Walk(std::string_view file, const std::string& name, const WireLimits& limits)
      : file_(file), name_(name), limits_(limits) {}

  std::string run() {
    std::string out;
    message(Message::model, 0, file_.size(), 0, out);
    return out;
  }

 private:
  [[noreturn]] void refuse(support::Code code, std::string message) const {
    throw DiagnosticError(
        Diagnostic{.code = code, .place = support::ModelNode{name_, "", ""}, .message = std::move(message)});
  }
  [[noreturn]] void damaged(uint64_t at, const std::string& why) const {
    refuse(codes::damaged, "the file is damaged or is not an ONNX model: at byte " + std::to_string(at) + ", " + why);
  }

  uint64_t varint(uint64_t& at, uint64_t end) const {
    const uint64_t start = at;
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at >= end) damaged(start, "a number is cut off");
      const auto byte = static_cast<uint8_t>(file_[at++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    damaged(start, "a number has more than 64 bits");
  }

  // Appends the outline of the message in [at, end) to `out`.
  void message(Message kind, uint64_t at, uint64_t end, int depth, std::string& out) {
    if (depth > limits_.deepest)
      refuse(codes::too_deep, "the model nests graphs or types more than " + std::to_string(limits_.deepest) +
                                  " messages deep (byte " + std::to_string(at) + ")");
    if (++messages_ > limits_.messages)
      refuse(codes::too_large,
             "the model has more than " + std::to_string(limits_.messages) + " nodes, attributes and tensors");
    while (at < end) {
      const uint64_t start = at;
      const uint64_t tag = varint(at, end);
      const uint64_t field = tag >> 3;
      if (field == 0 || field >= (1u << 29))
        damaged(start,
                std::string(message_names[static_cast<size_t>(kind)]) + " has a field number " + std::to_string(field));
      switch (tag & 7) {
        case 0:
          varint(at, end);
          break;
        case 1:
          skip(at, end, 8, start);
          break;
        case 2: {
          if (++fields_ > limits_.fields)
            refuse(codes::too_large, "the model has more than " + std::to_string(limits_.fields) + " fields");
          const uint64_t size = varint(at, end);
          if (size > end - at)
            damaged(start, "field " + std::to_string(field) + " of " +
                               std::string(message_names[static_cast<size_t>(kind)]) + " has " + std::to_string(size) +
                               " bytes, but " + std::to_string(end - at) + " are left");
          const uint64_t content = at;
          at += size;
          if (const Row* row = find_row(kind, field)) {
            apply(*row, tag, content, size, depth, out);
            continue;
          }
          break;
        }
        case 5:
          skip(at, end, 4, start);
          break;
        default:
          damaged(start, "a field of a kind that ONNX does not use begins");
      }
      out.append(file_.substr(start, at - start));
      check_size(out);
    }
  }

  void skip(uint64_t& at, uint64_t end, uint64_t size, uint64_t start) const {
    if (size > end - at) damaged(start, "a number is cut off");
    at += size;
  }

  void apply(const Row& row, uint64_t tag, uint64_t content, uint64_t size, int depth, std::string& out) {
    if (row.action == Action::drop) return;
    std::string inner;
    if (row.action == Action::enter) {
      message(row.child, content, content + size, depth + 1, inner);
    } else {
      const PayloadPlace place{content, size};
      inner.assign(reinterpret_cast<const char*>(&place), sizeof place);
    }
    append_varint(out, tag);
    append_varint(out, inner.size());
    out += inner;
    check_size(out);
  }

  void check_size(const std::string& out) const {
    if (out.size() > limits_.outline)
      refuse(codes::too_large,
             "the model without its weights has more than " + std::to_string(limits_.outline) + " bytes");
  }

  std::string_view file_;
  const std::string& name_;
  const WireLimits& limits_;
  int64_t messages_ = 0, fields_ = 0;
};

}  // namespace

support::Result<std::string> read_outline(std::string_view file, const std::string& name, const WireLimits& limits) {
  if (file.empty())
    return Diagnostic{
        .code = codes::damaged, .place = support::ModelNode{name, "", ""}, .message = "the file is empty"};
  return support::catch_diagnostics([&]() -> support::Result<std::string> { return Walk(file, name, limits).run(); });
}

}  // namespace lathe::onnx
