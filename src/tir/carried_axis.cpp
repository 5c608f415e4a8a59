#include "tir/carried_axis.h"

#include "support/mutation.h"
#include "tir/compact.h"
#include "tir/plain_nest.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(carried_axis_keeps_places, "graph_test",
            "a program with an axis moved to the end has it in front of the last one");

namespace {

class AxisLast : public TirRewriter {
 public:
  AxisLast(size_t rank, size_t axis) : rank_(rank), axis_(axis) {}

  bool is_possible() const { return possible_; }

  Buffer moved(const Buffer& buffer) {
    if (buffer->shape.size() != rank_) return buffer;
    Buffer& last = moved_[buffer.get()];
    if (!last) {
      possible_ = possible_ && is_compact(*buffer);
      last = with(*buffer, [&](BufferNode& copy) { copy.shape = turned(buffer->shape); });
    }
    return last;
  }

 protected:
  Stmt visit_stmt(Stmt s) override {
    if (s.is<For>()) return nest(s);
    if (const auto* realize = s.as<BlockRealize>()) {  // the root
      possible_ = possible_ && realize->block->iter_vars.empty() && !carried_;
      return with(*realize, [&](BlockRealize& copy) { copy.block = with_parts(*realize->block); });
    }
    if (const auto* store = s.as<BufferStore>(); store && store->buffer->shape.size() == rank_) {
      require_carried(store->indices, store->predicate);
      return with(*store, [&](BufferStore& copy) {
        copy.buffer = moved(store->buffer);
        copy.value = (*this)(store->value);
        for (Expr& index : copy.indices) index = (*this)(index);
        copy.indices = turned(std::move(copy.indices));
      });
    }
    possible_ = possible_ && (s.is<SeqStmt>() || s.is<BufferStore>());
    return children(std::move(s));
  }

  Expr visit_expr(Expr e) override {
    const auto* load = e.as<BufferLoad>();
    if (!load || load->buffer->shape.size() != rank_) return children(std::move(e));
    require_carried(load->indices, load->predicate);
    return with(*load, [&](BufferLoad& copy) {
      copy.buffer = moved(load->buffer);
      for (Expr& index : copy.indices) index = (*this)(index);
      copy.indices = turned(std::move(copy.indices));
    });
  }

  NodeRef visit_other(NodeRef node) override {
    const auto* region = node.as<BufferRegionNode>();
    if (!region || region->buffer->shape.size() != rank_) return descend(std::move(node));
    return with(*region, [&](BufferRegionNode& copy) {
      copy.buffer = moved(region->buffer);
      copy.region = turned(region->region);
    });
  }

 private:
  // One thing an axis, and what follows (loops of a reduction), with the axis behind the others.
  template <class T>
  std::vector<T> turned(std::vector<T> axes) const {
    const auto begin = axes.begin() + static_cast<ptrdiff_t>(axis_), end = axes.begin() + static_cast<ptrdiff_t>(rank_);
    std::rotate(begin, begin + 1, support::flip(carried_axis_keeps_places) ? end - 1 : end);
    return axes;
  }

  void require_carried(const std::vector<Expr>& indices, const Expr& predicate) {
    possible_ = possible_ && carried_ && !predicate && indices.size() == rank_ && indices[axis_].get() == carried_;
  }

  Ref<Block> with_parts(const Block& block) {
    return with(block, [&](Block& copy) {
      for (Buffer& buffer : copy.alloc_buffers) buffer = moved(buffer);
      for (BufferRegion& region : copy.reads) region = (*this)(region);
      for (BufferRegion& region : copy.writes) region = (*this)(region);
      if (copy.init) copy.init = (*this)(copy.init);
      copy.body = (*this)(copy.body);
    });
  }

  // Loops in one another around a block whose variables they are, in order.
  Stmt nest(const Stmt& outermost) {
    auto nest = as_plain_nest(outermost);
    possible_ = possible_ && nest && !carried_ && nest->realize->iter_values.size() == nest->loops.size() &&
                nest->loops.size() >= rank_;
    for (size_t i = 0; possible_ && i < nest->loops.size(); ++i)
      possible_ = nest->realize->iter_values[i].get() == nest->loops[i]->loop_var.get() &&
                  (nest->realize->block->iter_vars[i]->type == IterType::spatial) == (i < rank_);
    if (!possible_) return outermost;
    carried_ = nest->realize->block->iter_vars[axis_]->var.get();
    const Ref<Block> block = with_parts(*nest->realize->block);
    carried_ = nullptr;
    nest->realize = with(*nest->realize, [&](BlockRealize& copy) {
      copy.iter_values = turned(copy.iter_values);
      copy.block = with(*block, [&](Block& turned_block) { turned_block.iter_vars = turned(block->iter_vars); });
    });
    nest->loops = turned(std::move(nest->loops));
    return to_stmt(*nest);
  }

  const size_t rank_, axis_;
  bool possible_ = true;
  const Node* carried_ = nullptr;  // the variable, of the block that is visited, that indexes the axis
  std::unordered_map<const Node*, Buffer> moved_;
};

}  // namespace

Function with_axis_last(const PrimFunc& function, size_t rank, size_t axis) {
  AxisLast rewriter(rank, axis);
  const Function result = with(function, [&](PrimFunc& copy) {
    for (auto& [param, buffer] : copy.buffer_map) buffer = rewriter.moved(buffer);
    copy.body = rewriter(function.body);
  });
  return rewriter.is_possible() ? result : Function();
}

}  // namespace lathe::tir
