#include "lower/legalize/name_extents.h"

#include "arith/analyzer.h"
#include "graph/rewrite_bindings.h"
#include "ir/build.h"
#include "ir/structural.h"
#include "ir/visit.h"
#include "lower/legalize/rewrite_kernel.h"
#include "lower/legalize/versions.h"
#include "relax/call_tir.h"
#include "relax/infer.h"
#include "support/mutation.h"
#include "tir/stmt.h"

namespace lathe::lower {

LATHE_FAULT(name_extents_by_the_first, "lower_test", "a kernel's calls compute all of its named extents as the first");

namespace {

// A scalar of the kernel, and what of its former scalars it stands for.
struct Named {
  ir::Expr extent;
  ir::Var name;
};

// What an extent is without the constants that are added to it.
ir::Expr without_constants(ir::Expr extent) {
  for (;;) {
    if (const auto* sum = extent.as<ir::Add>(); sum && ir::as_int(sum->b))
      extent = sum->a;
    else if (const auto* difference = extent.as<ir::Sub>(); difference && ir::as_int(difference->b))
      extent = difference->a;
    else
      return extent;
  }
}

// The extents of all buffers of the kernel.
std::vector<ir::Expr> extents_of(const tir::PrimFunc& kernel) {
  std::vector<ir::Expr> all;
  const auto add = [&](const ir::Buffer& buffer) { all.insert(all.end(), buffer->shape.begin(), buffer->shape.end()); };
  for (const auto& [param, buffer] : kernel.buffer_map) add(buffer);
  ir::post_order(kernel.body, [&](const ir::NodeRef& node) {
    const auto* block = node.as<tir::Block>();
    for (size_t i = 0; block && i < block->alloc_buffers.size(); ++i) add(block->alloc_buffers[i]);
  });
  return all;
}

std::vector<Named> names_for(const tir::PrimFunc& kernel) {
  std::vector<Named> names;
  arith::Analyzer analyzer;
  for (const ir::Expr& whole : extents_of(kernel)) {
    const ir::Expr extent = without_constants(whole);
    if (ir::as_int(extent) || extent.is<ir::VarNode>() || extent->dtype != ir::DType::int64()) continue;
    const auto is_it = [&](const Named& each) { return ir::structural_equal(each.extent, extent); };
    if (std::any_of(names.begin(), names.end(), is_it)) continue;
    const bool is_size = extent == whole || analyzer.can_prove(extent >= 0);
    const std::string name = "extent" + (names.empty() ? "" : "_" + std::to_string(names.size()));
    names.push_back({extent, is_size ? ir::size_var(name) : ir::var(name)});
  }
  return names;
}

// Names in the place of what they stand for, also in the shapes of buffers. One that is part of another is named alone:
// the other is made of it then.
class Renaming : public KernelRewriter {
 public:
  explicit Renaming(const std::vector<Named>& names) : names_(names) {}

 protected:
  ir::NodeRef changed(ir::NodeRef node) override {
    for (const Named& each : names_)
      if (&node->node_class() == &each.extent->node_class() && ir::structural_equal(node, each.extent))
        return each.name;
    return node;
  }

 private:
  const std::vector<Named>& names_;
};

using Variables = std::unordered_set<const ir::Node*>;

Variables used_in(const tir::PrimFunc& kernel) {
  Variables used;
  const auto note = [&](const ir::NodeRef& node) {
    if (node.is<ir::VarNode>()) used.insert(node.get());
  };
  for (const auto& [param, buffer] : kernel.buffer_map) ir::post_order(buffer, note);
  ir::post_order(kernel.body, note);
  return used;
}

struct Renamed {
  tir::Function kernel;
  std::vector<ir::Var> before;    // its scalars as they were
  std::vector<ir::Expr> scalars;  // those that it has now, of those it had
};

// The kernel with names for those extents that nothing else of it is computed from.
std::optional<Renamed> renamed(const tir::Function& kernel) {
  std::vector<Named> names = names_for(*kernel);
  while (!names.empty()) {
    const tir::Function result = Renaming(names)(kernel);
    const Variables used = used_in(*result);
    const auto is_used = [&](const ir::Var& v) { return used.count(v.get()) > 0; };
    const size_t count = names.size();
    std::erase_if(names, [&](const Named& each) {
      const std::vector<ir::Var> parts = ir::free_vars(each.extent);
      return !is_used(each.name) || std::any_of(parts.begin(), parts.end(), is_used);
    });
    if (names.size() != count) continue;
    Renamed done;
    done.kernel = ir::with(*result, [&](tir::PrimFunc& copy) {
      std::erase_if(copy.params, [&](const ir::Var& param) {
        if (kernel->buffer_of(param)) return false;
        done.before.push_back(param);
        if (is_used(param)) done.scalars.push_back(param);
        return !is_used(param);
      });
      for (const Named& each : names) {
        copy.params.push_back(each.name);
        done.scalars.push_back(support::flip(name_extents_by_the_first) ? names[0].extent : each.extent);
      }
    });
    return done;
  }
  return std::nullopt;
}

}  // namespace

support::Result<ir::IRModule> name_extents(ir::IRModule module, const ir::PassContext&) {
  std::map<std::string, Renamed> changed;
  // A call gives versions some of the scalars that it gives the kernel: both stay as they are.
  const std::set<std::string> versions = versions_in(module);
  for (const auto& [name, function] : module)
    if (const auto* kernel = function.as<tir::PrimFunc>();
        kernel && versions_of(*kernel).empty() && !versions.count(name))
      if (auto with_names = renamed(tir::Function(kernel))) changed.emplace(name, *std::move(with_names));
  if (changed.empty()) return module;
  for (const auto& [name, renamed] : changed) module.set(name, renamed.kernel);
  return graph::rewrite_functions(
      std::move(module),
      [&](graph::Emitter&, const relax::Var&, const relax::Expr& value) -> support::Result<relax::Expr> {
        const auto call = relax::as_call_tir(value);
        const auto kernel = call ? changed.find(call->function) : changed.end();
        if (kernel == changed.end()) return relax::Expr();
        const Renamed& renamed = kernel->second;
        ir::VarMap given;
        for (size_t i = 0; i < renamed.before.size(); ++i) given[renamed.before[i]] = call->scalars.at(i);
        std::vector<ir::Expr> scalars;
        for (const ir::Expr& each : renamed.scalars) scalars.push_back(relax::simplified(ir::substitute(each, given)));
        return relax::Expr(ir::with(*value.as<relax::Call>(), [&](relax::Call& copy) {
          copy.args.resize(2);
          copy.args.push_back(ir::make<relax::ShapeExpr>(std::move(scalars)));
        }));
      });
}

}  // namespace lathe::lower
