// reuse_outputs: intermediate values lie in the output that takes their place, where they are large and each element of
// the output is computed from the same element of them, after all other uses of it.
#include "arith/affine.h"
#include "arith/analyzer.h"
#include "ir/structural.h"
#include "support/mutation.h"
#include "tir/analysis/buffer_accesses.h"
#include "tir/compact.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(reuse_outputs_any_order, "tir_test",
            "an output takes the place of values that are read after it was written");

namespace {

using arith::Analyzer;

// What one iteration uses of a buffer of its own stays in the nearest cache up to about so many bytes. There it is
// used again in the next one, where the output never is.
constexpr int64_t worthwhile_bytes = 16 * 1024;

struct Box {
  std::vector<Interval> sides;
};

// Whether the values of `buffer` may lie in the memory of `output`, every write of which takes the place of one.
class Replacement {
 public:
  Replacement(const std::vector<BufferAccess>& all, const Buffer& buffer, const Buffer& output)
      : buffer_(buffer), output_(output) {
    for (const BufferAccess& access : all) {
      if (access.buffer->data == output->data) writes_.push_back(&access);
      if (access.buffer->data == buffer->data) uses_.push_back(&access);
    }
  }

  bool is_right() {
    if (writes_.empty() || uses_.empty() || !split_uses()) return false;
    level_ = writes_[0]->loops.size() - writes_[0]->lanes;
    for (const auto* list : {&writes_, &others_})
      for (const BufferAccess* access : *list) level_ = std::min(level_, shared_loops(*writes_[0], *access));
    for (size_t k = 0; k < level_; ++k) {
      const For& loop = *writes_[0]->loops[k];
      known_.bind(loop.loop_var, Range{loop.min, loop.extent});
    }
    return others_come_first() && each_element_once() && iterations_are_apart();
  }

 private:
  static bool is_plain(const BufferAccess& access) {
    return access.part.empty() && access.block &&
           std::all_of(access.indices.begin(), access.indices.end(),
                       [](const Expr& index) { return index->dtype == DType::int64(); });
  }

  // The reads in the blocks that write the output, each of the element that is written; all others.
  bool split_uses() {
    size_t own = 0;
    for (const BufferAccess* write : writes_) {
      const auto* store = write->block ? write->block->body.as<BufferStore>() : nullptr;
      if (!write->is_write || write->conditional || !write->branches.empty() || !is_plain(*write) || !store ||
          store->predicate || write->block->init || write->buffer != output_)
        return false;
      size_t reads = 0;
      for (const BufferAccess* use : uses_) {
        if (use->block != write->block) continue;
        if (use->is_write || !is_plain(*use) || !same_indices(*use, *write)) return false;
        ++reads;
      }
      if (reads == 0) return false;
      own += reads;
    }
    for (const BufferAccess* use : uses_) {
      const bool is_own = std::any_of(writes_.begin(), writes_.end(),
                                      [&](const BufferAccess* write) { return write->block == use->block; });
      if (is_own) continue;
      if (!is_plain(*use) || use->buffer != buffer_) return false;
      others_.push_back(use);
    }
    return own + others_.size() == uses_.size();
  }

  static bool same_indices(const BufferAccess& a, const BufferAccess& b) {
    for (size_t d = 0; d < a.indices.size(); ++d)
      if (!structural_equal(a.indices[d], b.indices[d])) return false;
    return true;
  }

  bool others_come_first() const {
    if (support::flip(reuse_outputs_any_order)) return true;
    for (const BufferAccess* other : others_)
      for (const BufferAccess* write : writes_)
        if (shared_loops(*other, *write) != level_ || other->order >= write->order) return false;
    return true;
  }

  std::optional<Box> box_of(const BufferAccess& access) {
    const Domains domains = domains_of(access.loops, level_);
    Box box;
    for (const Expr& index : access.indices) {
      const auto side = interval_of(index, domains);
      if (!side) return std::nullopt;
      box.sides.push_back({known_.simplify(side->min), known_.simplify(side->max)});
    }
    return box;
  }

  bool are_apart(const Box& a, const Box& b) {
    for (size_t d = 0; d < a.sides.size(); ++d)
      if (known_.can_prove(lt(a.sides[d].max, b.sides[d].min)) || known_.can_prove(lt(b.sides[d].max, a.sides[d].min)))
        return true;
    return false;
  }

  // Computing an element of the output twice would take the first result for the value between.
  bool each_element_once() {
    std::vector<Box> boxes;
    for (const BufferAccess* write : writes_) {
      arith::Domain domain;
      for (const Ref<For>& loop : write->loops) domain.emplace_back(loop->loop_var, Range{loop->min, loop->extent});
      Analyzer fresh;
      const auto map = arith::detect_affine(write->indices, domain, Expr(), fresh);
      auto box = box_of(*write);
      if (!map.ok() || !map->injective || !box) return false;
      for (const Box& before : boxes)
        if (!are_apart(before, *box)) return false;
      boxes.push_back(std::move(*box));
    }
    hull_ = boxes[0];
    for (const Box& box : boxes)
      for (size_t d = 0; d < box.sides.size(); ++d) {
        Interval& side = hull_.sides[d];
        if (!known_.can_prove(le(side.min, box.sides[d].min))) {
          if (!known_.can_prove(le(box.sides[d].min, side.min))) return false;
          side.min = box.sides[d].min;
        }
        if (!known_.can_prove(ge(side.max, box.sides[d].max))) {
          if (!known_.can_prove(ge(box.sides[d].max, side.max))) return false;
          side.max = box.sides[d].max;
        }
      }
    return true;
  }

  // An iteration of the loops around all uses touches a box that no other one touches, and a large one.
  bool iterations_are_apart() {
    for (const BufferAccess* other : others_) {
      const auto box = box_of(*other);
      if (!box) return false;
      for (size_t d = 0; d < box->sides.size(); ++d)
        if (!known_.can_prove(le(hull_.sides[d].min, box->sides[d].min)) ||
            !known_.can_prove(ge(hull_.sides[d].max, box->sides[d].max)))
          return false;
    }
    arith::Domain domain;
    for (size_t k = 0; k < level_; ++k) {
      const For& loop = *writes_[0]->loops[k];
      domain.emplace_back(loop.loop_var, Range{loop.min, loop.extent});
    }
    std::vector<Expr> indices;
    int64_t bytes = buffer_->dtype.bits / 8;
    for (const Interval& side : hull_.sides) {
      const Expr extent = known_.simplify(side.max - side.min + 1);
      const auto length = as_int(extent);
      if (!length) return false;
      bytes *= *length;
      const Var inside = var("inside");
      domain.emplace_back(inside, Range{int64(0), extent});
      indices.push_back(side.min + inside);
    }
    if (bytes < worthwhile_bytes) return false;
    Analyzer fresh;
    const auto map = arith::detect_affine(indices, domain, Expr(), fresh);
    return map.ok() && map->injective;
  }

  const Buffer& buffer_;
  const Buffer& output_;
  std::vector<const BufferAccess*> writes_, uses_, others_;
  size_t level_ = 0;  // loops around all uses
  Box hull_;          // what one iteration of these loops writes
  Analyzer known_;
};

class Renaming : public Rewriter {
 public:
  Renaming(const Buffer& from, const Buffer& to) : from_(from), to_(to) {}

 protected:
  NodeRef visit(NodeRef node) override {
    if (node == from_) return to_;
    return descend(std::move(node));
  }

 private:
  const Buffer &from_, &to_;
};

bool same_type(const BufferNode& a, const BufferNode& b) {
  if (a.dtype != b.dtype || a.scope != b.scope || a.shape.size() != b.shape.size()) return false;
  for (const BufferNode* buffer : {&a, &b})
    if (!is_compact(*buffer)) return false;
  for (size_t d = 0; d < a.shape.size(); ++d)
    if (!structural_equal(a.shape[d], b.shape[d])) return false;
  return true;
}

Function reused(const Function& f) {
  const auto* realize = f->body.as<BlockRealize>();
  // Where the output may be an operand's memory (lower), that is written earlier than was thought.
  if (!realize || f->attrs.find("inplace")) return f;
  Ref<Block> root = realize->block;
  std::unordered_set<const BufferNode*> opaque;
  std::vector<BufferAccess> all;
  for (const auto& [parameter, output] : f->buffer_map)
    for (const Buffer& buffer : root->alloc_buffers) {
      if (!same_type(*buffer, *output)) continue;
      if (all.empty()) all = buffer_accesses(root->body, &opaque);
      if (opaque.count(buffer.get()) || opaque.count(output.get())) continue;
      if (!Replacement(all, buffer, output).is_right()) continue;
      root = with(*root, [&](Block& copy) {
        std::erase(copy.alloc_buffers, buffer);
        copy.body = Renaming(buffer, output)(copy.body);
      });
      all.clear();
      break;
    }
  if (root == realize->block) return f;
  return with(
      *f, [&](PrimFunc& copy) { copy.body = with(*realize, [&](BlockRealize& changed) { changed.block = root; }); });
}

}  // namespace

Result<IRModule> reuse_outputs(IRModule module, const PassContext&) {
  return on_each_function(std::move(module), [](const Function& f) { return reused(f); });
}

}  // namespace lathe::tir
