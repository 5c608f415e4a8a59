#include "graph/outline.h"
#include "graph/passes.h"
#include "graph/rewrite_bindings.h"
#include "ops/attributes.h"
#include "ops/operators.h"
#include "support/mutation.h"

namespace lathe::graph {

LATHE_FAULT(fuse_attention_forgets_uses, "graph_test", "scores that are used elsewhere are taken into the group");

namespace {

constexpr size_t longest_chain = 16;  // of operators between the first product and softmax

// The extents, where there are some.
const Shape* known_extents(const Expr& e) {
  const auto* info = e ? as_tensor(e) : nullptr;
  return info && info->shape ? &*info->shape : nullptr;
}

bool equal(std::span<const ir::Expr> a, std::span<const ir::Expr> b) {
  return std::ranges::equal(a, b, [](const ir::Expr& x, const ir::Expr& y) { return ir::structural_equal(x, y); });
}

// All extents but those of the matrices.
std::span<const ir::Expr> batch_of(const Shape& shape) { return std::span(shape).first(shape.size() - 2); }

bool is_plain_product(const Call& call) {
  return callee_operator(call) == &ops::matmul &&
         static_cast<const ops::MatmulAttributes*>(call.attributes.get())->b_layout == "KN";
}

bool is_pointwise(const Call& call) {
  const Operator* op = callee_operator(call);
  return op && !op->is_view && op->fusion <= FusionKind::broadcast && std::holds_alternative<TeExpression>(op->meaning);
}

// One function's bindings, and who uses what they compute.
class AttentionFuser {
 public:
  AttentionFuser(Outliner& outliner, const ir::PassContext& context) : outliner_(outliner), context_(context) {}

  Function run(const std::string& name, const Function& function) {
    bindings_ = all_bindings(function);
    for (size_t i = 0; i < bindings_.size(); ++i)
      if (const auto* bound = bindings_[i].as<VarBinding>(); bound && bound->value.is<Call>())
        binding_of_[bound->var.get()] = i;
    uses_ = count_uses(function);
    find_readers();
    std::map<size_t, Binding> calls;  // by the last binding of the group
    std::set<size_t> gone;
    for (size_t i = 0; i < bindings_.size(); ++i) {
      const Call* softmax = call_at(i);
      if (!softmax || callee_operator(*softmax) != &ops::softmax) continue;
      Found found{i, i, {i}};
      if (const std::string why = match(*softmax, found); !why.empty()) {
        context_.remark("fuse_attention", name + "." + var_of_binding(bindings_[i])->name, why);
        continue;
      }
      const std::vector<Binding> made = divided_last(found);
      std::vector<const VarBinding*> group;
      size_t anchor = 0;
      for (const Binding& binding : made) {
        group.push_back(binding.as<VarBinding>());
        if (callee_operator(*group.back()->value.as<Call>()) == &ops::softmax_terms) anchor = group.size() - 1;
      }
      calls[*found.bindings.rbegin()] = outliner_.call_of(group, anchor);
      gone.insert(found.bindings.begin(), found.bindings.end());
    }
    if (calls.empty()) return function;
    std::vector<Binding> kept;
    for (size_t i = 0; i < bindings_.size(); ++i)
      if (const auto call = calls.find(i); call != calls.end())
        kept.push_back(call->second);
      else if (!gone.count(i))
        kept.push_back(bindings_[i]);
    return ir::with_origin(make_function(function->params, std::move(kept), function->body.as<SeqExpr>()->body,
                                         function->attrs, function->is_pure),
                           function->origin());
  }

 private:
  struct Found {
    size_t softmax, values;     // the second product
    std::set<size_t> bindings;  // of the group
    Expr scores = {}, query = {}, key = {}, value = {}, mixed = {};
  };

  const Call* call_at(size_t i) const {
    const auto* bound = bindings_[i].as<VarBinding>();
    return bound ? bound->value.as<Call>() : nullptr;
  }
  // The binding of a call's value, or nothing.
  std::optional<size_t> binding_of(const Expr& e) const {
    const auto it = e ? binding_of_.find(e.get()) : binding_of_.end();
    return it == binding_of_.end() ? std::nullopt : std::optional(it->second);
  }
  bool is_used_once(const Expr& var) const {
    const auto it = uses_.find(var.get());
    return (it != uses_.end() && it->second == 1) || support::flip(fuse_attention_forgets_uses);
  }

  // The group's bindings, where not the weights are divided by their sum but what is mixed by them, which is shorter,
  // and a scale before softmax becomes softmax's own.
  std::vector<Binding> divided_last(const Found& found) const {
    std::vector<Binding> made;
    const auto bind = [&](const Operator& op, std::vector<Expr> args, AttributesRef attributes, const VarBinding& as,
                          const std::string& name) -> Expr {
      Expr value = make_call(op, std::move(args), std::move(attributes), as.value->origin()).value_or_throw();
      Var var = name.empty() ? as.var : relax_var(name, value->struct_info, true);
      made.push_back(make<VarBinding>(std::move(value), var));
      return var;
    };
    Expr terms, total;
    const std::optional<size_t> scaling = scaling_before(found);
    for (const size_t i : found.bindings) {
      const auto& own = *bindings_[i].as<VarBinding>();
      const Call& call = *own.value.as<Call>();
      const std::string& name = own.var->name;
      if (i == scaling) continue;
      if (i == found.softmax) {
        const double scale = scaling ? *scale_of(*call_at(*scaling)) : 1.0;
        terms = bind(ops::softmax_terms, {scaling ? call_at(*scaling)->args[0] : call.args[0]},
                     make<ops::SoftmaxTermsAttributes>(int64_t{-1}, scale), own, name + "_terms");
        total =
            bind(ops::sum, {terms}, make<ops::ReduceAttributes>(std::vector<int64_t>{-1}, true), own, name + "_sum");
      } else if (i == found.values) {
        const Expr mixed = bind(ops::matmul, {terms, call.args[1]}, call.attributes, own, name + "_mixed");
        const Expr one = constant(ir::tensor_of<float>(ir::DType::float32(), {}, {1}));
        // The largest term is 1; of no terms, which only the run knows then, nothing is mixed.
        if (!ir::as_int(known_extents(terms)->back()))
          total = bind(ops::maximum, {total, one}, {}, own, name + "_divisor");
        const Expr share = bind(ops::divide, {one, total}, {}, own, name + "_share");
        bind(ops::multiply, {share, mixed}, {}, own, "");
      } else {
        made.push_back(bindings_[i]);
      }
    }
    return made;
  }

  // What a call multiplies its first operand by, where that is one number above 0.
  static std::optional<double> scale_of(const Call& call) {
    const Operator* op = callee_operator(call);
    const auto* constant = call.args.size() == 2 && call.args[1] ? call.args[1].as<Constant>() : nullptr;
    if ((op != &ops::multiply && op != &ops::divide) || !constant || constant->data->elements() != 1) return {};
    const double number = ir::float_at(*constant->data, 0), scale = op == &ops::multiply ? number : 1 / number;
    return scale >= 0x1p-20 && scale <= 0x1p20 ? std::optional(scale) : std::nullopt;
  }
  // The binding of the group that scales what softmax takes, all of it by one number.
  std::optional<size_t> scaling_before(const Found& found) const {
    const auto at = binding_of(call_at(found.softmax)->args[0]);
    return at && found.bindings.count(*at) && scale_of(*call_at(*at)) ? at : std::nullopt;
  }

  // The last call that reads each value.
  void find_readers() {
    for (size_t i = 0; i < bindings_.size(); ++i)
      if (const Call* call = call_at(i))
        for (const Expr& arg : call->args)
          if (arg) reader_[arg.get()] = i;
  }

  // The one call that reads the value and is all that uses it, or nothing.
  std::optional<size_t> only_reader(const Expr& var) const {
    const auto it = reader_.find(var.get());
    return it != reader_.end() && is_used_once(var) ? std::optional(it->second) : std::nullopt;
  }

  // Fills `found`; why this is no attention that becomes one kernel, or empty.
  std::string match(const Call& softmax, Found& found) const {
    const Shape* shape = known_extents(softmax.args[0]);
    if (!shape || shape->size() < 2) return "the scores' shape is not known, or they are no matrices";
    const int64_t axis = static_cast<const ops::SoftmaxAttributes*>(softmax.attributes.get())->axis;
    if (axis != -1 && axis != static_cast<int64_t>(shape->size()) - 1) return "softmax is not along the last axis";
    if (!find_scores(softmax.args[0], *shape, found, 0))
      return "no matrix product leads to softmax by elementwise operators whose values nobody else uses";
    const auto after = only_reader(var_of_binding(bindings_[found.softmax]));
    const Call* values = after ? call_at(*after) : nullptr;
    if (!values || !is_plain_product(*values) || binding_of(values->args[0]) != found.softmax)
      return "softmax is not the first operand of a matrix product that alone reads it";
    found.bindings.insert(*after);
    found.values = *after;
    found.mixed = var_of_binding(bindings_[*after]);
    found.value = values->args[1];
    if (std::string why = misfit(*shape, found); !why.empty()) return why;
    take_permutations(found);
    if (found.query.get() == found.key.get()) return "queries and keys are one tensor";
    return "";
  }

  // The product whose value reaches `e` by elementwise operators.
  bool find_scores(const Expr& e, const Shape& shape, Found& found, size_t depth) const {
    const auto at = binding_of(e);
    if (!at || depth > longest_chain || !is_used_once(e) || !known_extents(e) || !equal(*known_extents(e), shape))
      return false;
    const Call& call = *call_at(*at);
    if (is_plain_product(call)) {
      found.bindings.insert(*at);
      found.scores = e;
      found.query = call.args[0];
      found.key = call.args[1];
      return true;
    }
    if (!is_pointwise(call)) return false;
    for (const Expr& arg : call.args)
      if (find_scores(arg, shape, found, depth + 1)) {
        found.bindings.insert(*at);
        return true;
      }
    return false;
  }

  std::string misfit(const Shape& scores, const Found& found) const {
    for (const Expr* operand : {&found.query, &found.key, &found.value, &found.mixed}) {
      const Shape* shape = known_extents(*operand);
      if (!shape) return "the shape of an operand is not known";
      if (as_tensor(*operand)->dtype != ir::DType::float32()) return "an operand is not of float32";
      if (shape->size() != scores.size() || !equal(batch_of(*shape), batch_of(scores)))
        return "an operand is broadcast";
    }
    for (const size_t i : found.bindings)
      if (as_tensor(var_of_binding(bindings_[i]))->dtype != ir::DType::float32())
        return "a value inside is not of float32";
    if (!ir::as_int(known_extents(found.query)->back()) || !ir::as_int(known_extents(found.mixed)->back()))
      return "the length of a query or of a value is not known";
    const auto is_nothing = [](const ir::Expr& extent) { return ir::is_int(extent, 0); };
    for (const Expr* operand : {&found.query, &found.key, &found.mixed})
      if (std::ranges::any_of(*known_extents(*operand), is_nothing)) return "there is nothing to compute";
    return "";
  }

  // Permutations of the operands and of the result cost nothing inside: rows are read, and written, where they lie.
  void take_permutations(Found& found) const {
    const auto permutation = [&](const Expr& e) -> std::optional<size_t> {
      const auto at = binding_of(e);
      return at && callee_operator(*call_at(*at)) == &ops::permute_dims && is_used_once(e) ? at : std::nullopt;
    };
    const auto take = [&](Expr& operand, bool keys) {
      const auto at = permutation(operand);
      if (!at) return;
      const size_t rank = known_extents(operand)->size();
      const std::vector<int64_t> axes = permuted_axes(*call_at(*at));
      const auto last = static_cast<int64_t>(rank) - 1;
      if (axes[rank - 1] != last && !(keys && axes[rank - 2] == last)) return;
      found.bindings.insert(*at);
      operand = call_at(*at)->args[0];
    };
    take(found.query, false);
    take(found.key, true);
    take(found.value, false);
    const auto reader = only_reader(found.mixed);
    if (!reader || callee_operator(*call_at(*reader)) != &ops::permute_dims) return;
    const std::vector<int64_t> axes = permuted_axes(*call_at(*reader));
    if (axes.back() == static_cast<int64_t>(axes.size()) - 1) found.bindings.insert(*reader);
  }

  Outliner& outliner_;
  const ir::PassContext& context_;
  std::vector<Binding> bindings_;
  std::unordered_map<const ir::Node*, size_t> binding_of_, reader_;
  std::unordered_map<const ir::Node*, int> uses_;
};

}  // namespace

Result<IRModule> fuse_attention(IRModule module, const PassContext& context) {
  Outliner outliner(module);
  TRY(change_functions(module, [&](const std::string& name, const Function& function) -> Result<Function> {
    if (function->attrs.get_or("primitive", false)) return function;
    return AttentionFuser(outliner, context).run(name, function);
  }));
  return module;
}

}  // namespace lathe::graph
