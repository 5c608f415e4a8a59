#include "tir/row_strip.h"

#include "arith/analyzer.h"
#include "support/mutation.h"
#include "tir/analysis/regions.h"
#include "tir/analysis/zero_border.h"
#include "tir/compact.h"
#include "tir/plain_nest.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(row_strip_forgets_where_it_begins, "lower_test", "strips are computed from the first rows of their inputs");
LATHE_FAULT(row_strip_drops_conditions, "lower_test", "strips have no borders");

namespace {

void bind_iters(arith::Analyzer& analyzer, const Block& block) {
  for (const IterVar& iter : block.iter_vars) analyzer.bind(iter->var, iter->dom);
}

class StripFinder {
 public:
  std::optional<RowStrip> operator()(const PrimFunc& function, RowRange wanted) {
    if (function.params.size() != function.buffer_map.size() || function.buffer_map.empty() || !collect(function.body))
      return std::nullopt;
    needed_[function.buffer_map.back().second.get()] = wanted;
    for (auto nest = nests_.rbegin(); nest != nests_.rend(); ++nest)
      if (!look(*nest)) return std::nullopt;
    RowStrip& strip = found_;
    for (const auto& [param, buffer] : function.buffer_map) {
      const auto rows = needed_.find(buffer.get());
      const bool is_part = rows != needed_.end() && !whole_.count(buffer.get());
      strip.is_row_by_row = strip.is_row_by_row && (is_part || rows == needed_.end());
      strip.params.push_back(is_part ? std::optional(rows->second) : std::nullopt);
      whole_.erase(buffer.get());
      if (!is_part) needed_.erase(buffer.get());
    }
    // What is left was computed here: whole where another buffer's rows do not say which of its rows they need.
    if (!whole_.empty() || !strip.params.back()) return std::nullopt;
    for (const auto& [buffer, rows] : needed_) strip.buffers.emplace(buffer, rows);
    return std::move(strip);
  }

 private:
  bool collect(const Stmt& s) {
    if (const auto* seq = s.as<SeqStmt>())
      return std::all_of(seq->seq.begin(), seq->seq.end(), [&](const Stmt& one) { return collect(one); });
    if (s.is<For>()) {
      auto nest = as_plain_nest(s);
      if (!nest) return false;
      nests_.push_back(*std::move(nest));
      return true;
    }
    const auto* realize = s.as<BlockRealize>();  // the root, or the computation of a scalar
    if (!realize || !realize->block->iter_vars.empty() || !realize->block->match_buffers.empty()) return false;
    if (!std::exchange(in_root_, true)) return collect(realize->block->body);
    const auto* store = realize->block->body.as<BufferStore>();
    if (!store || !store->buffer->shape.empty() || realize->block->init) return false;
    ir::post_order(store->value, [&](const NodeRef& n) {
      if (const auto* load = n.as<BufferLoad>()) whole_.insert(load->buffer.get());
    });
    return true;
  }

  // The rows that a nest computes, and what these need.
  bool look(const PlainNest& nest) {
    const Block& block = *nest.realize->block;
    if (block.writes.size() != 1) return false;
    const BufferNode& written = *block.writes[0]->buffer;
    const auto rows = needed_.find(&written);
    const auto axis = row_axis(written.shape);
    if (rows == needed_.end() || !axis || !is_compact(written) || !computed_.insert(&written).second) return false;
    if (block.writes[0]->region.size() <= *axis) return false;
    const Expr& row = block.writes[0]->region[*axis].min;
    const auto iter = std::find_if(block.iter_vars.begin(), block.iter_vars.end(), [&](const IterVar& one) {
      return one->var.get() == row.get() && one->type == IterType::spatial && is_int(one->dom.min, 0) &&
             is_int(one->dom.extent, *as_int(written.shape[*axis]));
    });
    if (iter == block.iter_vars.end()) return false;
    const auto at = static_cast<size_t>(iter - block.iter_vars.begin());
    const std::vector<Expr>& values = nest.realize->iter_values;
    const auto loop = std::find_if(nest.loops.begin(), nest.loops.end(), [&](const Ref<For>& one) {
      return one->loop_var.get() == values[at].get() && structural_equal(one->extent, (*iter)->dom.extent);
    });
    if (loop == nest.loops.end()) return false;
    for (size_t i = 0; i < values.size(); ++i)
      if (i != at && uses_var(values[i], (*loop)->loop_var)) return false;
    arith::Analyzer analyzer;
    bind_iters(analyzer, block);
    const RowRange own = rows->second;
    analyzer.bind((*iter)->var, Range{int64(own.begin), int64(own.count())});
    if ((block.init && !look(block.init, written, (*iter)->var, *axis, analyzer)) ||
        !look(block.body, written, (*iter)->var, *axis, analyzer))
      return false;
    found_.is_row_by_row = found_.is_row_by_row && std::exchange(other_uses_, 0) == 0;
    found_.iters.emplace(iter->get(), own);
    found_.loops.emplace(loop->get(), own);
    return true;
  }

  bool look(const Stmt& s, const BufferNode& written, const Var& row, size_t axis, arith::Analyzer& analyzer) {
    bool is_by_row = true;
    ir::post_order(s, [&](const NodeRef& n) {
      other_uses_ += n.get() == row.get();
      if (const auto* store = n.as<BufferStore>()) {
        is_by_row = is_by_row && !store->predicate && store->buffer.get() == &written && is_row(*store, row, axis);
      } else if (const auto* load = n.as<BufferLoad>()) {
        is_by_row = is_by_row && !load->predicate &&
                    (load->buffer.get() == &written ? is_row(*load, row, axis) : read(*load, row, analyzer));
      } else {
        is_by_row = is_by_row && (n->node_class().family != StmtNode::family || n.is<SeqStmt>());
      }
    });
    return is_by_row;
  }

  // Whether the index of the rows is just the row.
  template <class Access>
  bool is_row(const Access& access, const Var& row, size_t axis) {
    const bool is_row = access.indices[axis].get() == row.get();
    other_uses_ -= is_row;
    return is_row;
  }

  bool read(const BufferLoad& load, const Var& row, arith::Analyzer& analyzer) {
    const BufferNode& buffer = *load.buffer;
    if (buffer.shape.empty()) return true;
    const auto axis = row_axis(buffer.shape);
    if (!axis || !is_compact(buffer) || !uses_var(load.indices[*axis], row)) {
      whole_.insert(&buffer);
      return !computed_.count(&buffer);
    }
    is_row(load, row, *axis);
    const arith::ConstIntBound bound = analyzer.const_int_bound(load.indices[*axis]);
    // An index beyond the buffer is guarded.
    const RowRange rows{std::max<int64_t>(bound.min_value, 0), bound.max_value < *as_int(buffer.shape[*axis])
                                                                   ? bound.max_value + 1
                                                                   : *as_int(buffer.shape[*axis])};
    if (rows.begin >= rows.end || computed_.count(&buffer)) return false;
    const auto [it, is_new] = needed_.try_emplace(&buffer, rows);
    if (!is_new) it->second = {std::min(it->second.begin, rows.begin), std::max(it->second.end, rows.end)};
    return true;
  }

  bool in_root_ = false;
  int64_t other_uses_ = 0;  // of the row, in the nest that is looked at, than as an index of rows
  std::vector<PlainNest> nests_;
  std::unordered_set<const BufferNode*> computed_;  // by what was looked at so far, which is what comes behind
  std::unordered_set<const BufferNode*> whole_;
  std::unordered_map<const BufferNode*, RowRange> needed_;
  RowStrip found_;
};

class StripCut : public TirRewriter {
 public:
  explicit StripCut(const RowStrip& strip) : strip_(strip) {}

  void cut(Buffer& buffer) {
    const auto rows = strip_.buffers.find(buffer.get());
    if (rows == strip_.buffers.end()) return;
    Buffer& shorter = cut_[buffer.get()];
    if (!shorter)
      shorter =
          with(*buffer, [&](BufferNode& copy) { copy.shape[*row_axis(copy.shape)] = int64(rows->second.count()); });
    buffer = shorter;
  }

 protected:
  Stmt visit_stmt(Stmt s) override {
    if (const auto* block = s.as<Block>()) {
      const auto is_rows = [&](const IterVar& iter) { return strip_.iters.count(iter.get()) > 0; };
      const auto iter = std::find_if(block->iter_vars.begin(), block->iter_vars.end(), is_rows);
      if (iter != block->iter_vars.end()) return computation(*block, *iter);
      s = children(std::move(s));
      return with(*s.as<Block>(), [&](Block& copy) {
        for (Buffer& buffer : copy.alloc_buffers) cut(buffer);
      });
    }
    const auto rows = strip_.loops.find(s.get());
    s = children(std::move(s));
    if (const auto* store = s.as<BufferStore>(); store && analyzer_)
      return with(*store, [&](BufferStore& copy) { move(copy.buffer, copy.indices); });
    if (rows == strip_.loops.end()) return s;
    return with(*s.as<For>(), [&](For& copy) { copy.extent = int64(rows->second.count()); });
  }

  Expr visit_expr(Expr e) override {
    if (const auto* call = e.as<ir::Call>(); call && call->op == &ir::intrinsic::if_then_else && analyzer_) {
      const Expr condition = undecided(call->args[0]);
      if (is_int(condition, 1)) return visit_expr(call->args[1]);
      if (is_int(condition, 0)) return visit_expr(call->args[2]);
      return ir::if_then_else(condition, visit_expr(call->args[1]), visit_expr(call->args[2]));
    }
    e = children(std::move(e));
    const auto* load = e.as<BufferLoad>();
    return !load ? e : with(*load, [&](BufferLoad& copy) { move(copy.buffer, copy.indices); });
  }

 private:
  Stmt computation(const Block& block, const IterVar& row) {
    const RowRange rows = strip_.iters.at(row.get());
    arith::Analyzer analyzer;
    return with(block, [&](Block& copy) {
      for (IterVar& iter : copy.iter_vars)
        if (iter == row) iter = with(*iter, [&](IterVarNode& shorter) { shorter.dom.extent = int64(rows.count()); });
      bind_iters(analyzer, copy);
      analyzer_ = &analyzer;
      const ir::VarMap moved{{row->var, row->var + rows.begin}};
      const auto in_strip = [&](const Stmt& s) {
        return !s ? s : (*this)(rows.begin == 0 ? s : ir::substitute(s, moved));
      };
      move_zero_border(copy);
      copy.init = in_strip(copy.init);
      copy.body = in_strip(copy.body);
      analyzer_ = nullptr;
      Regions regions = infer_regions(copy);
      copy.reads = std::move(regions.reads);
      copy.writes = std::move(regions.writes);
    });
  }

  // Indices of a buffer as those of its strip.
  void move(Buffer& buffer, std::vector<Expr>& indices) {
    const auto rows = strip_.buffers.find(buffer.get());
    if (rows == strip_.buffers.end()) return;
    Expr& index = indices[*row_axis(buffer->shape)];
    if (!support::flip(row_strip_forgets_where_it_begins)) index = index - rows->second.begin;
    index = arith::Analyzer().simplify(index);  // the row's variable stays where it has one value alone
    cut(buffer);
  }

  // A condition without what holds for every instance.
  Expr undecided(const Expr& condition) {
    if (support::flip(row_strip_drops_conditions)) return ir::boolean(true);
    if (const auto* both = condition.as<And>()) return ir::logical_and(undecided(both->a), undecided(both->b));
    return analyzer_->simplify(visit_expr(condition));
  }

  // Of zeros at a tensor's ends, the strip has those in its own rows.
  void move_zero_border(Block& block) const {
    auto read = bordered_read(block);
    if (!read) return;
    const auto rows = strip_.buffers.find(read->load->buffer.get());
    if (rows == strip_.buffers.end()) return;
    const size_t axis = *row_axis(read->load->buffer->shape);
    const int64_t behind = *as_int(read->load->buffer->shape[axis]) - rows->second.end;
    ZeroBorder& border = read->border;
    border.before[axis] = std::clamp<int64_t>(border.before[axis] - rows->second.begin, 0, rows->second.count());
    border.after[axis] =
        std::clamp<int64_t>(border.after[axis] - behind, 0, rows->second.count() - border.before[axis]);
    block.annotations.set(zero_border_key, value_of(border, read->load->buffer->name));
  }

  const RowStrip& strip_;
  arith::Analyzer* analyzer_ = nullptr;  // knows the variables of the block that is rewritten
  std::unordered_map<const Node*, Buffer> cut_;
};

}  // namespace

std::optional<size_t> row_axis(const std::vector<Expr>& shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto extent = as_int(shape[d]);
    if (!extent) return std::nullopt;
    if (*extent != 1) return *extent > 1 ? std::optional(d) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<RowStrip> find_strip(const PrimFunc& function, RowRange wanted) {
  return StripFinder()(function, wanted);
}

Function with_strip(const PrimFunc& function, const RowStrip& strip) {
  StripCut rewriter(strip);
  return with(function, [&](PrimFunc& copy) {
    copy.body = rewriter(function.body);
    for (auto& [param, buffer] : copy.buffer_map) rewriter.cut(buffer);
  });
}

}  // namespace lathe::tir
