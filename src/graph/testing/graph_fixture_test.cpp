#include "graph/testing/graph_fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "graph/rewrite_bindings.h"
#include "ops/operators.h"
#include "relax/interpret/evaluate.h"
#include "relax/script/dialect.h"
#include "relax/verify.h"
#include "script/testing/expected_text.h"
#include "tir/script/dialect.h"

namespace lathe::graph::testing {
namespace {

ir::TensorData tensor(const Extents& shape, const std::vector<double>& elements, ir::DType dtype) {
  std::string bytes;
  for (const double value : elements) {
    const uint64_t bits =
        dtype.is_floating() ? ir::encode_float(dtype, value) : static_cast<uint64_t>(static_cast<int64_t>(value));
    bytes.append(reinterpret_cast<const char*>(&bits), static_cast<size_t>(dtype.element_bytes()));
  }
  return ir::tensor_data(dtype, shape, std::move(bytes));
}

ir::TensorData random_tensor(const Extents& shape, ir::DType dtype, uint64_t seed, double low, double high) {
  std::mt19937_64 random(seed);
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  std::vector<double> elements;
  for (int64_t i = 0; i < count; ++i) {
    const double value = low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
    elements.push_back(dtype.is_floating() ? value : std::round(value));
  }
  return tensor(shape, elements, dtype);
}

relax::Function main_of(const ir::IRModule& module) {
  auto function = module.find_as<relax::FunctionNode>("main");
  support::require(static_cast<bool>(function), "the module has no main");
  return function;
}

// Whether some extent of a parameter is symbolic.
bool symbolic(const relax::Function& function) {
  for (const Var& param : function->params)
    for (const ir::Expr& extent : *as_tensor(param)->shape)
      if (!ir::as_int(extent)) return true;
  return false;
}

std::vector<ir::TensorData> inputs(const relax::Function& function, int64_t symbol) {
  std::vector<ir::TensorData> all;
  for (const Var& param : function->params) {
    Extents shape;
    for (const ir::Expr& extent : *as_tensor(param)->shape) shape.push_back(ir::as_int(extent).value_or(symbol));
    all.push_back(random_tensor(shape, as_tensor(param)->dtype, 11 + all.size(), -3, 3));
  }
  return all;
}

std::string difference(const ir::TensorData& a, const ir::TensorData& b, double tolerance) {
  if (a->dtype != b->dtype || a->shape != b->shape) return "another type";
  if (tolerance == 0) return a->view() == b->view() ? "" : "other bits";
  for (int64_t i = 0; i < a->elements(); ++i) {
    const double x = ir::float_at(*a, i), y = ir::float_at(*b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x))))
      return fmt::format("element {} is {}, not {}", i, y, x);
  }
  return "";
}

}  // namespace

relax::BlockBuilder& Graph::builder() {
  if (!begun_) {
    builder_.begin_function("main", params_);
    builder_.begin_dataflow();
    begun_ = true;
  }
  return builder_;
}

Expr Graph::input(const std::string& name, std::vector<ir::Expr> shape, ir::DType dtype) {
  support::require(!begun_, "inputs come first");
  params_.push_back(relax::relax_var(name, relax::tensor_info(std::move(shape), dtype)));
  return params_.back();
}

Expr Graph::input(const std::string& name, const Extents& shape, ir::DType dtype) {
  support::require(!begun_, "inputs come first");
  params_.push_back(relax::relax_var(name, relax::tensor_info(shape, dtype)));
  return params_.back();
}

Expr Graph::call(const relax::Operator& op, std::vector<Expr> args, relax::AttributesRef attributes) {
  return builder().call(op, std::move(args), std::move(attributes)).value_or_throw();
}

Expr Graph::emit(Expr value) { return builder().emit(std::move(value)); }

ir::IRModule Graph::finish(Expr result) {
  result = builder().emit(std::move(result));
  builder_.end_block();
  const relax::Function function = builder_.end_function(result);
  ir::IRModule module = builder_.finish();
  module.set("main", make_function(params_, all_bindings(function), std::move(result), {}));  // the result is no alias
  return module;
}

ir::IRModule Graph::finish(std::vector<Expr> results) {
  std::vector<relax::StructInfo> infos;
  for (const Expr& result : results) infos.push_back(result->struct_info);
  return finish(relax::with_struct_info(relax::make<relax::Tuple>(std::move(results)),
                                        relax::make<relax::TupleStructInfo>(std::move(infos))));
}

Expr values(const Extents& shape, const std::vector<double>& elements, ir::DType dtype) {
  return relax::constant(tensor(shape, elements, dtype));
}

Expr filled(const Extents& shape, double value, ir::DType dtype) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return values(shape, std::vector<double>(static_cast<size_t>(count), value), dtype);
}

Expr weights(const Extents& shape, uint64_t seed, double low, double high) {
  return relax::constant(random_tensor(shape, ir::DType::float32(), seed, low, high));
}

Expr shape(const Extents& extents) {
  std::vector<ir::Expr> all;
  for (const int64_t extent : extents) all.push_back(ir::int64(extent));
  return relax::make<relax::ShapeExpr>(std::move(all));
}

std::vector<std::string> calls(const ir::IRModule& module) {
  std::vector<std::string> names;
  const auto name_of = [&](const Expr& value) -> std::string {
    if (value.is<relax::TupleGetItem>()) return "item";
    const auto* call = value.as<relax::Call>();
    const relax::Operator* op = call ? relax::callee_operator(*call) : nullptr;
    return op ? std::string(op->name) : "";
  };
  for (const Binding& binding : all_bindings(main_of(module))) {
    const auto* bound = binding.as<VarBinding>();
    if (!bound) continue;
    const auto* call = bound->value.as<relax::Call>();
    const auto* callee = call ? call->callee.as<GlobalVar>() : nullptr;
    if (callee) {
      std::string group;
      for (const Binding& inner : all_bindings(module.find_as<relax::FunctionNode>(callee->name)))
        group += (group.empty() ? "[" : " ") + name_of(inner.as<VarBinding>()->value);
      names.push_back(group + "]");
    } else if (std::string name = name_of(bound->value); !name.empty()) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

const relax::Call* find_call(const ir::IRModule& module, std::string_view op) {
  for (const Binding& binding : all_bindings(main_of(module)))
    if (const auto* bound = binding.as<VarBinding>())
      if (const auto* call = as_call_of(bound->value, op)) return call;
  return nullptr;
}

const relax::Constant* constant_result(const ir::IRModule& module) {
  return main_of(module)->body.as<SeqExpr>()->body.as<relax::Constant>();
}

ir::Pass for_four_lanes(support::Result<ir::IRModule> (*pass)(ir::IRModule, const target::Target&,
                                                              const ir::PassContext&)) {
  target::Target target;
  target.vector_bits = 128;
  return [pass, target](ir::IRModule module, const ir::PassContext& context) {
    return pass(std::move(module), target, context);
  };
}

ir::PassContext context() {
  ir::PassContext context;
  context.evaluate = [](const ir::IRModule& module, const std::string& function,
                        const std::vector<ir::TensorData>& inputs) {
    return relax::evaluate(module, function, inputs);
  };
  return context;
}

void expect_text(const ir::Pass& pass, const char* test) {
  const auto graph = relax::script_dialect(ops::default_operators());
  const script::Dialect* const dialects[] = {&tir::script_dialect(), graph.get()};
  const auto compared = [&](ir::IRModule module, const ir::PassContext& context) {
    support::Result<ir::IRModule> after = pass(module, context);
    if (after.ok()) EXPECT_EQ(difference(module, *after, 1e-5), "");
    return after;
  };
  const std::string unexpected = script::testing::check_cases(compared, context(), test, dialects);
  EXPECT_TRUE(unexpected.empty()) << unexpected;
}

std::string difference(const ir::IRModule& before, const ir::IRModule& after, double tolerance) {
  if (const auto found = relax::verify(after); !found.empty()) return found.front().message;
  const relax::Function function = main_of(before);
  bool ran = false;
  for (const int64_t symbol : symbolic(function) ? Extents{1, 2, 7, 0} : Extents{1}) {
    const auto given = inputs(function, symbol);
    const auto computed = relax::evaluate(before, "main", given);
    auto again = relax::evaluate(after, "main", given);
    if (!computed.ok()) {
      if (again.ok()) return fmt::format("where symbols are {}: accepts what was refused", symbol);
      continue;
    }
    ran = true;
    const auto expected = *computed, actual = std::move(again).value_or_throw();
    if (expected.empty() || expected.size() != actual.size()) return "another number of results";
    for (size_t i = 0; i < expected.size(); ++i)
      if (const std::string how = difference(expected[i], actual[i], tolerance); !how.empty())
        return fmt::format("result {} where symbols are {}: {}", i, symbol, how);
  }
  return ran ? "" : "no input is accepted";
}

}  // namespace lathe::graph::testing
