#include "tir/first_axis.h"

#include "support/mutation.h"
#include "tir/plain_nest.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(first_axis_reads_the_first, "lower_test",
            "a program for fewer rows reads its first operand's first row only");

namespace {

class RowFinder {
 public:
  explicit RowFinder(int64_t rows) : rows_(rows) {}

  std::optional<RowWise> operator()(const PrimFunc& function) {
    if (function.params.size() != function.buffer_map.size() || !goes_by_rows(function.body)) return std::nullopt;
    for (const BufferNode* buffer : by_row_) {
      if (whole_.count(buffer) || buffer->shape.empty() || !is_int(buffer->shape[0], rows_) ||
          !buffer->strides.empty() || buffer->elem_offset || !buffer->axis_separators.empty())
        return std::nullopt;
      found_.buffers.insert(buffer);
    }
    for (const auto& [param, buffer] : function.buffer_map) found_.params.push_back(by_row_.count(buffer.get()) > 0);
    return std::move(found_);
  }

 private:
  bool goes_by_rows(const Stmt& s) {
    if (const auto* seq = s.as<SeqStmt>())
      return std::all_of(seq->seq.begin(), seq->seq.end(), [&](const Stmt& one) { return goes_by_rows(one); });
    if (s.is<For>()) return nest(s);
    const auto* realize = s.as<BlockRealize>();  // the root, or the computation of a scalar
    if (!realize || !realize->block->iter_vars.empty() || !realize->block->match_buffers.empty()) return false;
    return std::exchange(in_root_, true) ? scalar(*realize->block) : goes_by_rows(realize->block->body);
  }

  // Each piece computes it again.
  bool scalar(const Block& block) {
    const auto* store = block.body.as<BufferStore>();
    if (!store || !store->buffer->shape.empty() || block.init) return false;
    whole_.insert(store->buffer.get());
    return look(store->value);
  }

  // Loops in one another around a block, one of which is its rows and nothing else.
  bool nest(const Stmt& outermost) {
    const auto nest = as_plain_nest(outermost);
    const std::optional<size_t> at = nest ? row_of(*nest->realize->block) : std::nullopt;
    if (!at) return false;
    const std::vector<Expr>& values = nest->realize->iter_values;
    const auto own = std::find_if(nest->loops.begin(), nest->loops.end(),
                                  [&](const Ref<For>& loop) { return loop->loop_var.get() == values[*at].get(); });
    if (own == nest->loops.end() || !is_int((*own)->extent, rows_)) return false;
    for (size_t i = 0; i < values.size(); ++i)
      if (i != *at && uses_var(values[i], (*own)->loop_var)) return false;
    const Block& block = *nest->realize->block;
    row_ = block.iter_vars[*at]->var.get();
    const bool is_by_row =
        (!block.init || look(block.init)) && look(block.body) && look(block.reads) && look(block.writes);
    row_ = nullptr;
    found_.loops.insert(own->get());
    found_.iters.insert(block.iter_vars[*at].get());
    return is_by_row;
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

  // Whether the row is nothing but the first index of what is read and written, and all that is written has it.
  bool look(const NodeRef& root) {
    bool is_by_row = true;
    pre_order(root, [&](const NodeRef& n) {
      if (const auto* store = n.as<BufferStore>()) {
        is_by_row = is_by_row && !store->predicate && access(*store->buffer, store->indices) && look(store->value) &&
                    by_row_.count(store->buffer.get());
        return false;
      }
      if (const auto* load = n.as<BufferLoad>()) {  // a vector's lanes are no rows
        is_by_row = is_by_row && !load->predicate && access(*load->buffer, load->indices);
        return false;
      }
      is_by_row = is_by_row && n.get() != row_ && (n->node_class().family != StmtNode::family || n.is<SeqStmt>());
      return is_by_row;
    });
    return is_by_row;
  }

  bool access(const BufferNode& buffer, const std::vector<Expr>& indices) {
    const bool is_row = row_ && !indices.empty() && indices[0].get() == row_;
    (is_row ? by_row_ : whole_).insert(&buffer);
    return std::all_of(indices.begin() + (is_row ? 1 : 0), indices.end(), [&](const Expr& i) { return look(i); });
  }

  bool look(const std::vector<BufferRegion>& regions) const {
    return std::all_of(regions.begin(), regions.end(), [&](const BufferRegion& region) {
      return !by_row_.count(region->buffer.get()) ||
             (region->region[0].min.get() == row_ && is_int(region->region[0].extent, 1));
    });
  }

  const int64_t rows_;
  bool in_root_ = false;
  const Node* row_ = nullptr;  // the variable of the block that is looked at
  std::unordered_set<const BufferNode*> by_row_, whole_;
  RowWise found_;
};

class RowsCut : public TirRewriter {
 public:
  RowsCut(const RowWise& by_row, int64_t count) : by_row_(by_row), count_(count) {}

  void cut(Buffer& buffer) {
    if (!by_row_.buffers.count(buffer.get())) return;
    Buffer& shorter = cut_[buffer.get()];
    if (!shorter) shorter = with(*buffer, [&](BufferNode& copy) { copy.shape[0] = int64(count_); });
    buffer = shorter;
  }

 protected:
  Stmt visit_stmt(Stmt s) override {
    const bool is_rows = by_row_.loops.count(s.get()) > 0;
    s = children(std::move(s));
    if (const auto* loop = s.as<For>(); loop && is_rows)
      return with(*loop, [&](For& copy) { copy.extent = int64(count_); });
    if (const auto* store = s.as<BufferStore>()) return with(*store, [&](BufferStore& copy) { cut(copy.buffer); });
    if (const auto* block = s.as<Block>())
      return with(*block, [&](Block& copy) {
        for (Buffer& buffer : copy.alloc_buffers) cut(buffer);
      });
    return s;
  }

  Expr visit_expr(Expr e) override {
    e = children(std::move(e));
    const auto* load = e.as<BufferLoad>();
    if (!load) return e;
    return with(*load, [&](BufferLoad& copy) {
      const Buffer whole = copy.buffer;
      cut(copy.buffer);
      if (copy.buffer != whole && support::flip(first_axis_reads_the_first)) copy.indices[0] = int64(0);
    });
  }

  NodeRef visit_other(NodeRef node) override {
    const bool is_row = by_row_.iters.count(node.get()) > 0;
    node = descend(std::move(node));
    if (is_row) return with(*node.as<IterVarNode>(), [&](IterVarNode& copy) { copy.dom.extent = int64(count_); });
    if (const auto* region = node.as<BufferRegionNode>())
      return with(*region, [&](BufferRegionNode& copy) { cut(copy.buffer); });
    return node;
  }

 private:
  const RowWise& by_row_;
  const int64_t count_;
  std::unordered_map<const Node*, Buffer> cut_;
};

}  // namespace

std::optional<RowWise> find_rows(const PrimFunc& function, int64_t rows) { return RowFinder(rows)(function); }

Function with_fewer_rows(const PrimFunc& function, const RowWise& by_row, int64_t count) {
  RowsCut rewriter(by_row, count);
  return with(function, [&](PrimFunc& copy) {
    copy.body = rewriter(function.body);
    for (auto& [param, buffer] : copy.buffer_map) rewriter.cut(buffer);
  });
}

}  // namespace lathe::tir
