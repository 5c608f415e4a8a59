#include "relax/verify.h"

#include "ir/match.h"
#include "ir/visit.h"
#include "relax/block_builder.h"
#include "relax/control.h"
#include "relax/infer.h"

namespace lathe::relax {

namespace {

// Whether `actual` is as `rule` says: what both know must agree.
bool agrees(const StructInfo& rule, const StructInfo& actual) {
  if (const auto* a = rule.as<TensorStructInfo>()) {
    const auto* b = actual.as<TensorStructInfo>();
    if (!b) return false;
    if (!a->dtype.is_void() && !b->dtype.is_void() && a->dtype != b->dtype) return false;
    if (a->ndim >= 0 && b->ndim >= 0 && a->ndim != b->ndim) return false;
    return !a->shape || !b->shape ||
           std::equal(a->shape->begin(), a->shape->end(), b->shape->begin(),
                      [](const ir::Expr& x, const ir::Expr& y) { return !different_extents(x, y); });
  }
  if (const auto* a = rule.as<SequenceStructInfo>()) {
    const auto* b = actual.as<SequenceStructInfo>();
    return b && agrees(a->element, b->element);
  }
  if (const auto* a = rule.as<OptionalStructInfo>()) {
    const auto* b = actual.as<OptionalStructInfo>();
    return b && agrees(a->element, b->element);
  }
  if (const auto* a = rule.as<TupleStructInfo>()) {
    const auto* b = actual.as<TupleStructInfo>();
    return b && a->items.size() == b->items.size() &&
           std::equal(a->items.begin(), a->items.end(), b->items.begin(), agrees);
  }
  return true;
}

// Whether a value of one function may be the other's: kinds, dtypes and ranks, because symbols differ.
bool passes_as(const StructInfo& given, const StructInfo& wanted) {
  if (!given || !wanted || given.is<ObjectStructInfo>() || wanted.is<ObjectStructInfo>()) return true;
  if (const auto *a = given.as<TensorStructInfo>(), *b = wanted.as<TensorStructInfo>(); a && b)
    return (a->dtype.is_void() || b->dtype.is_void() || a->dtype == b->dtype) &&
           (a->ndim < 0 || b->ndim < 0 || a->ndim == b->ndim);
  if (const auto *a = given.as<ShapeStructInfo>(), *b = wanted.as<ShapeStructInfo>(); a && b)
    return a->ndim < 0 || b->ndim < 0 || a->ndim == b->ndim;
  if (const auto *a = given.as<SequenceStructInfo>(), *b = wanted.as<SequenceStructInfo>(); a && b)
    return passes_as(a->element, b->element);
  if (const auto *a = given.as<OptionalStructInfo>(), *b = wanted.as<OptionalStructInfo>(); a && b)
    return passes_as(a->element, b->element);
  if (const auto *a = given.as<TupleStructInfo>(), *b = wanted.as<TupleStructInfo>(); a && b)
    return a->items.size() == b->items.size() &&
           std::equal(a->items.begin(), a->items.end(), b->items.begin(), passes_as);
  return &given->node_class() == &wanted->node_class();
}

class Verifier {
 public:
  Verifier(const ir::IRModule& module, support::Diagnostics& found) : module_(module), found_(found) {}

  void function(const std::string& name, const FunctionNode& f) {
    name_ = name;
    // A fused group gets its symbols from its caller.
    check_symbols_ = !f.attrs.get_or("primitive", false);
    for (const Var& param : f.params) {
      define(param);
      if (param->struct_info) define_symbols(param->struct_info);
    }
    for (const Var& param : f.params) check_info(param);
    const auto* body = f.body.as<SeqExpr>();
    if (!body) return add(codes::not_normal_form, f.body, "the body of '" + name + "' is not a sequence");
    sequence(*body);
  }

 private:
  void add(support::Code code, const Expr& at, std::string message) {
    support::Diagnostic d{.code = code, .message = std::move(message)};
    if (at && at->origin()) d.place = *at->origin();
    d.note("in function '" + name_ + "'");
    found_.push_back(std::move(d));
  }

  void define(const Var& var) {
    if (!defined_.insert(var.get()).second)
      add(codes::defined_twice, var, "the variable '" + var->name + "' is defined twice");
  }

  void define_symbols(const StructInfo& info) {
    ir::pre_order(info, [&](const ir::NodeRef& n) {
      const auto extents = [&](const OptionalShape& shape) {
        if (!shape) return;
        for (const ir::Expr& extent : *shape)
          if (extent.is<ir::VarNode>()) symbols_.insert(extent.get());
      };
      if (const auto* tensor = n.as<TensorStructInfo>()) extents(tensor->shape);
      if (const auto* shape = n.as<ShapeStructInfo>()) extents(shape->values);
      return n->node_class().family == "struct_info";
    });
  }

  void check_info(const Expr& e) {
    if (!e->struct_info) return add(codes::missing_struct_info, e, "a value has no struct info");
    if (!check_symbols_) return;
    for (const ir::Var& symbol : ir::free_vars(e->struct_info))
      if (!symbols_.count(symbol.get()))
        add(codes::undefined_symbol, e, "the symbolic dimension '" + symbol->name + "' is not defined");
  }

  void leaf(const Expr& e, const std::string& where) {
    if (!e) return;  // an absent optional argument
    if (const auto* tuple = e.as<Tuple>()) {
      for (const Expr& item : tuple->items) leaf(item, where);
      return;
    }
    if (!is_leaf(e)) return add(codes::not_normal_form, e, "an operand of " + where + " is not a variable or constant");
    if (const auto* var = e.as<VarNode>()) {
      if (!defined_.count(var))
        add(codes::undefined_variable, e, "the variable '" + var->name + "' is used before it is defined");
      else if (ended_.count(var))
        add(codes::dataflow_escape, e, "the dataflow variable '" + var->name + "' is used outside its block");
      return;
    }
    if (const auto* shape = e.as<ShapeExpr>())
      for (const ir::Expr& extent : shape->values)
        for (const ir::Var& symbol : ir::free_vars(extent))
          if (check_symbols_ && !symbols_.count(symbol.get()))
            add(codes::undefined_symbol, e, "the symbolic dimension '" + symbol->name + "' is not defined");
    if (const auto* global = e.as<GlobalVar>(); global && !module_.find(global->name))
      add(codes::undefined_function, e, "the module has no function '" + global->name + "'");
  }

  void value(const Expr& e, const std::string& where) {
    ir::match(
        e,
        [&](const Call& n) {
          leaf(n.callee, where);
          for (const Expr& arg : n.args) leaf(arg, where);
          calls(e, n, where);
        },
        [&](const Tuple&) { leaf(e, where); }, [&](const TupleGetItem& n) { leaf(n.tuple, where); },
        [&](const If& n) {
          leaf(n.condition, where);
          for (const Expr& branch : {n.true_branch, n.false_branch}) {
            if (const auto* seq = branch.as<SeqExpr>())
              sequence(*seq);
            else
              add(codes::not_normal_form, branch, "a branch of " + where + " is not a sequence");
          }
        },
        [&](const SeqExpr&) { add(codes::not_normal_form, e, where + " is a sequence inside a sequence"); },
        [&](const ExprNode&) { leaf(e, where); });
    check_info(e);
    if (!e->struct_info) return;
    const auto rule = infer_struct_info(e);
    if (!rule.ok()) {
      for (const support::Diagnostic& d : rule.diagnostics()) add(d.code, e, d.message);
    } else if (!agrees(*rule, e->struct_info)) {
      const auto *expected = (*rule).as<TensorStructInfo>(), *actual = e->struct_info.as<TensorStructInfo>();
      add(codes::struct_info_differs, e,
          where + (expected && actual ? " is said to be " + text_of(*actual) + ", but is " + text_of(*expected)
                                      : " is said to be of another type than it is"));
    }
  }

  // ---- calls of functions ----

  using Infos = std::vector<StructInfo>;
  static Infos infos_of(const std::vector<Expr>& items) {
    Infos infos;
    for (const Expr& item : items) infos.push_back(item ? item->struct_info : StructInfo());
    return infos;
  }

  void calls(const Expr& e, const Call& call, const std::string& where) {
    if (const auto* global = call.callee.as<GlobalVar>()) return agree(e, global->name, infos_of(call.args), {}, where);
    if (!callee_operator(call) || !infer_struct_info(e).ok()) return;
    if (const auto branch = as_branch(e)) {
      for (const Callee& callee : {branch->then, branch->otherwise})
        agree(e, callee.function, infos_of(callee.args), call.struct_info_args, where);
    } else if (const auto loop = as_loop(e)) {
      const StructInfo turn = tensor_info(std::vector<int64_t>{}, DType::int64());
      const StructInfo goes_on = tensor_info(std::vector<int64_t>{}, DType::boolean());
      Infos args{turn, goes_on}, results{goes_on};
      const Infos carried = infos_of(loop->carried), captured = infos_of(loop->captured);
      args.insert(args.end(), carried.begin(), carried.end());
      args.insert(args.end(), captured.begin(), captured.end());
      results.insert(results.end(), loop->results.begin(), loop->results.end());
      agree(e, loop->body, args, results, where);
    }
  }

  // Whether the function takes and gives values of those kinds; with no `results` any.
  void agree(const Expr& at, const std::string& name, const Infos& args, const Infos& results,
             const std::string& where) {
    const ir::BaseFunc base = module_.find(name);
    if (!base) return;  // `leaf` tells
    const auto* function = base.as<FunctionNode>();
    const auto tell = [&](const std::string& message) { add(codes::wrong_arguments, at, where + " " + message); };
    if (!function) return tell("calls '" + name + "', which is no graph function");
    if (function->params.size() != args.size())
      return tell("gives '" + name + "' " + std::to_string(args.size()) + " arguments; it takes " +
                  std::to_string(function->params.size()));
    for (size_t i = 0; i < args.size(); ++i)
      if (!passes_as(args[i], function->params[i]->struct_info))
        tell("gives '" + name + "' an argument " + std::to_string(i) + " of another type than it takes");
    const auto* tuple = function->body->struct_info.as<TupleStructInfo>();
    if (results.empty() || !function->body->struct_info) return;
    if (!tuple || tuple->items.size() != results.size())
      return tell("takes " + std::to_string(results.size()) + " results from '" + name + "', which gives others");
    for (size_t i = 0; i < results.size(); ++i)
      if (!passes_as(tuple->items[i], results[i]))
        tell("takes a result " + std::to_string(i) + " of '" + name + "' for another type than it is");
  }

  void sequence(const SeqExpr& seq) {
    for (const BindingBlock& block : seq.blocks) {
      std::vector<const VarNode*> inside;
      for (const Binding& binding : block->bindings) {
        const auto* cast = binding.as<MatchCast>();
        const Var& var = cast ? cast->var : binding.as<VarBinding>()->var;
        if (cast) {
          leaf(cast->value, "'" + var->name + "'");
          define_symbols(cast->struct_info);
        } else {
          value(binding.as<VarBinding>()->value, "'" + var->name + "'");
        }
        define(var);
        check_info(var);
        if (var->is_dataflow) {
          inside.push_back(var.get());
          if (!block->is_dataflow)
            add(codes::dataflow_escape, var,
                "the dataflow variable '" + var->name + "' is bound outside a dataflow block");
        }
      }
      ended_.insert(inside.begin(), inside.end());
    }
    leaf(seq.body, "the result");
  }

  const ir::IRModule& module_;
  support::Diagnostics& found_;
  std::string name_;
  bool check_symbols_ = true;
  std::unordered_set<const VarNode*> defined_, ended_;
  std::unordered_set<const ir::Node*> symbols_;
};

}  // namespace

support::Diagnostics verify(const ir::IRModule& module) {
  support::Diagnostics found;
  for (const auto& [name, function] : module)
    if (const auto* graph = function.as<FunctionNode>()) Verifier(module, found).function(name, *graph);
  return found;
}

}  // namespace lathe::relax
