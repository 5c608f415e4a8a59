#include "graph/passes.h"

#include "driver/pipeline.h"
#include "driver/report/reproducer.h"
#include "driver/verify_module.h"
#include "ir/visit.h"
#include "nodes.h"
#include "schedule/analysis/out_of_bounds.h"
#include "tir/analysis/flops.h"
#include "tir/analysis/identify_memcpy.h"
#include "tir/analysis/regions.h"
#include "tir/analysis/verify_memory.h"
#include "tir/codes.h"
#include "tir/passes/passes.h"
#include "tir/script/root.h"

namespace lathe::python {
namespace {

tir::Function function_of(nb::handle object) { return node_as<tir::PrimFunc>(object, "a tensor function is expected"); }

tir::Stmt stmt_of(nb::handle object) {
  const ir::NodeRef node = node_of(object);
  if (!node || node->node_class().family != tir::StmtNode::family) throw nb::type_error("a statement is expected");
  return ir::detail::narrow<tir::StmtNode>(node);
}

ir::IRModule run_pass(const std::string& name, const ir::IRModule& module, const std::map<std::string, bool>& config) {
  // Passes count on what the verifier looks at; who puts nodes together by hand may not have kept it. Of the names that
  // are defined twice convert_ssa makes two.
  support::Diagnostics found = driver::verify_module(module, {});
  if (name == "convert_ssa")
    std::erase_if(found, [](const support::Diagnostic& d) { return d.code.name == tir::codes::redefinition.name; });
  if (!found.empty()) raise(found);
  for (const auto& rows : {driver::kernel_rows(), driver::library_rows()})
    for (const ir::PassRow& row : rows) {
      if (row.name != name) continue;
      ir::PassContext context;
      context.cancelled = is_interrupted;
      driver::Reproducer reproducer{.module = module, .arguments = {"opt", "{model}", "--passes=" + name}};
      for (const auto& [option, value] : config) {
        context.config.set(option, value);
        reproducer.arguments.insert(reproducer.arguments.end(), {"--config", option + (value ? "=true" : "=false")});
      }
      return unwrap(driver::reporting(reproducer, [&]() -> support::Result<ir::IRModule> {
        // Passes see loops that run as they are written.
        return row.run(TRY(tir::lower_loop_exits(module, context)), context);
      }));
    }
  throw nb::value_error(("there is no pass '" + name + "'").c_str());
}

ir::IRModule gradient_of(const ir::IRModule& module, const std::string& function,
                         const std::optional<std::vector<std::string>>& parameters, int64_t target, bool replaces) {
  ir::PassContext context;
  context.cancelled = is_interrupted;
  return unwrap(graph::gradient(
      module, {.function = function, .parameters = parameters, .target = target, .replaces = replaces}, context));
}

// What replaces a child when a node is rebuilt: `change(child)`, or the child where that gives None.
nb::object map_children(nb::handle object, const nb::callable& change) {
  ir::NodeRef node = node_of(object);
  if (!node) throw nb::type_error("a node is expected");
  ir::NodeRef shared = node;  // never rebuilt in place: Python holds it
  const auto replaced = [&](ir::NodeRef child) -> ir::NodeRef {
    if (!child || child->node_class().has_identity) return child;
    const nb::object changed = change(node_object(child));
    if (changed.is_none()) return child;
    ir::NodeRef made = node_of(changed);
    if (!made || made->node_class().family != child->node_class().family)
      throw nb::type_error(("a " + std::string(child->node_class().name) + " is replaced by another " +
                            std::string(child->node_class().family) + ", or by None to keep it")
                               .c_str());
    return made;
  };
  try {
    return node_object(checked(node->node_class().map_children(std::move(shared), replaced)));
  } catch (const support::InternalError&) {  // a field that takes one kind of its family alone
    throw nb::type_error(("a field of " + std::string(node->node_class().name) +
                          " takes no other kind of node than it holds, and is given another")
                             .c_str());
  }
}

nb::list children_of(nb::handle object) {
  const ir::NodeRef node = node_of(object);
  if (!node) throw nb::type_error("a node is expected");
  nb::list list;
  node->node_class().for_each_child(*node, [&](const ir::NodeRef& child) {
    if (child) list.append(node_object(child));
  });
  return list;
}

nb::tuple regions_of(nb::handle object) {
  const tir::Regions found = tir::infer_regions(*node_as<tir::Block>(object, "a block is expected"));
  nb::list reads, writes;
  for (const tir::BufferRegion& region : found.reads) reads.append(node_object(region));
  for (const tir::BufferRegion& region : found.writes) writes.append(node_object(region));
  return nb::make_tuple(reads, writes);
}

nb::list access_lca(nb::handle object) {
  nb::list pairs;
  for (const auto& [buffer, place] : tir::buffer_access_lca(*function_of(object)))
    pairs.append(nb::make_tuple(node_object(buffer), node_object(place)));
  return pairs;
}

nb::tuple flops_of(nb::handle object) {
  bool symbolic = false;
  const double flops = tir::estimate_flops(stmt_of(object), &symbolic);
  return nb::make_tuple(flops, symbolic);
}

nb::list copies_in(nb::handle object) {
  nb::list pairs;
  for (const tir::Memcpy& copy : tir::identify_memcpy(stmt_of(object))) {
    nb::list pair;
    pair.append(node_object(copy.source));
    pair.append(node_object(copy.destination));
    pairs.append(pair);
  }
  return pairs;
}

void check_bounds(const ir::IRModule& module) {
  const support::Diagnostics found = schedule::find_out_of_bounds(module);
  if (!found.empty()) raise(found);
}

// What is wrong with a module; raised, or told.
nb::list wrong_with(const ir::IRModule& module, bool throws) {
  const support::Diagnostics found = driver::verify_module(module, {});
  if (throws && !found.empty()) raise(found);
  nb::list list;
  for (const support::Diagnostic& d : found) list.append(nb::cast(d));
  return list;
}

}  // namespace

void bind_passes(nb::module_& m) {
  m.def(
      "tir_passes",
      [] {
        nb::list names;
        for (const ir::PassRow& row : driver::kernel_rows()) names.append(row.name);
        return names;
      },
      "The passes from loops and blocks to kernels, in order.");
  m.def("run_tir_pass", run_pass, nb::arg("name"), nb::arg("module"),
        nb::arg("config") = std::map<std::string, bool>());
  m.def("gradient", gradient_of, nb::arg("module"), nb::arg("function"), nb::arg("parameters").none(),
        nb::arg("target"), nb::arg("replaces"),
        "The module with a function of gradients: beside the function, or in its place with flat results.");
  m.def("map_children", map_children, nb::arg("node"), nb::arg("change"),
        "The node with its children replaced by what change(child) gives; None keeps a child.");
  m.def("children", children_of, nb::arg("node"), "The nodes right below a node, in order.");
  m.def("infer_regions", regions_of, nb::arg("block"), "What an instance of a block reads and writes.");
  m.def(
      "with_root",
      [](nb::handle body, nb::list buffers) {
        const tir::Stmt s = stmt_of(body);
        std::vector<tir::Buffer> allocated;
        for (nb::handle buffer : buffers) allocated.push_back(node_as<ir::BufferNode>(buffer, "a buffer is expected"));
        return node_object(!allocated.empty() || tir::needs_root(s) ? tir::root_block(s, allocated) : s);
      },
      nb::arg("body"), nb::arg("buffers"), "A function's body with the root block that it needs.");
  m.def("buffer_access_lca", access_lca, nb::arg("function"));
  m.def("estimate_flops", flops_of, nb::arg("statement"));
  m.def(
      "find_anchor_block", [](nb::handle f) { return node_object(tir::find_anchor_block(*function_of(f))); },
      nb::arg("function"));
  m.def("verify_memory", [](nb::handle f) { return tir::verify_memory(*function_of(f)); }, nb::arg("function"));
  m.def("identify_memcpy", copies_in, nb::arg("statement"), "[source, destination] of each nest that is a copy.");
  m.def("check_bounds", check_bounds, nb::arg("module"), "Raises what is certainly outside of its buffer.");
  m.def("verify_module", wrong_with, nb::arg("module"), nb::arg("throws"));
}

}  // namespace lathe::python
