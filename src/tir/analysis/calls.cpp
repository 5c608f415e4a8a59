#include "tir/analysis/calls.h"

#include "ir/visit.h"
#include "tir/codes.h"

namespace lathe::tir {

const std::string* callee_of(const Call& call) {
  if (call.op != &intrinsic::call_function || call.args.empty()) return nullptr;
  const auto* function = call.args[0].as<GlobalVar>();
  return function ? &function->name : nullptr;
}

const BufferLoad* passed_element(const Expr& argument) {
  const auto* address = argument.as<Call>();
  if (!address || address->op != &intrinsic::address_of || address->args.empty()) return nullptr;
  return address->args[0].as<BufferLoad>();
}

bool passes_whole_buffer(const BufferLoad& element) {
  return std::all_of(element.indices.begin(), element.indices.end(),
                     [](const Expr& index) { return is_int(index, 0); });
}

namespace {

// How many elements a shape of constants has.
std::optional<int64_t> elements(std::span<const Expr> shape) {
  int64_t count = 1;
  for (const Expr& extent : shape) {
    const auto known = as_int(extent);
    if (!known || __builtin_mul_overflow(count, *known, &count)) return std::nullopt;
  }
  return count;
}

}  // namespace

std::optional<PassedArray> passed_array(const Call& array) {
  if (array.op != &intrinsic::tvm_stack_make_array || array.args.size() != 6) return std::nullopt;
  const BufferLoad* element = passed_element(array.args[0]);
  const auto extents = [](const Expr& e) -> const Call* {
    const auto* shape = e.as<Call>();
    return shape && shape->op == &intrinsic::tvm_stack_make_shape ? shape : nullptr;
  };
  const Call *shape = extents(array.args[1]), *strides = extents(array.args[2]);
  if (!element || !shape || (!strides && !is_int(array.args[2], 0)) || !is_int(array.args[5], 0)) return std::nullopt;
  if (!is_int(array.args[3], static_cast<int64_t>(shape->args.size()))) return std::nullopt;
  if (strides && strides->args.size() != shape->args.size()) return std::nullopt;
  if (array.args[4]->dtype != element->buffer->dtype) return std::nullopt;
  PassedArray parts{element, shape->args, {}};
  if (strides) parts.strides = strides->args;
  const auto is_size = [](const Expr& e) { return e->dtype.is_integer() && e->dtype.is_scalar(); };
  if (!std::all_of(parts.shape.begin(), parts.shape.end(), is_size)) return std::nullopt;
  if (!std::all_of(parts.strides.begin(), parts.strides.end(), is_size)) return std::nullopt;
  const auto named = elements(parts.shape), there = elements(element->buffer->shape);
  if (!strides && named && there && *named > *there) return std::nullopt;
  return parts;
}

std::string wrong_registered_call(const Call& call) {
  if (call.args.empty() || !call.args[0].is<StringImm>()) return "a registered function is called by its name, a text";
  const std::string& name = call.args[0].as<StringImm>()->value;
  if (!call.dtype.is_scalar() || call.dtype.is_handle())
    return fmt::format("'{}' gives a number or nothing, not {}", name, call.dtype.str());
  for (size_t i = 1; i < call.args.size(); ++i) {
    const Expr& arg = call.args[i];
    if (arg.is<StringImm>()) continue;
    const bool number =
        arg->dtype.is_scalar() && (arg->dtype.is_integer() || arg->dtype.is_bool() || arg->dtype.is_floating());
    const auto* array = arg.as<Call>();
    if (!number && !(array && passed_array(*array)))
      return fmt::format("argument {} of '{}' is neither a buffer nor a number nor a text", i - 1, name);
  }
  return {};
}

const std::string* calls_registered(const Stmt& s) {
  const std::string* name = nullptr;
  pre_order(s, [&](const NodeRef& n) {
    const auto* call = n.as<Call>();
    if (call && call->op == &intrinsic::call_packed && !call->args.empty() && call->args[0].is<StringImm>())
      name = &call->args[0].as<StringImm>()->value;
    return !name;
  });
  return name;
}

namespace {

// A constant is whatever number the parameter wants.
bool fits(const Expr& argument, DType wanted) {
  if (argument->dtype == wanted) return true;
  if (const auto* number = argument.as<IntImm>())
    return wanted.is_integer() && wrap_integer(number->value, wanted) == number->value;
  return argument.is<FloatImm>() && wanted.is_floating() && wanted.is_scalar();
}

class CallCheck {
 public:
  explicit CallCheck(const IRModule& module) : module_(module) {}

  support::Diagnostics run() {
    for (const auto& [name, function] : module_)
      if (const auto* f = function.as<PrimFunc>()) visit(name, *f);
    return std::move(found_);
  }

 private:
  void report(const NodeRef& at, std::string message) {
    if (found_.size() >= 16) return;
    const ir::Origin origin = at->origin() ? at->origin() : statement_;
    found_.push_back({.code = codes::wrong_call, .place = origin ? *origin : support::Place(), .message = message});
  }

  // The functions that a function calls are looked at before it is done: one that is met again calls itself.
  void visit(const std::string& name, const PrimFunc& function) {
    if (!done_.insert(name).second) return;
    open_.push_back(name);
    std::vector<std::pair<std::string, NodeRef>> called;
    std::unordered_set<const Node*> statements;
    statement_ = {};
    pre_order(function.body, [&](const NodeRef& n) {
      if (n->node_class().family == StmtNode::family && n->origin()) statement_ = n->origin();
      if (const auto* alone = n.as<Evaluate>()) statements.insert(alone->value.get());
      const auto* call = n.as<Call>();
      if (call && call->op == &intrinsic::call_packed)
        if (const std::string wrong = wrong_registered_call(*call); !wrong.empty()) report(n, wrong);
      if (!call || call->op != &intrinsic::call_function) return true;
      if (const std::string* callee = checked(*call, statements.count(call) != 0)) called.emplace_back(*callee, n);
      return true;
    });
    for (const auto& [callee, at] : called) {
      const auto met = std::find(open_.begin(), open_.end(), callee);
      if (met == open_.end()) {
        const Function next = module_.find_as<PrimFunc>(callee);
        visit(callee, *next);
        continue;
      }
      std::string circle;
      for (auto it = met; it != open_.end(); ++it) circle += "'" + *it + "', which calls ";
      report(at, "'" + name + "' calls " + circle + "'" + callee + "': functions do not call themselves");
    }
    open_.pop_back();
  }

  // The callee, where it is a function that can be called.
  const std::string* checked(const Call& call, bool is_statement) {
    const NodeRef at(&call);
    const std::string* name = callee_of(call);
    if (!name) return report(at, "a call names no function of the module"), nullptr;
    const Function callee = module_.find_as<PrimFunc>(*name);
    if (!callee)
      return report(at, module_.find(*name) ? "'" + *name + "' is a graph function, which tensor functions do not call"
                                            : "there is no function '" + *name + "' in the module"),
             nullptr;
    if (!is_statement || !call.dtype.is_void())
      report(at, "'" + *name + "' gives no value: its results are what it stores, and a call of it is a statement");
    bool returns = false;
    pre_order(callee->body, [&](const NodeRef& n) {
      const auto* inner = n.as<Call>();
      returns |= inner && inner->op == &intrinsic::ret;
      return !returns;
    });
    if (returns) report(at, "'" + *name + "' leaves by T.ret, so other functions do not call it");
    const size_t given = call.args.size() - 1;
    if (given != callee->params.size()) {
      report(at, fmt::format("'{}' takes {} arguments, not {}", *name, callee->params.size(), given));
      return name;
    }
    for (size_t i = 0; i < given; ++i) argument(at, *callee, *name, i, call.args[i + 1]);
    return name;
  }

  void argument(const NodeRef& at, const PrimFunc& callee, const std::string& name, size_t number, const Expr& given) {
    const Var& param = callee.params[number];
    const Buffer wanted = callee.buffer_of(param);
    const auto refuse = [&](const std::string& what) {
      report(at,
             fmt::format("argument {} of '{}', '{}', is {}", number, name, wanted ? wanted->name : param->name, what));
    };
    if (!wanted) {
      if (param->dtype.is_handle()) return refuse("an address that no buffer is matched with");
      if (!fits(given, param->dtype)) refuse(fmt::format("{}, not {}", given->dtype.str(), param->dtype.str()));
      return;
    }
    if (!given->dtype.is_handle()) return refuse(fmt::format("a buffer, not a value of {}", given->dtype.str()));
    const BufferLoad* element = passed_element(given);
    if (element && element->buffer->dtype != wanted->dtype)
      refuse(fmt::format("a buffer of {}, not of {}", wanted->dtype.str(), element->buffer->dtype.str()));
    if (!element && !given.is<VarNode>()) refuse("a buffer, or the address of an element of one");
  }

  const IRModule& module_;
  support::Diagnostics found_;
  std::unordered_set<std::string> done_;
  std::vector<std::string> open_;  // the functions around the one that is looked at, outermost first
  ir::Origin statement_;
};

}  // namespace

support::Diagnostics check_calls(const IRModule& module) { return CallCheck(module).run(); }

}  // namespace lathe::tir
