#include <bit>
#include <nlohmann/json.hpp>

#include "driver/codes.h"
#include "driver/saved/base64.h"
#include "driver/saved/json.h"
#include "driver/saved/node_kinds.h"
#include "relax/expr.h"
#include "support/utf8.h"
#include "tir/stmt.h"

namespace lathe::driver::saved {

using ir::Node;
using ir::NodeClass;
using ir::NodeRef;
using ir::Value;

bool has_struct_info_beside(const NodeClass& kind) {
  return kind.family == relax::ExprNode::family && &kind != &ir::node_class_of<relax::VarNode>() &&
         &kind != &ir::node_class_of<relax::Constant>() && &kind != &ir::node_class_of<relax::ShapeExpr>() &&
         &kind != &ir::node_class_of<relax::PrimValue>();
}

bool holds_bytes(const NodeClass& kind) { return kind.family == relax::AttributesNode::family; }

bool is_left_out(const NodeClass& kind, std::string_view field) {
  return kind.family == tir::StmtNode::family && field == "id";
}

namespace {

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = support::utf8_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

class JsonWriter {
 public:
  std::string write(const Value& root) {
    ir::detail::each_child_in_value(root, [&](const NodeRef& n) {
      if (n) add(n.get());
    });
    out_ += fmt::format("{{\"format\": \"{}\", \"version\": {},\n\"nodes\": [", format, version);
    for (size_t i = 0; i < order_.size(); ++i) {
      out_ += i == 0 ? "\n" : ",\n";
      node(*order_[i]);
    }
    out_ += "\n],\n\"root\": ";
    value(root, 0);
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  [[noreturn]] static void refuse(std::string message) {
    throw support::DiagnosticError(support::Diagnostic{.code = codes::json_holds, .message = std::move(message)});
  }

  static std::vector<const Node*> children(const Node& n) {
    std::vector<const Node*> found;
    const auto keep = [&](const NodeRef& child) {
      if (child) found.push_back(child.get());
    };
    n.node_class().for_each_child(n, keep);
    if (has_struct_info_beside(n.node_class())) keep(static_cast<const relax::ExprNode&>(n).struct_info);
    return found;
  }

  // Numbers the node after what it holds.
  void add(const Node* root) {
    struct Open {
      const Node* node;
      std::vector<const Node*> children;
      size_t next = 0;
    };
    std::vector<Open> stack;
    const auto open = [&](const Node* n) {
      if (number_.contains(n)) return;
      if (find_saved_kind(saved_kind(n->node_class())) != &n->node_class())
        refuse(fmt::format("a {} cannot be saved: it is no part of programs", n->node_class().name));
      stack.push_back({n, children(*n)});
    };
    open(root);
    while (!stack.empty()) {
      Open& top = stack.back();
      if (top.next < top.children.size()) {
        open(top.children[top.next++]);
        continue;
      }
      if (number_.emplace(top.node, order_.size()).second) order_.push_back(top.node);
      stack.pop_back();
    }
  }

  void node(const Node& n) {
    const NodeClass& kind = n.node_class();
    out_ += "[\"" + saved_kind(kind) + "\", {";
    bytes_fit_ = holds_bytes(kind);
    const char* separator = "";
    const auto key = [&](std::string_view name) {
      out_ += fmt::format("{}\"{}\": ", separator, name);
      separator = ", ";
    };
    if (&kind == &ir::node_class_of<ir::TensorDataNode>()) {
      const auto& tensor = static_cast<const ir::TensorDataNode&>(n);
      key("dtype");
      value(tensor.dtype, 0);
      key("shape");
      value(Value::List(tensor.shape.begin(), tensor.shape.end()), 0);
      key("data");
      out_ += '"' + to_base64(tensor.view()) + '"';
    } else {
      for (size_t i = 0; i < kind.field_names.size(); ++i) {
        if (is_left_out(kind, kind.field_names[i])) continue;
        key(kind.field_names[i]);
        value(field(n, i), 0);
      }
    }
    if (has_struct_info_beside(kind)) {
      key("struct_info");
      value(static_cast<const relax::ExprNode&>(n).struct_info, 0);
    }
    out_ += "}]";
    bytes_fit_ = false;
  }

  static Value field(const Node& n, size_t index) {
    const NodeClass& kind = n.node_class();
    // The domain of an axis may be unknown.
    if (&kind == &ir::node_class_of<ir::IterVarNode>() && kind.field_names[index] == "dom" &&
        !static_cast<const ir::IterVarNode&>(n).dom.min)
      return {};
    return kind.field_value(n, index);
  }

  void value(const Value& v, int nesting) {
    if (nesting > max_nesting) refuse(fmt::format("a value is nested more than {} levels deep", max_nesting));
    if (const auto* x = v.get<bool>()) {
      out_ += *x ? "true" : "false";
    } else if (const auto* x = v.get<int64_t>()) {
      out_ += std::to_string(*x);
    } else if (const auto* x = v.get<double>()) {
      floating(*x);
    } else if (const auto* x = v.get<std::string>()) {
      if (is_utf8(*x))
        string(*x);
      else if (bytes_fit_)
        out_ += "{\"bytes\": \"" + to_base64(*x) + "\"}";
      else
        refuse("a string that is no UTF-8 is saved in operators' attributes alone");
    } else if (const auto* x = v.get<ir::DType>()) {
      out_ += "{\"dtype\": \"" + x->str() + "\"}";
    } else if (const auto* x = v.get<NodeRef>(); x && *x) {
      out_ += fmt::format("{{\"node\": {}}}", number_.at(x->get()));
    } else if (const auto* x = v.get<Value::List>()) {
      out_ += '[';
      for (size_t i = 0; i < x->size(); ++i) {
        if (i != 0) out_ += ", ";
        value((*x)[i], nesting + 1);
      }
      out_ += ']';
    } else if (const auto* x = v.get<Value::Map>()) {
      map(*x, nesting);
    } else {
      out_ += "null";
    }
  }

  void map(const Value::Map& entries, int nesting) {
    out_ += "{\"map\": {";
    const char* separator = "";
    for (const auto& [name, item] : entries) {
      if (!is_utf8(name)) refuse("a key of a dict is no UTF-8");
      out_ += separator;
      string(name);
      out_ += ": ";
      value(item, nesting + 1);
      separator = ", ";
    }
    out_ += "}}";
  }

  void string(const std::string& text) { out_ += nlohmann::json(text).dump(); }

  // The shortest text that is read as the same number; it is told from an integer's.
  void floating(double x) {
    if (!std::isfinite(x)) {
      const std::string name = std::isnan(x) ? fmt::format("{:016x}", std::bit_cast<uint64_t>(x))
                               : x > 0       ? "inf"
                                             : "-inf";
      out_ += "{\"float\": \"" + name + "\"}";
      return;
    }
    const std::string text = fmt::format("{}", x);
    out_ += text;
    if (text.find_first_of(".e") == std::string::npos) out_ += ".0";
  }

  std::string out_;
  bool bytes_fit_ = false;
  std::vector<const Node*> order_;
  std::unordered_map<const Node*, size_t> number_;
};

}  // namespace

support::Result<std::string> save_json(const Value& value) {
  return support::catch_diagnostics([&]() -> support::Result<std::string> { return JsonWriter().write(value); });
}

}  // namespace lathe::driver::saved
