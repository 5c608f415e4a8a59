#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lower/codes.h"
#include "lower/states/states.h"
#include "relax/infer.h"
#include "relax/strings.h"

namespace lathe::lower {

using namespace relax;  // NOLINT: the subject of this file

namespace {

using List = ir::Value::List;
using Map = ir::Value::Map;

constexpr const char* attribute = "states";

support::Diagnostic refuse(std::string message) { return {.code = codes::wrong_state, .message = std::move(message)}; }

// The text that '*' stands for where `name` fits `pattern`; a pattern without one fits itself alone.
std::optional<std::string> matched(const std::string& pattern, const std::string& name) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return name == pattern ? std::optional(std::string()) : std::nullopt;
  const std::string before = pattern.substr(0, star), after = pattern.substr(star + 1);
  if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return std::nullopt;
  return name.substr(star, name.size() - before.size() - after.size());
}

std::string filled(const std::string& pattern, const std::string& text) {
  const size_t star = pattern.find('*');
  return star == std::string::npos ? pattern : pattern.substr(0, star) + text + pattern.substr(star + 1);
}

// An input and an output by number.
struct Pair {
  size_t input, output;
};

class StateKeeping {
 public:
  explicit StateKeeping(const relax::Function& function) : function_(function), results_{body().body} {
    if (const auto* tuple = body().body.as<Tuple>()) results_ = tuple->items;
    const auto* names = function->attrs.get<List>("output_names");
    for (size_t i = 0; i < results_.size(); ++i) {
      const auto* name = names && i < names->size() ? (*names)[i].get<std::string>() : nullptr;
      output_names_.push_back(name ? *name : fmt::format("output_{}", i));
    }
  }

  Result<relax::Function> run(const std::vector<StateNames>& names) {
    if (function_->attrs.contains(attribute)) return refuse("the program says already which states it keeps");
    for (const auto& [input, output] : names) TRY(add(input, output));
    for (const Pair& pair : pairs_) TRY(check(pair));
    return reordered();
  }

 private:
  const SeqExpr& body() const { return *function_->body.as<SeqExpr>(); }

  std::vector<std::string> input_names() const {
    std::vector<std::string> names;
    for (const Var& param : function_->params) names.push_back(param->name);
    return names;
  }

  support::Status add(const std::string& input, const std::string& output) {
    if ((input.find('*') == std::string::npos) != (output.find('*') == std::string::npos))
      return refuse(fmt::format("the state '{}={}' has a '*' on one side alone", input, output));
    const std::vector<std::string> inputs = input_names();
    bool is_found = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto text = matched(input, inputs[i]);
      if (!text) continue;
      is_found = true;
      const std::string wanted = filled(output, *text);
      const auto result = std::find(output_names_.begin(), output_names_.end(), wanted);
      if (result == output_names_.end())
        return refuse(fmt::format("the state '{}' cannot become '{}': there is no such output; the model gives {}",
                                  inputs[i], wanted, fmt::join(output_names_, ", ")));
      pairs_.push_back({i, static_cast<size_t>(result - output_names_.begin())});
    }
    if (is_found) return support::success();
    return refuse(
        fmt::format("there is no input '{}' to keep as a state; the model takes {}", input, fmt::join(inputs, ", ")));
  }

  support::Status check(const Pair& pair) const {
    const Var& param = function_->params[pair.input];
    const std::string& output = output_names_[pair.output];
    for (const Pair& other : pairs_)
      if (&other != &pair && (other.input == pair.input || other.output == pair.output))
        return refuse(fmt::format("'{}={}' and '{}={}' are the same state", param->name, output,
                                  function_->params[other.input]->name, output_names_[other.output]));
    const auto *before = as_tensor(param), *after = as_tensor(results_[pair.output]);
    if (!before || !after || !before->shape || !after->shape || before->dtype == string_dtype ||
        before->dtype.storage_bits() % 8 != 0)
      return refuse(
          fmt::format("the state '{}' must be a tensor of known rank, of numbers of whole bytes, and so must "
                      "'{}', which it becomes",
                      param->name, output));
    if (!(before->dtype == after->dtype) || before->ndim != after->ndim)
      return refuse(fmt::format("the state '{}' is {} of {} dimensions and cannot become '{}', {} of {}", param->name,
                                before->dtype.str(), before->ndim, output, after->dtype.str(), after->ndim));
    for (size_t d = 0; d < before->shape->size(); ++d) {
      const auto was = ir::as_int((*before->shape)[d]), is = ir::as_int((*after->shape)[d]);
      const bool is_fixed = !(*before->shape)[d].is<ir::VarNode>();
      if (is_fixed && was != is)
        return refuse(
            fmt::format("the state '{}' has {} elements along axis {} at every call, and cannot become '{}', "
                        "which has {}; a dimension with a name may change",
                        param->name, *was, d, output, is ? std::to_string(*is) : "another number"));
    }
    return support::success();
  }

  relax::Function reordered() const {
    std::vector<Var> params;
    std::vector<Expr> results;
    List names;
    std::vector<State> states;
    for (size_t i = 0; i < function_->params.size(); ++i)
      if (std::none_of(pairs_.begin(), pairs_.end(), [&](const Pair& pair) { return pair.input == i; }))
        params.push_back(function_->params[i]);
    for (size_t i = 0; i < results_.size(); ++i) {
      if (std::any_of(pairs_.begin(), pairs_.end(), [&](const Pair& pair) { return pair.output == i; })) continue;
      results.push_back(results_[i]);
      names.emplace_back(output_names_[i]);
    }
    for (const Pair& pair : pairs_) {
      params.push_back(function_->params[pair.input]);
      states.push_back({.output = static_cast<int64_t>(results.size())});
      results.push_back(results_[pair.output]);
      names.emplace_back(output_names_[pair.output]);
    }
    ir::Attributes attrs = function_->attrs;
    attrs.set("output_names", std::move(names));
    set_states(attrs, states);
    const Expr result = tuple_of(std::move(results));
    return ir::with(*function_, [&](FunctionNode& copy) {
      copy.params = std::move(params);
      copy.attrs = std::move(attrs);
      copy.ret_struct_info = result->struct_info;
      copy.body = with_struct_info(ir::with(body(), [&](SeqExpr& own) { own.body = result; }), result->struct_info);
    });
  }

  const relax::Function& function_;
  std::vector<Expr> results_;
  std::vector<std::string> output_names_;
  std::vector<Pair> pairs_;
};

}  // namespace

std::vector<State> states_of(const relax::FunctionNode& function) {
  std::vector<State> states;
  const List* all = function.attrs.get<List>(attribute);
  for (size_t i = 0; all && i < all->size(); ++i) {
    State& state = states.emplace_back();
    const Map* entries = (*all)[i].get<Map>();
    if (!entries) continue;
    for (const auto& [name, value] : *entries) {
      if (name == "output" && value.get<int64_t>()) state.output = *value.get<int64_t>();
      if (name == "axis" && value.get<int64_t>()) state.axis = *value.get<int64_t>();
      if (name == "length" && value.get<std::string>()) state.length = *value.get<std::string>();
    }
  }
  return states;
}

void set_states(ir::Attributes& attributes, const std::vector<State>& states) {
  List all;
  for (const State& state : states)
    all.emplace_back(state.is_in_place() ? Map{{"axis", state.axis}, {"length", state.length}}
                                         : Map{{"output", state.output}});
  attributes.set(attribute, std::move(all));
}

ir::Expr as_size(const Expr& e) {
  const auto* shape = e->struct_info.as<ShapeStructInfo>();
  return shape && shape->values && shape->ndim == 1 ? shape->values->at(0) : ir::Expr();
}

namespace {

bool has_memory(const TensorStructInfo& info, const State& state) {
  return state.axis >= 0 && state.axis < info.ndim && info.dtype.storage_bits() % 8 == 0 &&
         constant_shape(*info.shape).has_value();
}

// Whether one of the parameters is the symbol.
bool counts(std::span<const Var> params, const std::string& symbol) {
  return std::any_of(params.begin(), params.end(), [&](const Var& param) {
    const ir::Expr size = as_size(param);
    const auto* counted = size ? size.as<ir::VarNode>() : nullptr;
    return counted && counted->name == symbol;
  });
}

}  // namespace

support::Status check_states(const relax::FunctionNode& function) {
  if (!function.attrs.contains(attribute)) return support::success();
  const auto wrong = [](const std::string& why) {
    return refuse("the attribute 'states' says what cannot be: " + why);
  };
  const std::vector<State> states = states_of(function);
  const auto* body = function.body.as<SeqExpr>();
  const auto* results = body ? body->body.as<Tuple>() : nullptr;
  if (!results) return wrong("the function's result is no tuple");
  if (!function.attrs.get<List>(attribute) || states.size() > function.params.size())
    return wrong("it is no list of some of the parameters");
  const auto replaced = std::count_if(states.begin(), states.end(), [](const State& s) { return !s.is_in_place(); });
  auto next = std::ssize(results->items) - replaced;
  const std::span<const Var> params = std::span(function.params).last(states.size());
  bool is_behind_sizes = false;
  for (size_t i = 0; i < states.size(); ++i) {
    const State& state = states[i];
    const auto* info = as_tensor(params[i]);
    const bool is_size = as_size(params[i]) != nullptr;
    if (info ? !info->shape || is_behind_sizes : !is_size || state.is_in_place())
      return wrong(fmt::format("'{}' is no tensor of known rank in front of lengths", params[i]->name));
    is_behind_sizes = is_size;
    if (state.is_in_place()) {
      if (!has_memory(*info, state) || !counts(params, state.length))
        return wrong(fmt::format("'{}' is no memory that a length counts in", params[i]->name));
      continue;
    }
    if (next < 0 || state.output != next++) return wrong("the results that replace states are not the last ones");
    const Expr& result = results->items[static_cast<size_t>(state.output)];
    const auto* after = as_tensor(result);
    if (is_size ? !as_size(result) : !after || !(after->dtype == info->dtype) || after->ndim != info->ndim)
      return wrong(fmt::format("'{}' cannot become result {}", params[i]->name, state.output));
  }
  return support::success();
}

support::Result<ir::IRModule> keep_states(ir::IRModule module, const std::vector<StateNames>& names) {
  if (names.empty()) return module;
  const auto function = module.find_as<FunctionNode>("main");
  if (!function) return refuse("a module without a function 'main' keeps no states");
  module.set("main", TRY(StateKeeping(function).run(names)));
  return module;
}

}  // namespace lathe::lower
