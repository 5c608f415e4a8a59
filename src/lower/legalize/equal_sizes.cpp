#include "lower/legalize/equal_sizes.h"

#include "ir/build.h"
#include "ir/structural.h"
#include "ir/visit.h"
#include "lower/legalize/rewrite_kernel.h"
#include "lower/legalize/versions.h"
#include "support/mutation.h"
#include "tir/scalars.h"

namespace lathe::lower {

LATHE_FAULT(equal_sizes_are_not_compared, "lower_test", "a kernel for equal sizes is called whatever the sizes are");

namespace {

using Extents = std::unordered_map<const ir::Node*, ir::Expr>;

// What each block's variables run over.
Extents extents_of_variables(const tir::PrimFunc& kernel) {
  Extents extents;
  ir::post_order(kernel.body, [&](const ir::NodeRef& node) {
    const auto* block = node.as<tir::Block>();
    for (size_t i = 0; block && i < block->iter_vars.size(); ++i)
      extents.emplace(block->iter_vars[i]->var.get(), block->iter_vars[i]->dom.extent);
  });
  return extents;
}

// A size that is one or `other`, where a choice says so: an extent `other if size == 1 else size`, or an index
// `0 if size == 1 else i` over `other` elements.
struct OneOr {
  ir::Expr size, other;
};

std::optional<OneOr> one_or(const ir::NodeRef& node, const Extents& extents) {
  const auto* choice = node.as<ir::Select>();
  const auto* asked = choice ? choice->condition.as<ir::EQ>() : nullptr;
  if (!asked || !ir::is_int(asked->b, 1)) return std::nullopt;
  if (ir::structural_equal(choice->false_value, asked->a)) return OneOr{asked->a, choice->true_value};
  const auto extent = extents.find(choice->false_value.get());
  if (!ir::is_int(choice->true_value, 0) || extent == extents.end()) return std::nullopt;
  return OneOr{asked->a, extent->second};
}

// The kernel with sizes in the place of others, without the choices that need not be made then.
class Substitution : public KernelRewriter {
 public:
  Substitution(const ir::VarMap& sizes, const Extents& extents) : sizes_(sizes), extents_(extents) {}

 protected:
  ir::NodeRef visit(ir::NodeRef node) override {
    if (const auto* var = node.as<ir::VarNode>()) {
      const auto size = sizes_.find(ir::Var(var));
      return size == sizes_.end() ? node : ir::NodeRef(size->second);
    }
    return KernelRewriter::visit(std::move(node));
  }

  ir::NodeRef changed(ir::NodeRef node) override {
    const auto* choice = node.as<ir::Select>();
    if (!choice) return node;
    const auto* asked = choice->condition.as<ir::EQ>();
    if (asked && ir::as_int(asked->a) && ir::as_int(asked->b))
      return ir::as_int(asked->a) == ir::as_int(asked->b) ? choice->true_value : choice->false_value;
    if (ir::structural_equal(choice->true_value, choice->false_value)) return choice->false_value;
    const auto found = one_or(node, extents_);
    // The variable is 0 alone where there is one element.
    return found && ir::structural_equal(found->size, (*this)(found->other)) ? choice->false_value : node;
  }

 private:
  const ir::VarMap& sizes_;
  const Extents& extents_;
};

// Where the expression stands among the kernel's scalars; -1 where it is none.
int64_t position_of(const tir::PrimFunc& kernel, const ir::Expr& e) {
  int64_t position = 0;
  for (const ir::Var& param : kernel.params) {
    if (kernel.buffer_of(param)) continue;
    if (param.get() == e.get()) return position;
    ++position;
  }
  return -1;
}

// A scalar of the kernel that may be one, and the constant or the earlier scalar that it is otherwise.
std::optional<std::pair<ir::Var, ir::Expr>> next_equal(const tir::PrimFunc& kernel, const Extents& extents) {
  std::optional<std::pair<ir::Var, ir::Expr>> next;
  const auto look = [&](const ir::NodeRef& node) {
    const auto found = next ? std::nullopt : one_or(node, extents);
    if (!found || ir::structural_equal(found->size, found->other)) return;
    const int64_t size = position_of(kernel, found->size), other = position_of(kernel, found->other);
    if ((size < 0 && !ir::as_int(found->size)) || (other < 0 && !ir::as_int(found->other))) return;
    const bool is_later = size > other;
    if (size >= 0 || other >= 0)
      next.emplace(ir::cast<ir::VarNode>(is_later ? found->size : found->other), is_later ? found->other : found->size);
  };
  for (const auto& [param, buffer] : kernel.buffer_map) ir::post_order(buffer, look);
  ir::post_order(kernel.body, look);
  return next;
}

// A kernel for equal sizes, and which scalars must be so.
struct Equal {
  tir::Function kernel;
  std::vector<std::pair<ir::Var, ir::Expr>> sizes;
};

Equal with_equal_sizes(tir::Function kernel) {
  Equal result{std::move(kernel), {}};
  // A choice may stand in another: each that is gone may show the next.
  for (;;) {
    const Extents extents = extents_of_variables(*result.kernel);
    const auto next = next_equal(*result.kernel, extents);
    if (!next) return result;
    const ir::VarMap sizes{*next};
    result.sizes.push_back(*next);
    result.kernel = ir::with(*result.kernel, [&](tir::PrimFunc& copy) { std::erase(copy.params, next->first); });
    result.kernel = Substitution(sizes, extents)(result.kernel);
  }
}

Version version_of(const std::string& name, const tir::PrimFunc& kernel, const Equal& equal) {
  Version version{name, {}, {}, {}};
  for (const auto& [size, other] : equal.sizes) {
    if (support::flip(equal_sizes_are_not_compared)) break;
    const int64_t position = position_of(kernel, size);
    if (const auto known = ir::as_int(other))
      version.sizes.emplace_back(position, *known);
    else
      version.equal.emplace_back(position, position_of(kernel, other));
  }
  for (const ir::Var& scalar : tir::scalar_params(*equal.kernel))
    version.scalars.push_back(position_of(kernel, scalar));
  return version;
}

}  // namespace

support::Result<ir::IRModule> equal_sizes(ir::IRModule module, const ir::PassContext&) {
  const std::set<std::string> versions = versions_in(module);
  std::vector<std::pair<std::string, tir::Function>> kernels;
  for (const auto& [name, function] : module)
    if (const auto* kernel = function.as<tir::PrimFunc>(); kernel && !versions.count(name))
      kernels.emplace_back(name, tir::Function(kernel));
  for (const auto& [name, kernel] : kernels) {
    const Equal equal = with_equal_sizes(kernel);
    if (equal.sizes.empty()) continue;
    const std::string beside = module.unique_name(name + "_equal");
    module.set(beside, ir::with(*equal.kernel, [&](tir::PrimFunc& copy) {
                 copy.attrs.erase("versions");
                 copy.attrs.set("global_symbol", beside);
               }));
    std::vector<Version> all = versions_of(*kernel);
    all.push_back(version_of(beside, *kernel, equal));
    module.set(name, ir::with(*kernel, [&](tir::PrimFunc& copy) { copy.attrs.set("versions", to_value(all)); }));
  }
  return module;
}

}  // namespace lathe::lower
