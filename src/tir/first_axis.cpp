#include "tir/first_axis.h"

#include "support/mutation.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(first_axis_reads_the_first, "lower_test",
            "a program for fewer rows reads its first operand's first row only");

namespace {

class RowsCut : public TirRewriter {
 public:
  RowsCut(int64_t rows, int64_t count) : rows_(rows), count_(count) {}

  bool is_possible() const { return possible_; }
  bool has_rows(const Buffer& buffer) const { return by_row_.count(buffer.get()) > 0; }

  // Known of every buffer only when the body has been rewritten.
  Buffer cut(const Buffer& buffer) {
    if (buffer->shape.empty()) possible_ = false;
    Buffer& shorter = cut_[buffer.get()];
    if (!shorter) {
      possible_ = possible_ && is_int(buffer->shape[0], rows_) && buffer->strides.empty() && !buffer->elem_offset &&
                  buffer->axis_separators.empty();
      if (!possible_) return buffer;
      shorter = with(*buffer, [&](BufferNode& copy) { copy.shape[0] = int64(count_); });
    }
    return shorter;
  }

 protected:
  Stmt visit_stmt(Stmt s) override {
    if (s.is<For>()) return nest(s);
    if (const auto* realize = s.as<BlockRealize>()) {  // the root, or the computation of a scalar
      possible_ = possible_ && realize->block->iter_vars.empty() && realize->block->match_buffers.empty() && !row_;
      if (std::exchange(in_root_, true)) return scalar(s, *realize->block);
      return with(*realize, [&](BlockRealize& copy) {
        copy.block = with(*realize->block, [&](Block& block) {
          block.body = (*this)(block.body);
          // What is between is computed row by row, too.
          for (Buffer& buffer : block.alloc_buffers)
            if (!whole_.count(buffer.get())) buffer = cut(buffer);
        });
      });
    }
    if (const auto* store = s.as<BufferStore>()) {
      possible_ = possible_ && !store->predicate && by_row(store->buffer) && is_row(store->indices);
      if (!possible_) return s;
      return with(*store, [&](BufferStore& copy) {
        copy.buffer = cut(store->buffer);
        copy.value = (*this)(store->value);
        for (size_t d = 1; d < copy.indices.size(); ++d) copy.indices[d] = (*this)(copy.indices[d]);
      });
    }
    possible_ = possible_ && s.is<SeqStmt>();
    return children(std::move(s));
  }

  Expr visit_expr(Expr e) override {
    const auto* load = e.as<BufferLoad>();
    if (!load) return children(std::move(e));
    // A vector's lanes are no rows.
    possible_ = possible_ && row_ && !load->predicate;
    if (!possible_) return e;
    if (!is_row(load->indices)) {
      possible_ = !by_row_.count(load->buffer.get());
      whole_.insert(load->buffer.get());
      for (const Expr& index : load->indices) possible_ = possible_ && !uses_var(index, row_);
      return children(std::move(e));
    }
    possible_ = by_row(load->buffer);
    return with(*load, [&](BufferLoad& copy) {
      copy.buffer = cut(load->buffer);
      if (support::flip(first_axis_reads_the_first)) copy.indices[0] = int64(0);
      for (size_t d = 1; d < copy.indices.size(); ++d) copy.indices[d] = (*this)(copy.indices[d]);
    });
  }

  NodeRef visit_other(NodeRef node) override {
    const auto* region = node.as<BufferRegionNode>();
    if (!region || !by_row_.count(region->buffer.get())) return descend(std::move(node));
    possible_ = possible_ && region->region[0].min.get() == row_.get() && is_int(region->region[0].extent, 1);
    return with(*region, [&](BufferRegionNode& copy) { copy.buffer = cut(region->buffer); });
  }

 private:
  bool is_row(const std::vector<Expr>& indices) const {
    if (indices.empty() || indices[0].get() != row_.get()) return false;
    return std::none_of(indices.begin() + 1, indices.end(), [&](const Expr& index) { return uses_var(index, row_); });
  }

  bool by_row(const Buffer& buffer) {
    by_row_.insert(buffer.get());
    return !whole_.count(buffer.get());
  }

  // Each piece computes it again.
  Stmt scalar(const Stmt& s, const Block& block) {
    const auto* store = block.body.as<BufferStore>();
    possible_ = possible_ && store && store->buffer->shape.empty() && !block.init;
    if (!possible_) return s;
    whole_.insert(store->buffer.get());
    post_order(store->value, [&](const NodeRef& n) {
      const auto* load = n.as<BufferLoad>();
      if (!load) return;
      possible_ = possible_ && !by_row_.count(load->buffer.get());
      whole_.insert(load->buffer.get());
    });
    return s;
  }

  // Loops in one another around a block, one of which is its rows and nothing else.
  Stmt nest(const Stmt& outermost) {
    std::vector<Ref<For>> loops;
    Stmt inner = outermost;
    while (const auto* loop = inner.as<For>()) {
      possible_ = possible_ && loop->kind == ForKind::serial && is_int(loop->min, 0);
      loops.emplace_back(loop);
      inner = loop->body;
    }
    const auto* realize = inner.as<BlockRealize>();
    possible_ = possible_ && !row_ && realize && is_int(realize->predicate, 1) &&
                realize->block->match_buffers.empty() && realize->block->alloc_buffers.empty();
    if (!possible_) return outermost;
    const Block& block = *realize->block;
    const std::optional<size_t> at = row_of(block);
    const Node* loop_var = at ? realize->iter_values[*at].get() : nullptr;
    const auto own = std::find_if(loops.begin(), loops.end(),
                                  [&](const Ref<For>& loop) { return loop->loop_var.get() == loop_var; });
    possible_ = at && own != loops.end() && is_int((*own)->extent, rows_);
    for (size_t i = 0; possible_ && i < realize->iter_values.size(); ++i)
      possible_ = i == *at || !uses_var(realize->iter_values[i], (*own)->loop_var);
    if (!possible_) return outermost;
    row_ = block.iter_vars[*at]->var;
    const Ref<Block> shorter = with(block, [&](Block& copy) {
      copy.iter_vars[*at] = with(*copy.iter_vars[*at], [&](IterVarNode& iter) { iter.dom.extent = int64(count_); });
      if (copy.init) copy.init = (*this)(copy.init);
      copy.body = (*this)(copy.body);
      for (BufferRegion& region : copy.reads) region = (*this)(region);
      for (BufferRegion& region : copy.writes) region = (*this)(region);
    });
    possible_ = possible_ && !is_used(*shorter);
    row_ = Var();
    Stmt result = with(*realize, [&](BlockRealize& copy) { copy.block = shorter; });
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
      result = with(**loop, [&](For& copy) {
        copy.body = result;
        if (*loop == *own) copy.extent = int64(count_);
      });
    return result;
  }

  // The number of the block's variable that is the first index of what it writes.
  std::optional<size_t> row_of(const Block& block) const {
    if (block.writes.empty() || block.writes[0]->region.empty()) return std::nullopt;
    const Node* row = block.writes[0]->region[0].min.get();
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      const IterVar& iter = block.iter_vars[i];
      if (iter->var.get() == row && iter->type == IterType::spatial && is_int(iter->dom.min, 0) &&
          is_int(iter->dom.extent, rows_))
        return i;
    }
    return std::nullopt;
  }

  // Whether the row is used as a number, not only to say which row is meant.
  bool is_used(const Block& block) const {
    bool used = false;
    const auto look = [&](const Stmt& s) {
      if (!s) return;
      int64_t mentions = 0, places = 0;
      post_order(s, [&](const NodeRef& n) {
        mentions += n.get() == row_.get();
        if (const auto* load = n.as<BufferLoad>())
          places += !load->indices.empty() && load->indices[0].get() == row_.get();
        if (const auto* store = n.as<BufferStore>())
          places += !store->indices.empty() && store->indices[0].get() == row_.get();
      });
      used = used || mentions != places;
    };
    look(block.init);
    look(block.body);
    return used;
  }

  const int64_t rows_, count_;
  bool possible_ = true, in_root_ = false;
  Var row_;  // of the block that is visited
  std::unordered_set<const Node*> by_row_, whole_;
  std::unordered_map<const Node*, Buffer> cut_;
};

}  // namespace

std::optional<FewerRows> with_fewer_rows(const PrimFunc& function, int64_t rows, int64_t count) {
  RowsCut rewriter(rows, count);
  FewerRows result;
  result.function = with(function, [&](PrimFunc& copy) {
    copy.body = rewriter(function.body);
    for (auto& [param, buffer] : copy.buffer_map) {
      result.has_rows.push_back(rewriter.has_rows(buffer));
      if (result.has_rows.back()) buffer = rewriter.cut(buffer);
    }
  });
  if (!rewriter.is_possible() || function.params.size() != function.buffer_map.size()) return std::nullopt;
  return result;
}

}  // namespace lathe::tir
