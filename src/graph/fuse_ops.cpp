#include "graph/channels_first.h"
#include "graph/outline.h"
#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ops/attributes.h"
#include "ops/operators.h"

namespace lathe::graph {

namespace {

// One operator's binding, and the group it belongs to.
struct Item {
  const VarBinding* binding;
  const Call* call;
  const Operator* op;
  int group;
};

struct Candidate {
  std::vector<int> items;     // in program order
  int anchor = -1;            // the item that is a product or reduction
  bool closed = false;        // its value is a result, or it may not be fused
  std::string_view declined;  // why it may not join its only consumer; empty: it has none, or was not asked
};

bool same_shape(const Expr& a, const Expr& b) {
  const auto* left = as_tensor(a);
  const auto* right = as_tensor(b);
  if (!left || !right || !left->shape || !right->shape || left->shape->size() != right->shape->size()) return false;
  for (size_t i = 0; i < left->shape->size(); ++i)
    if (!ir::structural_equal((*left->shape)[i], (*right->shape)[i])) return false;
  return true;
}

bool pointwise(FusionKind kind) { return kind <= FusionKind::broadcast; }

// Whether `a` has no more elements than `b`; no where only the run knows, unless they are as many.
bool is_no_larger(const Expr& a, const Expr& b) {
  const auto *left = as_tensor(a), *right = as_tensor(b);
  if (!left || !right || !left->shape || !right->shape) return false;
  const ir::Expr ours = ir::product(*left->shape), theirs = ir::product(*right->shape);
  const auto known = ir::as_int(ours), limit = ir::as_int(theirs);
  return known && limit ? *known <= *limit : relax::same_extent(ours, theirs);
}

class Fuser {
 public:
  Fuser(Outliner& outliner, const ir::PassContext& context) : outliner_(outliner), context_(context) {}

  Result<Function> run(const std::string& name, const Function& function) {
    name_ = name;
    bindings_ = all_bindings(function);
    collect(function);
    // What follows a product or reduction joins it before it may join a consumer of its own, which would compute it
    // more than once or read it from memory.
    while (merge_some(true) || merge_some(false)) {
    }
    if (context_.on_remark)
      for (const Candidate& group : groups_)
        if (!group.items.empty() && !group.declined.empty())
          context_.remark("fuse_ops", name_ + "." + item(group.items.back()).binding->var->name,
                          std::string(group.declined));
    return outline(function);
  }

 private:
  void collect(const Function& function) {
    items_.reserve(bindings_.size());
    groups_.reserve(bindings_.size());
    item_of_.reserve(bindings_.size());
    for (const Binding& binding : bindings_) {
      const auto* bound = binding.as<VarBinding>();
      const auto* call = bound ? bound->value.as<Call>() : nullptr;
      const Operator* op = call ? callee_operator(*call) : nullptr;
      if (!op || op->is_view || op->name == "call_tir" || !std::holds_alternative<TeExpression>(op->meaning)) continue;
      const int index = static_cast<int>(items_.size());
      items_.push_back({bound, call, op, index});
      item_of_[bound->var.get()] = index;
      Candidate group;
      group.items = {index};
      group.closed = op->fusion == FusionKind::opaque || !as_tensor(bound->var);
      if (op->fusion == FusionKind::reduction || op->fusion == FusionKind::product) group.anchor = index;
      groups_.push_back(std::move(group));
    }
    find_users(function);
  }

  struct Use {
    int item, by;
  };

  void find_users(const Function& function) {
    std::vector<Use> uses;
    uses.reserve(2 * bindings_.size());
    for (const Binding& binding : bindings_) {
      const auto* bound = binding.as<VarBinding>();
      const auto user = bound ? item_of_.find(bound->var.get()) : item_of_.end();
      const int by = user == item_of_.end() ? -1 : user->second;
      note_uses(bound ? bound->value : binding.as<MatchCast>()->value, by, uses);
    }
    note_uses(function->body.as<SeqExpr>()->body, -1, uses);
    first_user_.resize(items_.size() + 1);
    for (const Use& use : uses) ++first_user_[static_cast<size_t>(use.item) + 1];
    std::partial_sum(first_user_.begin(), first_user_.end(), first_user_.begin());
    users_.resize(uses.size());
    std::vector<size_t> next(first_user_);
    for (const Use& use : uses) users_[next[static_cast<size_t>(use.item)]++] = use.by;
  }

  // Items that use an item's value, or -1: something outside any group.
  std::span<const int> users_of(int item) const {
    const auto at = static_cast<size_t>(item);
    return std::span(users_).subspan(first_user_[at], first_user_[at + 1] - first_user_[at]);
  }

  void note_uses(const Expr& e, int by, std::vector<Use>& uses) const {
    const auto note = [&](const Expr& operand) {
      const auto it = operand ? item_of_.find(operand.get()) : item_of_.end();
      if (it != item_of_.end()) uses.push_back({it->second, by});
    };
    note(e);
    if (const auto* call = e.as<Call>())
      for (const Expr& arg : call->args) {
        note(arg);
        if (const auto* tuple = arg ? arg.as<Tuple>() : nullptr)
          for (const Expr& item : tuple->items) note(item);
      }
    if (const auto* tuple = e.as<Tuple>())
      for (const Expr& item : tuple->items) note(item);
    if (const auto* item = e.as<TupleGetItem>()) note(item->tuple);
  }

  // Merges each group (only those with a product or reduction, with `anchored`) into its only consumer where that fits;
  // true when something merged.
  bool merge_some(bool anchored) {
    bool merged = false;
    for (int i = static_cast<int>(items_.size()) - 1; i >= 0; --i) {
      const int group = items_[static_cast<size_t>(i)].group;
      Candidate& from = groups_[static_cast<size_t>(group)];
      if (from.items.back() != i) continue;  // a group is known by its last item, the one with outside uses
      if (anchored && from.anchor < 0) continue;
      const auto consumer = only_consumer(from, group);
      from.declined = consumer ? misfit(from, groups_[static_cast<size_t>(*consumer)]) : std::string_view();
      if (!consumer || !from.declined.empty()) continue;
      merge(group, *consumer);
      merged = true;
    }
    return merged;
  }

  std::optional<int> only_consumer(const Candidate& from, int self) const {
    std::optional<int> only;
    for (const int item : from.items)
      for (const int user : users_of(item)) {
        if (user < 0) return std::nullopt;
        const int group = items_[static_cast<size_t>(user)].group;
        if (group == self) continue;
        if (only && *only != group) return std::nullopt;
        only = group;
      }
    return only;
  }

  const Item& item(int i) const { return items_[static_cast<size_t>(i)]; }

  // Why `from` may not join its consumer `to`; empty when it may.
  std::string_view misfit(const Candidate& from, const Candidate& to) const {
    if (from.closed || to.closed) return "an opaque operator or one of several results";
    if (from.items.size() + to.items.size() > max_group) return "the group would be too large";
    if (from.anchor >= 0 && to.anchor >= 0) return "both hold a product or reduction";
    const Var& value = item(from.items.back()).binding->var;
    if (from.anchor >= 0) {
      const Item* alone = to.items.size() == 1 ? &item(to.items[0]) : nullptr;
      const bool is_image = item(from.anchor).op == &ops::conv;
      if (alone && (pads(*alone) || (is_image && puts_channels_first(*alone->call)))) return "";
      for (const int i : to.items)
        if (!pointwise(item(i).op->fusion) || !same_shape(item(i).binding->var, value))
          return "the consumer of a product or reduction is not elementwise over the same shape";
      return "";
    }
    for (const int i : to.items) {
      const FusionKind kind = item(i).op->fusion;
      const bool direct = reads(i, value);
      if (kind == FusionKind::product && direct) return "the operand of a product is computed once, not per use";
      const bool turns_inside = from.items.size() == 1 && item(from.items[0]).op == &ops::permute_dims && pads(item(i));
      if (kind == FusionKind::injective && direct && !turns_inside && !cheap_injective(item(i), value))
        return "the consumer would compute it more than once, or under conditions";
    }
    if (to.anchor >= 0 && item(to.anchor).op->fusion == FusionKind::product) {
      // An operand of the epilogue: it must have the result's shape, or it would be computed more than once.
      if (!same_shape(value, item(to.anchor).binding->var)) return "its shape is not the product's";
    }
    return "";
  }

  // Padding by zero: each element is computed once, and written inside.
  static bool pads(const Item& consumer) {
    if (consumer.op->name != "nn.pad") return false;
    if (consumer.call->args.size() > 3 && consumer.call->args[3]) return false;
    return static_cast<const ops::PadAttributes*>(consumer.call->attributes.get())->mode == "constant";
  }

  static bool cheap_injective(const Item& consumer, const Expr& value) {
    int tensors = 0;
    for (const Expr& arg : consumer.call->args) {
      if (arg && arg.is<Tuple>()) return false;
      tensors += arg && as_tensor(arg) ? 1 : 0;
    }
    return tensors == 1 && is_no_larger(consumer.binding->var, value);
  }

  static bool operand_is(const Expr& arg, const Expr& value) {
    if (arg.get() == value.get()) return true;
    if (const auto* tuple = arg ? arg.as<Tuple>() : nullptr)
      for (const Expr& item : tuple->items)
        if (item.get() == value.get()) return true;
    return false;
  }
  bool reads(int i, const Expr& value) const {
    for (const Expr& arg : item(i).call->args)
      if (operand_is(arg, value)) return true;
    return false;
  }

  void merge(int from, int to) {
    Candidate& source = groups_[static_cast<size_t>(from)];
    Candidate& target = groups_[static_cast<size_t>(to)];
    for (const int i : source.items) items_[static_cast<size_t>(i)].group = to;
    target.items.insert(target.items.end(), source.items.begin(), source.items.end());
    std::sort(target.items.begin(), target.items.end());
    if (source.anchor >= 0) target.anchor = source.anchor;
    source.items.clear();
  }

  // ---- outlining ----

  Result<Function> outline(const Function& function) {
    std::vector<Binding> kept;
    for (const Binding& binding : bindings_) {
      const auto* bound = binding.as<VarBinding>();
      const auto it = bound ? item_of_.find(bound->var.get()) : item_of_.end();
      if (it == item_of_.end()) {
        kept.push_back(binding);
        continue;
      }
      const Candidate& group = groups_[static_cast<size_t>(items_[static_cast<size_t>(it->second)].group)];
      if (group.items.back() == it->second) kept.push_back(call_of(group));
    }
    return ir::with_origin(make_function(function->params, std::move(kept), function->body.as<SeqExpr>()->body,
                                         function->attrs, function->is_pure),
                           function->origin());
  }

  // Adds the group as a function and gives the call that replaces its last operator.
  Binding call_of(const Candidate& group) {
    std::vector<const VarBinding*> bindings;
    size_t anchor = 0;
    for (const int i : group.items) {
      if (i == group.anchor) anchor = bindings.size();
      bindings.push_back(item(i).binding);
    }
    return outliner_.call_of(bindings, anchor);
  }

  Outliner& outliner_;
  const ir::PassContext& context_;
  std::string name_;
  std::vector<Binding> bindings_;
  std::vector<Item> items_;
  std::vector<Candidate> groups_;
  std::unordered_map<const ir::Node*, int> item_of_;
  std::vector<int> users_;          // of all items, in order
  std::vector<size_t> first_user_;  // by item, and the end
};

}  // namespace

support::Result<ir::IRModule> fuse_ops(ir::IRModule module, const ir::PassContext& context) {
  Outliner outliner(module);
  TRY(change_functions(module, [&](const std::string& name, const Function& function) -> Result<Function> {
    if (function->attrs.get_or("primitive", false)) return function;
    return Fuser(outliner, context).run(name, function);
  }));
  return module;
}

}  // namespace lathe::graph
