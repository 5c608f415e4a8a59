// The kinds of nodes that programs are made of, for what names them: Python's classes, and saved programs.
#pragma once

#include "ir/function.h"

namespace lathe::driver::saved {

// The kinds of both IRs, in the order of the lists they are taken from; operators' attributes are not among them.
const std::vector<const ir::NodeClass*>& node_kinds();

// What a kind is called in saved programs: its family and its name, "expr.Add". Operators' attributes have names too.
std::string saved_kind(const ir::NodeClass& kind);
// The kind of that name, or null.
const ir::NodeClass* find_saved_kind(const std::string& name);

// A module as a node, so that what holds nodes may hold modules: in saved programs only.
struct SavedModule : ir::Node {
  static constexpr std::string_view family = "module";
  using family_type = SavedModule;
  static constexpr std::string_view kind_name = "IRModule";
  std::vector<std::pair<std::string, ir::BaseFunc>> functions;
  ir::Attributes attrs;
  static constexpr auto fields() {
    return std::tuple{ir::field("functions", &SavedModule::functions), ir::field("attrs", &SavedModule::attrs)};
  }
};

ir::NodeRef module_node(const ir::IRModule& module);
// The module that such a node is, or nothing.
std::optional<ir::IRModule> node_module(const ir::NodeRef& node);

}  // namespace lathe::driver::saved
