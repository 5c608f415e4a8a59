#include "tir/script/root.h"

#include "ir/visit.h"

namespace lathe::tir {
namespace {

bool has_block(const Stmt& s) {
  bool found = false;
  ir::pre_order(s, [&](const NodeRef& n) {
    found = found || n.is<BlockRealize>();
    return !found && n->node_class().family == StmtNode::family;
  });
  return found;
}

bool is_root(const BlockRealize& r) { return r.block->name == "root" && r.iter_values.empty(); }

bool has_only_allocations(const BlockRealize& r) {
  const Block& b = *r.block;
  return is_root(r) && b.iter_vars.empty() && b.reads.empty() && b.writes.empty() && !b.init &&
         b.match_buffers.empty() && b.annotations.empty() && r.predicate.is<IntImm>() && is_int(r.predicate, 1);
}

}  // namespace

bool needs_root(const Stmt& body) {
  if (const auto* realize = body.as<BlockRealize>(); realize && is_root(*realize)) return false;
  return has_block(body);
}

RootForm root_form(const PrimFunc& function) {
  if (const auto* realize = root_of(function); realize && has_only_allocations(*realize)) {
    const Block& root = *realize->block;
    if (!root.alloc_buffers.empty() || needs_root(root.body)) return RootForm::implied;
  }
  return needs_root(function.body) ? RootForm::as_written : RootForm::plain;
}

}  // namespace lathe::tir
