#include <bit>
#include <charconv>
#include <nlohmann/json.hpp>

#include "driver/codes.h"
#include "driver/saved/base64.h"
#include "driver/saved/json.h"
#include "driver/saved/node_kinds.h"
#include "driver/verify_module.h"
#include "interchange/onnx/nodes/node_call.h"
#include "relax/call_tir.h"
#include "relax/infer.h"
#include "support/utf8.h"
#include "tir/stmt.h"

namespace lathe::driver::saved {

using ir::Node;
using ir::NodeClass;
using ir::NodeRef;
using ir::Value;
using ir::detail::FieldPlace;
using Json = nlohmann::json;

namespace {

// A verifier walks what is shared once for each use: a module that unfolds to more nodes than this is refused, lest a
// few lines take forever.
constexpr double most_unfolded = 1e8;

[[noreturn]] void refuse_json(std::string message, support::Code code = codes::json) {
  throw support::DiagnosticError(support::Diagnostic{.code = code, .message = std::move(message)});
}

std::string kind_of_json(const Json& json) {
  return json.is_number() ? "the number " + json.dump()
                          : fmt::format("{} {}", json.is_array() || json.is_object() ? "an" : "a", json.type_name());
}

template <class T>
bool is_kind(const NodeClass& kind) {
  return &kind == &ir::node_class_of<T>();
}

class JsonReader {
 public:
  Value read(std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) refuse_json("the text is not JSON");
    if (!json.is_object()) refuse_json("a saved program is an object, not " + kind_of_json(json));
    if (at(json, "format") != format) refuse_json("this is no program that Lathe saved: its 'format' is another");
    const Json& written = at(json, "version");
    if (!written.is_number_integer() || written < 1) refuse_json("'version' is a positive integer");
    if (written > version)
      refuse_json(fmt::format("version {} of the format is newer than this Lathe, which reads version {}",
                              written.dump(), version),
                  codes::json_version);
    const Json& nodes = at(json, "nodes");
    if (!nodes.is_array()) refuse_json("'nodes' is a list, not " + kind_of_json(nodes));
    nodes_.reserve(nodes.size());
    for (const Json& row : nodes) nodes_.push_back(node(row));
    where_ = "'root'";
    Value root = value(at(json, "root"), 0);
    verify_modules();
    return root;
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const { refuse_json(where_ + ": " + message); }

  const Json& at(const Json& object, std::string_view key) const {
    const auto found = object.find(key);
    if (found == object.end()) {
      if (where_.empty()) refuse_json(fmt::format("a saved program has '{}'", key));
      refuse(fmt::format("'{}' is missing", key));
    }
    return *found;
  }

  // ---- values ----

  Value value(const Json& json, int nesting) const {
    if (nesting > max_nesting) refuse(fmt::format("a value is nested more than {} levels deep", max_nesting));
    if (json.is_null()) return {};
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_float()) return json.get<double>();
    if (json.is_number_unsigned() && json.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})
      refuse(json.dump() + " does not fit in 64 bits");
    if (json.is_number_integer()) return json.get<int64_t>();
    if (json.is_string()) return json.get<std::string>();
    if (json.is_array()) {
      Value::List list;
      list.reserve(json.size());
      for (const Json& item : json) list.push_back(value(item, nesting + 1));
      return list;
    }
    if (json.size() != 1)
      refuse(fmt::format("an object with one key stands for a value, not one with {}", json.size()));
    const std::string& key = json.begin().key();
    const Json& what = json.begin().value();
    if (key == "node") return node_numbered(what);
    if (key == "map") return map(what, nesting);
    if (!what.is_string() || (key != "dtype" && key != "float" && key != "bytes"))
      refuse(fmt::format("a value is no object with the key '{}' and {}", key, kind_of_json(what)));
    const auto& text = what.get_ref<const std::string&>();
    if (key == "dtype") return dtype(text);
    if (key == "float") return floating(text);
    if (!bytes_fit_) refuse("'bytes' stand in operators' attributes alone");
    if (auto bytes = from_base64(text)) return *std::move(bytes);
    refuse("'bytes' are not in base 64");
  }

  Value node_numbered(const Json& number) const {
    if (!number.is_number_unsigned()) refuse("the number of a node is an integer from 0, not " + kind_of_json(number));
    const auto index = number.get<uint64_t>();
    if (index >= nodes_.size()) refuse(fmt::format("it refers to node {}, which does not stand before it", index));
    return nodes_[index];
  }

  Value map(const Json& json, int nesting) const {
    if (!json.is_object()) refuse("a 'map' is an object, not " + kind_of_json(json));
    Value::Map entries;
    for (const auto& [name, item] : json.items()) entries[name] = value(item, nesting + 1);
    return entries;
  }

  ir::DType dtype(const std::string& text) const {
    if (const auto known = ir::DType::parse(text)) return *known;
    refuse("there is no dtype '" + text + "'");
  }

  double floating(const std::string& text) const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (text == "inf" || text == "-inf") return text == "inf" ? infinity : -infinity;
    uint64_t bits = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
    if (text.size() != 16 || error != std::errc() || end != text.data() + 16)
      refuse("a 'float' is \"inf\", \"-inf\" or 16 digits in base 16, not '" + text + "'");
    return std::bit_cast<double>(bits);
  }

  // ---- nodes ----

  NodeRef node(const Json& row) {
    where_ = fmt::format("node {}", nodes_.size());
    if (!row.is_array() || row.size() != 2 || !row[0].is_string() || !row[1].is_object())
      refuse("a node is a list of its kind and its fields by name");
    const auto& name = row[0].get_ref<const std::string&>();
    const NodeClass* kind = find_saved_kind(name);
    if (!kind) refuse("there is no kind of nodes '" + name + "'");
    where_ += " (" + name + ")";
    try {
      return made(*kind, row[1]);
    } catch (support::DiagnosticError& error) {
      // What a kind refuses says nothing of the place.
      for (support::Diagnostic& d : error.diagnostics)
        if (d.code.name != codes::json.name)
          d = {.code = codes::json, .message = where_ + ": " + d.message, .help = d.help};
      throw;
    }
  }

  NodeRef made(const NodeClass& kind, const Json& fields) {
    if (is_kind<ir::TensorDataNode>(kind)) return tensor(fields);
    size_t known = 0;
    std::vector<Value> values;
    bytes_fit_ = holds_bytes(kind);
    for (const std::string_view name : kind.field_names) {
      const bool given = !is_left_out(kind, name);
      values.push_back(given ? value(at(fields, name), 0) : Value());
      known += given;
      if (!may_hold_nothing(kind, name)) require_items({kind.name, name}, values.back());
    }
    bytes_fit_ = false;
    NodeRef node;
    if (is_kind<relax::Call>(kind))
      node = call(values);
    else if (is_kind<relax::OpRef>(kind))
      node = op(values[0]);
    else
      node = kind.construct(values);
    if (has_struct_info_beside(kind)) {
      ++known;
      const Value info = value(at(fields, "struct_info"), 0);
      auto* expr = const_cast<relax::ExprNode*>(static_cast<const relax::ExprNode*>(node.get()));
      if (!info.empty()) expr->struct_info = part<relax::StructInfoNode>({kind.name, "struct_info"}, info);
    }
    if (fields.size() != known) refuse_unknown(kind, fields);
    check(*node);
    if (is_kind<relax::Call>(kind)) check_call(node);
    return node;
  }

  // Whether null may stand in the list that a field is.
  static bool may_hold_nothing(const NodeClass& kind, std::string_view field) {
    return kind.family == relax::AttributesNode::family || (is_kind<tir::AttrStmt>(kind) && field == "node") ||
           (is_kind<relax::Call>(kind) && field == "args");
  }

  void require_items(FieldPlace place, const Value& value) const {
    const auto* list = value.get<Value::List>();
    if (!list) return;
    for (const Value& item : *list) {
      if (item.empty()) refuse(fmt::format("{}: '{}' holds nothing where something must be", place.kind, place.field));
      require_items(place, item);
    }
  }

  [[noreturn]] void refuse_unknown(const NodeClass& kind, const Json& fields) const {
    std::string unknown;
    for (const auto& [name, ignored] : fields.items()) {
      const bool is_field =
          std::find(kind.field_names.begin(), kind.field_names.end(), name) != kind.field_names.end() &&
          !is_left_out(kind, name);
      if (!is_field && !(name == "struct_info" && has_struct_info_beside(kind))) unknown = name;
    }
    refuse("there is no field '" + unknown + "'");
  }

  template <class T>
  static ir::Ref<T> part(FieldPlace place, const Value& value) {
    return ir::detail::narrow<T>(ir::detail::node_from(place, value, T::family, nullptr));
  }

  // A call in a graph: absent arguments are null, and an operator has attributes of its own class.
  NodeRef call(const std::vector<Value>& values) const {
    const auto callee = part<relax::ExprNode>({"Call", "callee"}, values[0]);
    const auto list = [&](size_t i, std::string_view name) -> const Value::List& {
      if (const auto* items = values[i].get<Value::List>()) return *items;
      ir::detail::refuse_field({"Call", name}, "a list", values[i]);
    };
    std::vector<relax::Expr> args;
    for (const Value& arg : list(1, "args"))
      args.push_back(arg.empty() ? relax::Expr() : part<relax::ExprNode>({"Call", "args"}, arg));
    relax::AttributesRef attributes;
    if (!values[2].empty()) attributes = part<relax::AttributesNode>({"Call", "attributes"}, values[2]);
    std::vector<relax::StructInfo> infos;
    for (const Value& info : list(3, "struct_info_args"))
      infos.push_back(part<relax::StructInfoNode>({"Call", "struct_info_args"}, info));
    if (const auto* ref = callee.as<relax::OpRef>()) {
      const NodeClass* wanted = ref->op->attributes ? &ref->op->attributes->defaults()->node_class() : nullptr;
      const NodeClass* given = attributes ? &attributes->node_class() : nullptr;
      if (wanted != given)
        refuse(fmt::format("the operator '{}' has {}, not {}", ref->name, wanted ? wanted->name : "no attributes",
                           given ? given->name : "none"));
    }
    return ir::make<relax::Call>(callee, std::move(args), std::move(attributes), std::move(infos));
  }

  NodeRef op(const Value& name) const {
    const std::string text = ir::detail::string_from({"Op", "name"}, name);
    const relax::Operator* row = onnx::operators_with_nodes().find(text);
    if (!row) refuse("there is no operator '" + text + "'");
    return relax::op_ref(*row);
  }

  NodeRef tensor(const Json& fields) const {
    const ir::DType dtype = ir::detail::dtype_from({"TensorData", "dtype"}, value(at(fields, "dtype"), 0));
    if (dtype.is_handle() || dtype.storage_bits() == 0) refuse("a constant of " + dtype.str());
    const Value dims = value(at(fields, "shape"), 0);
    if (!dims.get<Value::List>()) refuse("'shape' is a list");
    std::vector<int64_t> shape;
    // Zero extents do not make the others harmless: their product is computed in 64 bits elsewhere.
    __int128 bits = dtype.lanes * dtype.storage_bits();
    bool is_empty = false;
    for (const Value& dim : *dims.get<Value::List>()) {
      shape.push_back(ir::detail::integer_from({"TensorData", "shape"}, dim, 0, int64_t{1} << 48));
      is_empty = is_empty || shape.back() == 0;
      bits *= std::max<int64_t>(shape.back(), 1);
      if (bits > __int128{1} << 60) refuse("a constant is too large");
    }
    const Json& data = at(fields, "data");
    if (!data.is_string()) refuse("'data' is text in base 64, not " + kind_of_json(data));
    auto bytes = from_base64(data.get_ref<const std::string&>());
    if (!bytes) refuse("'data' is not in base 64");
    const int64_t size = is_empty ? 0 : static_cast<int64_t>((bits + 7) / 8);
    if (static_cast<int64_t>(bytes->size()) != size)
      refuse(fmt::format("a {} of shape [{}] takes {} bytes, not {}", dtype.str(), fmt::join(shape, ", "), size,
                         bytes->size()));
    if (fields.size() != 3) refuse("a constant has 'dtype', 'shape' and 'data' alone");
    return ir::tensor_data(dtype, std::move(shape), *std::move(bytes));
  }

  // What nodes take for granted and no constructor of theirs asks, because the compiler makes them right.
  void check(const Node& node) const {
    const NodeClass& kind = node.node_class();
    const auto same = [&](size_t a, size_t b, std::string_view what) {
      if (a != b) refuse(fmt::format("{} {}, not {}", b, what, a));
    };
    if (is_kind<tir::For>(kind)) {
      if (static_cast<const tir::For&>(node).kind > tir::ForKind::thread_binding)
        refuse("there is no such kind of loop");
    } else if (is_kind<ir::IterVarNode>(kind)) {
      const auto& n = static_cast<const ir::IterVarNode&>(node);
      if (n.type > ir::IterType::thread_index) refuse("there is no such type of axis");
      if (!n.dom.min != !n.dom.extent) refuse("a domain has both bounds or none");
    } else if (is_kind<ir::BufferNode>(kind)) {
      const auto& n = static_cast<const ir::BufferNode&>(node);
      if (!n.strides.empty()) same(n.strides.size(), n.shape.size(), "strides are taken");
    } else if (is_kind<tir::BufferStore>(kind)) {
      const auto& n = static_cast<const tir::BufferStore&>(node);
      same(n.indices.size(), n.buffer->shape.size(), "indices are taken");
    } else if (is_kind<tir::BufferRegionNode>(kind)) {
      const auto& n = static_cast<const tir::BufferRegionNode&>(node);
      same(n.region.size(), n.buffer->shape.size(), "ranges are taken");
    } else if (is_kind<ir::CommReducerNode>(kind)) {
      const auto& n = static_cast<const ir::CommReducerNode&>(node);
      for (const size_t size : {n.rhs.size(), n.result.size(), n.identity.size()})
        same(size, n.lhs.size(), "values are combined");
    } else if (is_kind<ir::Reduce>(kind)) {
      const auto& n = static_cast<const ir::Reduce&>(node);
      same(n.sources.size(), n.combiner->lhs.size(), "values are combined");
      require_domains(n.axis);
    } else if (is_kind<tir::BlockRealize>(kind)) {
      const auto& n = static_cast<const tir::BlockRealize&>(node);
      same(n.iter_values.size(), n.block->iter_vars.size(), "axes are bound");
    } else if (is_kind<tir::Block>(kind)) {
      require_domains(static_cast<const tir::Block&>(node).iter_vars);
    } else if (is_kind<SavedModule>(kind)) {
      const auto& n = static_cast<const SavedModule&>(node);
      std::unordered_set<std::string> names;
      for (const auto& [name, function] : n.functions)
        if (!names.insert(name).second) refuse("there are two functions '" + name + "'");
    }
  }

  void require_domains(const std::vector<ir::IterVar>& axes) const {
    for (const ir::IterVar& axis : axes)
      if (!axis->dom.min) refuse("the axis '" + axis->var->name + "' has no domain");
  }

  // An operator's call is one that its own rule takes: whoever looks into it counts on that.
  void check_call(const NodeRef& node) const {
    const auto e = ir::detail::narrow<relax::ExprNode>(node);
    const auto& n = static_cast<const relax::Call&>(*node);
    const relax::Operator* row = relax::callee_operator(n);
    if (!row) return;
    const bool any_number = !row->inputs.empty() && row->inputs.back().presence == relax::Input::variadic;
    if (n.args.size() > row->inputs.size() && !any_number)
      refuse(fmt::format("'{}' takes at most {} arguments, not {}", row->name, row->inputs.size(), n.args.size()));
    for (size_t i = 0; i < row->inputs.size(); ++i)
      if (row->inputs[i].presence == relax::Input::required && (i >= n.args.size() || !n.args[i]))
        refuse(fmt::format("'{}' needs its argument '{}'", row->name, row->inputs[i].name));
    if (const auto rule = relax::infer_struct_info(e); !rule.ok()) throw support::DiagnosticError(rule.diagnostics());
    const bool is_program = row == &relax::call_tir_operator || row == &relax::call_tir_inplace_operator;
    if (is_program && n.args.size() > 2 && n.args[2] && !n.args[2].is<relax::ShapeExpr>())
      refuse("the scalars of a call_tir are a shape");
  }

  // ---- modules ----

  void verify_modules() const {
    std::unordered_map<const Node*, double> unfolded;
    for (const NodeRef& node : nodes_) {
      double size = 1;
      const auto count = [&](const NodeRef& child) {
        const auto found = unfolded.find(child.get());
        size += found == unfolded.end() ? 1 : found->second;
      };
      node->node_class().for_each_child(*node, count);
      if (has_struct_info_beside(node->node_class())) count(static_cast<const relax::ExprNode&>(*node).struct_info);
      unfolded[node.get()] = size;
      const auto module = node_module(node);
      if (!module) continue;
      if (size > most_unfolded) refuse_json("a module uses its parts too often: written out, it has over 1e8 nodes");
      if (support::Diagnostics found = verify_module(*module, {}); !found.empty())
        throw support::DiagnosticError(found);
    }
  }

  std::string where_;
  bool bytes_fit_ = false;  // where strings are read that need be no UTF-8
  std::vector<NodeRef> nodes_;
};

// What a message quotes may be no UTF-8.
void make_readable(std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = support::utf8_length(text, at);
    if (length == 0) text[at] = '?';
    at += std::max<size_t>(length, 1);
  }
}

}  // namespace

support::Result<Value> load_json(std::string_view text) {
  try {
    return JsonReader().read(text);
  } catch (support::DiagnosticError& error) {
    for (support::Diagnostic& d : error.diagnostics) {
      make_readable(d.message);
      for (support::Note& note : d.notes) make_readable(note.message);
    }
    return error.diagnostics;
  }
}

}  // namespace lathe::driver::saved
