#include "lower/program/scalars.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/core/program_fixture.h"

namespace lathe::lower {
namespace {

using abi::Opcode;
using abi::ValueKind;
using runtime::testing::i64;
using runtime::testing::last_message;

using Values = std::vector<int64_t>;
// An expression and what it means, by plain C++.
struct Meaning {
  ir::Expr e;
  std::function<int64_t(const Values&)> value;
};

int64_t rounded_down(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

class RandomExpressions {
 public:
  RandomExpressions(std::vector<ir::Var> vars, uint64_t seed) : vars_(std::move(vars)), random_(seed) {}

  Meaning integer(int depth) {
    if (depth == 0 || pick(6) == 0) return leaf();
    const Meaning a = integer(depth - 1), b = integer(depth - 1);
    const int64_t divisors[] = {-7, -2, -1, 1, 2, 3, 5};
    const int64_t d = divisors[pick(7)];
    switch (pick(8)) {
      case 0:
        return {ir::add(a.e, b.e), [=](const Values& v) { return a.value(v) + b.value(v); }};
      case 1:
        return {ir::sub(a.e, b.e), [=](const Values& v) { return a.value(v) - b.value(v); }};
      case 2:
        return {ir::mul(a.e, b.e), [=](const Values& v) { return a.value(v) * b.value(v); }};
      case 3:
        return {ir::floordiv(a.e, ir::int64(d)), [=](const Values& v) { return rounded_down(a.value(v), d); }};
      case 4:
        return {ir::floormod(a.e, ir::int64(d)),
                [=](const Values& v) { return a.value(v) - rounded_down(a.value(v), d) * d; }};
      case 5:
        return {ir::min(a.e, b.e), [=](const Values& v) { return std::min(a.value(v), b.value(v)); }};
      case 6:
        return {ir::max(a.e, b.e), [=](const Values& v) { return std::max(a.value(v), b.value(v)); }};
      default: {
        const Meaning c = condition(depth - 1);
        return {ir::select(c.e, a.e, b.e), [=](const Values& v) { return c.value(v) ? a.value(v) : b.value(v); }};
      }
    }
  }

  Meaning condition(int depth) {
    const Meaning a = integer(depth), b = integer(depth);
    switch (depth == 0 ? pick(6) : pick(9)) {
      case 0:
        return {ir::eq(a.e, b.e), [=](const Values& v) { return a.value(v) == b.value(v); }};
      case 1:
        return {ir::ne(a.e, b.e), [=](const Values& v) { return a.value(v) != b.value(v); }};
      case 2:
        return {ir::lt(a.e, b.e), [=](const Values& v) { return a.value(v) < b.value(v); }};
      case 3:
        return {ir::le(a.e, b.e), [=](const Values& v) { return a.value(v) <= b.value(v); }};
      case 4:
        return {ir::gt(a.e, b.e), [=](const Values& v) { return a.value(v) > b.value(v); }};
      case 5:
        return {ir::ge(a.e, b.e), [=](const Values& v) { return a.value(v) >= b.value(v); }};
      case 6: {
        const Meaning x = condition(depth - 1);
        return {ir::logical_not(x.e), [=](const Values& v) { return !x.value(v); }};
      }
      default: {
        const Meaning x = condition(depth - 1), y = condition(depth - 1);
        if (pick(2)) return {ir::logical_and(x.e, y.e), [=](const Values& v) { return x.value(v) && y.value(v); }};
        return {ir::logical_or(x.e, y.e), [=](const Values& v) { return x.value(v) || y.value(v); }};
      }
    }
  }

 private:
  size_t pick(size_t count) { return random_() % count; }
  Meaning leaf() {
    if (pick(3) == 0) {
      const int64_t value = static_cast<int64_t>(pick(11)) - 5;
      return {ir::int64(value), [=](const Values&) { return value; }};
    }
    const size_t i = pick(vars_.size());
    return {vars_[i], [=](const Values& v) { return v[i]; }};
  }

  std::vector<ir::Var> vars_;
  std::mt19937_64 random_;
};

TEST(scalars, the_runtime_computes_what_expressions_mean) {
  const std::vector<ir::Var> vars{ir::size_var("a"), ir::size_var("b"), ir::size_var("c")};
  RandomExpressions random(vars, 17);
  std::vector<Meaning> meanings;
  for (int i = 0; i < 200; ++i) meanings.push_back(random.integer(1 + i % 4));
  const auto count = static_cast<int64_t>(meanings.size());

  runtime::testing::TestArtifact artifact;
  abi::ProgramWriter program;
  program.input({.name = "x", .dtype = i64, .dims = {{3}}});
  program.output({.name = "y", .dtype = i64, .dims = {{count}}});
  const uint32_t memory = program.storage({.kind = abi::StorageKind::output, .index = 0});
  abi::FunctionWriter main = program.function("main");
  const uint32_t x = main.parameter(ValueKind::tensor, i64, 1), y = main.reg(ValueKind::tensor, i64, 1);
  Scalars scalars(program, main);
  for (size_t i = 0; i < vars.size(); ++i) {
    EXPECT_FALSE(scalars.known(vars[i] + 1));
    const uint32_t reg = main.reg(ValueKind::scalar);
    main.emit(Opcode::load_scalar, {reg, x, program.immediate(static_cast<int64_t>(i))});
    scalars.bind(vars[i], reg);
    EXPECT_TRUE(scalars.known(vars[i] + 1));
  }
  main.emit(Opcode::alloc_tensor, {y, memory, 1, program.immediate(count)});
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t value = scalars.operand(meanings[static_cast<size_t>(i)].e).value_or_throw();
    main.emit(Opcode::store_scalar, {y, program.immediate(i), value});
  }
  main.emit(Opcode::return_values, {1, y});
  program.finish_function(std::move(main));
  artifact.program = program.finish();
  const auto model = runtime::testing::open(artifact);
  const auto context = runtime::testing::context_of(model);
  ASSERT_TRUE(context) << last_message();

  for (const Values& values : {Values{0, 0, 0}, Values{1, 2, 3}, Values{-4, 7, -1}, Values{5, -5, 2}}) {
    runtime::testing::HostTensor<int64_t> in(i64, {3}, values), out(i64, {count});
    const DLTensor *inputs[] = {&in.view}, *outputs[] = {&out.view};
    ASSERT_EQ(lathe_run_into(context.get(), inputs, 1, outputs, 1), LATHE_OK) << last_message();
    for (size_t i = 0; i < meanings.size(); ++i)
      EXPECT_EQ(out.data[i], meanings[i].value(values)) << "expression " << i;
  }
}

TEST(scalars, computes_a_shared_expression_once) {
  abi::ProgramWriter program;
  abi::FunctionWriter main = program.function("main");
  Scalars scalars(program, main);
  const ir::Var n = ir::size_var("n");
  scalars.bind(n, main.reg(ValueKind::scalar));
  const ir::Expr twice = n * 2;
  const uint32_t first = scalars.operand(twice).value_or_throw();
  EXPECT_EQ(main.instruction_count(), 1u);
  EXPECT_EQ(scalars.operand(twice).value_or_throw(), first);
  EXPECT_EQ(main.instruction_count(), 1u);
  scalars.operand(ir::int64(9)).value_or_throw();  // an immediate takes no instruction
  EXPECT_EQ(main.instruction_count(), 1u);
}

TEST(scalars, refuses_an_unbound_dimension_and_what_is_no_shape_arithmetic) {
  abi::ProgramWriter program;
  abi::FunctionWriter main = program.function("main");
  Scalars scalars(program, main);
  const auto unbound = scalars.operand(ir::size_var("n") + 1);
  ASSERT_FALSE(unbound.ok());
  EXPECT_EQ(unbound.diagnostics().at(0).code.name, "lower-unbound-dimension");
  EXPECT_NE(unbound.diagnostics().at(0).message.find("'n' is not bound"), std::string::npos);
  EXPECT_FALSE(scalars.operand(ir::load(ir::buffer("b", {ir::int64(1)}, ir::DType::int64()), {ir::int64(0)})).ok());
}

}  // namespace
}  // namespace lathe::lower
