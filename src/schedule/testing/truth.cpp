#include "schedule/testing/truth.h"

#include "ir/visit.h"
#include "schedule/analysis/access.h"
#include "schedule/analysis/tree.h"

namespace lathe::schedule::testing {

namespace {

struct DependsOnData {};

int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// Runs the loops of a function and tells of every element that is touched.
class Execution {
 public:
  Execution(const PrimFunc& function, Id loop, const Symbols& symbols, bool counts = false)
      : watched_(loop), counts_(counts) {
    for (const Var& v : free_vars(function.body))
      if (const auto it = symbols.find(v->name); it != symbols.end()) values_[v.get()] = it->second;
    for (const auto& [param, buffer] : function.buffer_map)
      for (const Expr& extent : buffer->shape)
        if (const auto* v = extent.as<VarNode>())
          if (const auto it = symbols.find(v->name); it != symbols.end()) values_[v] = it->second;
  }

  bool independent = true;
  int64_t instances = 0;  // of the block that is watched

  void run(const Stmt& s) {
    if (!s || !independent) return;
    if (counts_ && outer_blocks(s).empty()) return;  // only blocks count
    if (const auto* loop = s.as<For>()) {
      const int64_t first = value(loop->min), count = value(loop->extent);
      const bool watched = loop->id == watched_;
      if (watched) begin();
      for (int64_t i = 0; i < count; ++i) {
        values_[loop->loop_var.get()] = first + i;
        if (watched) iteration_ = i;
        run(loop->body);
      }
      if (watched) end();
    } else if (const auto* realize = s.as<BlockRealize>()) {
      if (!value(realize->predicate)) return;
      instances += realize->block->id == watched_;
      bool starts = true;
      for (size_t i = 0; i < realize->iter_values.size(); ++i) {
        const IterVar& iter = realize->block->iter_vars[i];
        if (counts_ && reads_memory(realize->iter_values[i])) continue;
        values_[iter->var.get()] = value(realize->iter_values[i]);
        if (iter->type != IterType::spatial) starts = starts && values_[iter->var.get()] == value(iter->dom.min);
      }
      if (!counts_ && !realize->block->match_buffers.empty()) throw DependsOnData();
      if (starts) run(realize->block->init);
      run(realize->block->body);
    } else if (const auto* sequence = s.as<SeqStmt>()) {
      for (const Stmt& item : sequence->seq) run(item);
    } else if (const auto* store = s.as<BufferStore>()) {
      if (store->predicate || store->value->dtype.is_vector()) throw DependsOnData();
      read(store->value);
      for (const Expr& index : store->indices) read(index);
      touch(store->buffer, store->indices, true);
    } else if (const auto* branch = s.as<IfThenElse>()) {
      run(value(branch->condition) ? branch->then_case : branch->else_case);
    } else if (!is_nop(s)) {
      throw DependsOnData();
    }
  }

 private:
  struct Element {
    int64_t first = -1;    // iteration that touched it
    bool several = false;  // and others did too
    bool written = false;
    int64_t last_writer = -1;
    bool reads_others = false;  // an iteration read what it did not write itself
  };

  void begin() {
    elements_.clear();
    inside_ = true;
  }

  void end() {
    inside_ = false;
    for (const auto& [buffer, elements] : elements_) {
      bool met = false, from_others = false;
      for (const auto& [at, e] : elements) {
        met = met || (e.written && e.several);
        from_others = from_others || e.reads_others;
      }
      if (met) shared_.insert(buffer);
      if (met && from_others) independent = false;
    }
  }

 public:
  // Buffers whose elements several iterations share: these must belong to the loop alone.
  bool shares_with(const PrimFunc& function, const For& loop) const {
    for (const BufferNode* buffer : shared_) {
      for (const auto& [param, outside] : function.buffer_map)
        if (outside.get() == buffer) return true;
      if (mentions(function.body, *buffer) != mentions(loop.body, *buffer)) return true;
    }
    return false;
  }

 private:
  static size_t mentions(const Stmt& s, const BufferNode& buffer) {
    size_t count = 0;
    pre_order(s, [&](const NodeRef& n) {
      if (n->node_class().family == "buffer_region") return false;
      const auto* load = n.as<BufferLoad>();
      const auto* store = n.as<BufferStore>();
      count += (load && load->buffer.get() == &buffer) || (store && store->buffer.get() == &buffer);
      return true;
    });
    return count;
  }

  void touch(const Buffer& buffer, const std::vector<Expr>& indices, bool writes) {
    if (!inside_) return;
    std::vector<int64_t> at;
    for (const Expr& index : indices) at.push_back(value(index));
    Element& e = elements_[buffer.get()][at];
    if (e.first == -1) e.first = iteration_;
    e.several = e.several || e.first != iteration_;
    if (writes) {
      e.written = true;
      e.last_writer = iteration_;
    } else if (e.last_writer != iteration_) {
      e.reads_others = true;
    }
  }

  void read(const Expr& e) {
    pre_order(e, [&](const NodeRef& n) {
      if (const auto* load = n.as<BufferLoad>()) {
        if (load->predicate || load->dtype.is_vector()) throw DependsOnData();
        touch(load->buffer, load->indices, false);
      } else if (const auto* call = n.as<Call>()) {
        if (call->op == &intrinsic::if_then_else) {
          read(value(call->args[0]) ? call->args[1] : call->args[2]);
          return false;
        }
        if (call->op->effect != Effect::pure) throw DependsOnData();
      } else if (n.is<Let>()) {
        throw DependsOnData();
      }
      return true;
    });
  }

  int64_t value(const Expr& e) {
    const auto both = [&](const auto* n, auto operation) {
      const int64_t a = value(n->a), b = value(n->b);
      return static_cast<int64_t>(operation(a, b));
    };
    if (const auto constant = as_int(e)) return *constant;
    if (const auto* v = e.as<VarNode>()) {
      const auto it = values_.find(v);
      if (it == values_.end()) throw DependsOnData();
      return it->second;
    }
    if (const auto* n = e.as<Add>()) return both(n, std::plus<>());
    if (const auto* n = e.as<Sub>()) return both(n, std::minus<>());
    if (const auto* n = e.as<Mul>()) return both(n, std::multiplies<>());
    if (const auto* n = e.as<FloorDiv>()) return both(n, [](int64_t a, int64_t b) { return floor_of(a, b); });
    if (const auto* n = e.as<FloorMod>()) return both(n, [](int64_t a, int64_t b) { return a - floor_of(a, b) * b; });
    if (const auto* n = e.as<Min>()) return both(n, [](int64_t a, int64_t b) { return std::min(a, b); });
    if (const auto* n = e.as<Max>()) return both(n, [](int64_t a, int64_t b) { return std::max(a, b); });
    if (const auto* n = e.as<LT>()) return both(n, std::less<>());
    if (const auto* n = e.as<LE>()) return both(n, std::less_equal<>());
    if (const auto* n = e.as<GT>()) return both(n, std::greater<>());
    if (const auto* n = e.as<GE>()) return both(n, std::greater_equal<>());
    if (const auto* n = e.as<EQ>()) return both(n, std::equal_to<>());
    if (const auto* n = e.as<NE>()) return both(n, std::not_equal_to<>());
    if (const auto* n = e.as<And>()) return value(n->a) && value(n->b);
    if (const auto* n = e.as<Or>()) return value(n->a) || value(n->b);
    if (const auto* n = e.as<Not>()) return !value(n->a);
    if (const auto* n = e.as<Select>()) return value(value(n->condition) ? n->true_value : n->false_value);
    if (const auto* n = e.as<Cast>(); n && n->value->dtype.is_int()) return value(n->value);
    throw DependsOnData();
  }

  Id watched_;
  bool counts_;  // instances only, whatever memory holds
  int64_t iteration_ = 0;
  bool inside_ = false;
  std::unordered_map<const VarNode*, int64_t> values_;
  std::map<const BufferNode*, std::map<std::vector<int64_t>, Element>> elements_;
  std::set<const BufferNode*> shared_;
};

const For* loop_of(const Stmt& root, Id id) {
  const For* found = nullptr;
  post_order(root, [&](const NodeRef& n) {
    if (const auto* loop = n.as<For>(); loop && loop->id == id) found = loop;
  });
  return found;
}

}  // namespace

std::optional<bool> iterations_are_independent(const PrimFunc& function, Id loop, const Symbols& symbols) {
  try {
    Execution execution(function, loop, symbols);
    execution.run(function.body);
    if (!execution.independent) return false;
    return !execution.shares_with(function, *loop_of(function.body, loop));
  } catch (const DependsOnData&) {
    return std::nullopt;
  }
}

std::optional<int64_t> instances_run(const PrimFunc& function, Id block, const Symbols& symbols) {
  try {
    Execution execution(function, block, symbols, true);
    execution.run(function.body);
    return execution.instances;
  } catch (const DependsOnData&) {
    return std::nullopt;
  }
}

}  // namespace lathe::schedule::testing
