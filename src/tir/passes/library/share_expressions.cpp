#include "arith/analyzer.h"
#include "support/mutation.h"
#include "tir/analysis/effects.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(share_expressions_lazily, "tir_test",
            "a value that is only asked for under a condition is computed always");
LATHE_FAULT(share_expressions_after_stores, "tir_test", "a value that was loaded is kept over a store to its memory");

namespace {

// One of the statements that run one after the other; a let that ends such a list is one of them, and what follows it
// sees its variable.
struct Item {
  Stmt statement;  // null: a let
  Var var;
  Expr value;
};

void flatten(const Stmt& s, std::vector<Item>& items) {
  if (const auto* sequence = s.as<SeqStmt>()) {
    for (size_t k = 0; k < sequence->seq.size(); ++k) {
      const bool ends = k + 1 == sequence->seq.size();
      if (ends) return flatten(sequence->seq[k], items);
      items.push_back({sequence->seq[k], {}, {}});
    }
  } else if (const auto* let = s.as<LetStmt>()) {
    items.push_back({{}, let->var, let->value});
    flatten(let->body, items);
  } else {
    items.push_back({s, {}, {}});
  }
}

// Which expression: by what it is; one that reads memory, or may have no value, is another one in each statement.
struct Key {
  support::Hash128 hash;
  int64_t item = -1;
  friend auto operator<=>(const Key&, const Key&) = default;
};

struct Shared {
  Expr value;
  size_t number = 0;   // in the order in which they were met
  size_t first = 0;    // the item that surely evaluates it
  int64_t count = 0;   // of its occurrences from there on
  int64_t size = 0;    // operations in it
  bool sure = false;   // such an item was found
  int64_t before = 0;  // occurrences under conditions, in the item that comes to it now
  size_t before_at = 0;
  Var var;  // where it is shared
};

bool is_leaf(const Expr& e) {
  const auto* cast = e.as<Cast>();
  return e.is<VarNode>() || e.is<IntImm>() || e.is<FloatImm>() || e.is<StringImm>() || e.is<GlobalVar>() ||
         (cast && is_leaf(cast->value));
}

// Whether an expression is worth a name: an operation or a load, not a vector's shape, an address or a hint.
bool may_have_a_name(const Expr& e) {
  if (is_leaf(e) || e->dtype.is_handle() || e.is<Ramp>() || e.is<Broadcast>() || e.is<Let>() || e.is<Reduce>())
    return false;
  const auto* call = e.as<Call>();
  return !call || (call->op->effect == Effect::pure && call->op != &intrinsic::undef && call->op != &intrinsic::likely);
}

// The element that a call is given the place of, and not the value.
bool takes_a_place(const Call& call) { return call.op == &intrinsic::address_of || is_hint(call); }

int64_t operations(const Expr& e) {
  int64_t count = 0;
  post_order(e, [&](const NodeRef& n) { count += n->node_class().family == ExprNode::family && !n.is<VarNode>(); });
  return count;
}

// Shares what the statements of one list have in common, also with the statements inside them.
class ListSharing {
 public:
  ListSharing(std::vector<Item> items, bool equivalent) : items_(std::move(items)), equivalent_(equivalent) {}

  std::vector<Item> run() {
    for (size_t k = 0; k < items_.size(); ++k) {
      enter(k);
      items_[k].statement ? collect(items_[k].statement, true) : occurs(items_[k].value, {});
    }
    choose();
    if (chosen_.empty()) return std::move(items_);
    std::vector<Item> result;
    for (size_t k = 0; k < items_.size(); ++k) {
      enter(k);
      for (Shared* shared : chosen_)
        if (shared->first == k) result.push_back({{}, shared->var, Replacement(*this).parts(shared->value)});
      const Item& item = items_[k];
      if (item.statement)
        result.push_back({Replacement(*this)(item.statement), {}, {}});
      else
        result.push_back({{}, item.var, Replacement(*this)(item.value)});
    }
    return result;
  }

 private:
  // How an expression is evaluated: whenever the item runs, or perhaps not; as a subscript.
  struct Place {
    bool sure = true, index = false;
  };

  void enter(size_t item) {
    at_ = item;
    // Such a statement evaluates all its expressions before it changes anything.
    const Stmt& s = items_[item].statement;
    const bool simple = !s || s.is<BufferStore>() || s.is<Evaluate>() || s.is<AssertStmt>();
    simple_ = simple && !effects_of(s ? NodeRef(s) : NodeRef(items_[item].value)).updates;
  }

  // ---- which expressions there are, and where ----

  void collect(const Stmt& s, bool sure) {
    if (const auto* store = s.as<BufferStore>()) {
      occurs(store->value, {.sure = sure});
      for (const Expr& index : store->indices) occurs(index, {.sure = sure, .index = true});
      if (store->predicate) occurs(store->predicate, {.sure = sure, .index = true});
    } else if (const auto* evaluate = s.as<Evaluate>()) {
      occurs(evaluate->value, {.sure = sure});
    } else if (const auto* check = s.as<AssertStmt>()) {
      occurs(check->condition, {.sure = sure});
    } else if (const auto* branch = s.as<IfThenElse>()) {
      occurs(branch->condition, {.sure = sure});
      collect(branch->then_case, false);
      if (branch->else_case) collect(branch->else_case, false);
    } else if (const auto* loop = s.as<For>()) {
      occurs(loop->min, {.sure = sure});
      occurs(loop->extent, {.sure = sure});
      const auto extent = as_int(loop->extent);
      bound(loop->loop_var, [&] { collect(loop->body, sure && extent && *extent > 0); });
    } else if (const auto* repeat = s.as<While>()) {
      occurs(repeat->condition, {.sure = sure});
      collect(repeat->body, false);
    } else if (const auto* let = s.as<LetStmt>()) {
      occurs(let->value, {.sure = sure});
      bound(let->var, [&] { collect(let->body, sure); });
    } else if (const auto* sequence = s.as<SeqStmt>()) {
      for (const Stmt& each : sequence->seq) collect(each, sure);
    } else if (const auto* allocate = s.as<Allocate>()) {
      for (const Expr& extent : allocate->extents) occurs(extent, {.sure = sure});
      collect(allocate->body, sure);
    } else if (const auto* constant = s.as<AllocateConst>()) {
      collect(constant->body, sure);
    } else if (const auto* declare = s.as<DeclBuffer>()) {
      collect(declare->body, sure);
    } else if (const auto* attribute = s.as<AttrStmt>()) {
      collect(attribute->body, sure);
    }
    // A block is a world of its own: see `ExpressionSharing`.
  }

  void bound(const Var& var, support::function_ref<void()> body) {
    bound_.insert(var.get());
    body();
    bound_.erase(var.get());
  }

  void occurs(const Expr& e, Place place) {
    if (is_leaf(e)) return;
    note(e, place);
    each_part(e, place, [&](const Expr& part, Place inner) { occurs(part, inner); });
  }

  // The parts of an expression, and how they are evaluated.
  void each_part(const Expr& e, Place place, support::function_ref<void(const Expr&, Place)> visit) {
    const Place index{.sure = place.sure, .index = true};
    if (const auto* call = e.as<Call>()) {
      const auto* element = takes_a_place(*call) ? call->args[0].as<BufferLoad>() : nullptr;
      if (element)
        for (const Expr& each : element->indices) visit(each, index);
      const bool lazy = call->op == &intrinsic::if_then_else && !support::flip(share_expressions_lazily);
      for (size_t k = element ? 1 : 0; k < call->args.size(); ++k)
        visit(call->args[k], {.sure = place.sure && !(lazy && k > 0), .index = place.index});
    } else if (const auto* load = e.as<BufferLoad>()) {
      for (const Expr& each : load->indices) visit(each, index);
      if (load->predicate) visit(load->predicate, index);
    } else if (const auto* let = e.as<Let>()) {
      visit(let->value, place);
      bound(let->var, [&] { visit(let->body, place); });
    } else if (!e.is<Reduce>()) {
      e->node_class().for_each_child(*e, [&](const NodeRef& child) {
        if (child && child->node_class().family == ExprNode::family) visit(ir::detail::narrow<ExprNode>(child), place);
      });
    }
  }

  void note(const Expr& e, const Place& place) {
    const auto key = key_of(e, place.index);
    if (!key) return;
    const auto [it, fresh] = table_.try_emplace(*key);
    Shared& shared = it->second;
    if (fresh) {
      shared.value = e;
      shared.size = operations(e);
      shared.number = order_.size();
      order_.push_back(&shared);
    }
    if (shared.sure) {
      ++shared.count;
    } else if (place.sure) {
      shared.sure = true;
      shared.first = at_;
      shared.count = 1 + (shared.before_at == at_ ? shared.before : 0);
    } else {
      if (std::exchange(shared.before_at, at_) != at_) shared.before = 0;
      ++shared.before;
    }
  }

  // Nothing where the expression may not have a name in this list.
  std::optional<Key> key_of(const Expr& e, bool index) {
    if (!may_have_a_name(e) || (index && e->dtype.is_vector())) return std::nullopt;
    const auto* load = e.as<BufferLoad>();
    if (load && load->predicate) return std::nullopt;
    for (const Var& v : free_vars(e))
      if (bound_.count(v.get())) return std::nullopt;
    const bool anywhere = is_total(e) || support::flip(share_expressions_after_stores);
    if (!anywhere && !simple_) return std::nullopt;
    const Expr form = equivalent_ && anywhere && e->dtype == DType::int64() ? known_.simplify_value(e) : e;
    return Key{structural_hash(form, false), anywhere ? -1 : static_cast<int64_t>(at_)};
  }

  // ---- which of them get a name ----

  // From the largest on: what is only met inside of one that has a name is met once, where that is computed.
  void choose() {
    std::vector<Shared*> by_size = order_;
    std::sort(by_size.begin(), by_size.end(), [](const Shared* a, const Shared* b) {
      return a->size != b->size ? a->size > b->size : a->number < b->number;
    });
    for (Shared* shared : by_size) {
      if (!shared->sure || shared->count < 2) continue;
      enter(shared->first);
      shared->var = make<VarNode>(fmt::format("shared{}", ++named_), shared->value->dtype);
      chosen_.push_back(shared);
      lessen_parts(shared->value, {}, shared->count - 1);
    }
    // Smaller ones first: they are parts of the others.
    std::reverse(chosen_.begin(), chosen_.end());
  }

  void lessen_parts(const Expr& e, Place place, int64_t by) {
    each_part(e, place, [&](const Expr& part, Place inner) {
      if (is_leaf(part)) return;
      if (Shared* shared = find(part, inner.index)) shared->count -= by;
      lessen_parts(part, inner, by);
    });
  }

  Shared* find(const Expr& e, bool index) {
    const auto key = key_of(e, index);
    const auto it = key ? table_.find(*key) : table_.end();
    return it == table_.end() ? nullptr : &it->second;
  }

  // ---- what becomes of the statements ----

  class Replacement : public TirRewriter {
   public:
    explicit Replacement(ListSharing& list) : list_(list) {}
    // The expression with its parts replaced, whatever becomes of it.
    Expr parts(Expr e) {
      const auto* call = e.as<Call>();
      const auto* element = call && takes_a_place(*call) ? call->args[0].as<BufferLoad>() : nullptr;
      if (element) return with(*call, [&](Call& copy) { copy.args[0] = subscripts(Expr(element)); });
      return e.is<BufferLoad>() ? subscripts(std::move(e)) : children(std::move(e));
    }

   protected:
    Stmt visit_stmt(Stmt s) override {
      if (s.is<BlockRealize>()) return s;
      const auto* store = s.as<BufferStore>();
      if (!store) return children(std::move(s));
      std::vector<Expr> indices = store->indices;
      const Expr value = (*this)(store->value);
      index_ = true;
      for (Expr& index : indices) index = (*this)(index);
      const Expr predicate = (*this)(store->predicate);
      index_ = false;
      if (value == store->value && indices == store->indices && predicate == store->predicate) return s;
      return make<BufferStore>(store->buffer, value, indices, predicate);
    }
    Expr visit_expr(Expr e) override {
      if (is_leaf(e)) return e;
      const Shared* shared = list_.find(e, index_);
      return shared && shared->var && shared->first <= list_.at_ ? Expr(shared->var) : parts(std::move(e));
    }

   private:
    Expr subscripts(Expr load) {
      const bool outside = std::exchange(index_, true);
      Expr result = children(std::move(load));
      index_ = outside;
      return result;
    }

    ListSharing& list_;
    bool index_ = false;
  };

  std::vector<Item> items_;
  const bool equivalent_;
  size_t at_ = 0;
  bool simple_ = false;
  std::unordered_set<const VarNode*> bound_;
  std::map<Key, Shared> table_;
  std::vector<Shared*> order_, chosen_;
  int named_ = 0;
  arith::Analyzer known_;
};

// Lists of statements from the outside in: a value goes to the outermost list that surely computes it. What a block
// computes stays in it, so that blocks go on saying by their variables alone what they do.
class ExpressionSharing : public TirRewriter {
 public:
  explicit ExpressionSharing(bool equivalent) : equivalent_(equivalent) {}
  Stmt list(const Stmt& s) {
    std::vector<Item> items;
    flatten(s, items);
    items = ListSharing(std::move(items), equivalent_).run();
    std::vector<Stmt> after;  // what follows, from the end on
    for (size_t k = items.size(); k-- > 0;) {
      Item& item = items[k];
      if (item.statement) {
        after.push_back(children(std::move(item.statement)));
        continue;
      }
      std::reverse(after.begin(), after.end());
      after = {make<LetStmt>(item.var, item.value, seq(std::move(after)))};
    }
    std::reverse(after.begin(), after.end());
    return seq(std::move(after));
  }

 protected:
  Stmt visit_stmt(Stmt s) override { return list(s); }
  Expr visit_expr(Expr e) override { return e; }

 private:
  const bool equivalent_;
};

}  // namespace

Result<IRModule> share_expressions(IRModule module, const PassContext& context) {
  const bool equivalent = context.config.get_or<bool>("equivalent_terms", false);
  return on_each_body(std::move(module), [&](const Stmt& body) {
    const Stmt shared = ExpressionSharing(equivalent).list(body);
    return structural_equal(body, shared) ? body : shared;
  });
}

}  // namespace lathe::tir
