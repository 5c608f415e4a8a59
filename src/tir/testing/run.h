// Running one pass on one function, in tests.
#pragma once

#include <gtest/gtest.h>

#include "ir/visit.h"
#include "script/testing/expected_text.h"
#include "tir/passes/passes.h"
#include "tir/script/dialect.h"
#include "tir/testing/differential.h"

namespace lathe::tir::testing {

using PassFunction = Result<IRModule> (*)(IRModule, const PassContext&);

// The function after the passes; a refusal fails the test.
inline Function run(const Function& f, std::initializer_list<PassFunction> passes, const PassContext& context = {}) {
  IRModule module;
  module.set("main", f);
  for (const PassFunction pass : passes) {
    auto result = pass(std::move(module), context);
    if (!result.ok()) ADD_FAILURE() << support::render(result.diagnostics());
    module = std::move(result).value_or_throw();
  }
  return module.find_as<PrimFunc>("main");
}

// The code of the first diagnostic; empty when the pass accepts.
inline std::string refusal(const Function& f, PassFunction pass) {
  IRModule module;
  module.set("main", f);
  const auto result = pass(std::move(module), {});
  return result.ok() ? std::string() : std::string(result.diagnostics()[0].code.name);
}

// The pass makes of the programs in x_test.txt what is expected there, and that computes the same (with 5 for n and 3
// for m); `test` is the __FILE__ of x_test.cpp.
inline void expect_text(PassFunction pass, const char* test) {
  const script::Dialect* const dialects[] = {&script_dialect()};
  const auto compared = [&](IRModule module, const PassContext& context) {
    Result<IRModule> after = pass(module, context);
    for (const auto& [name, function] : after.ok() ? module : IRModule())
      EXPECT_EQ(difference(ir::cast<PrimFunc>(function), after->find_as<PrimFunc>(name), 3, {{"n", 5}, {"m", 3}},
                           nullptr, 0, &module),
                "");
    return after;
  };
  const std::string unexpected = script::testing::check_cases(compared, {}, test, dialects);
  EXPECT_TRUE(unexpected.empty()) << unexpected;
}

// How many nodes of kind T there are.
template <class T>
int count(const Function& f) {
  int n = 0;
  post_order(f->body, [&](const NodeRef& node) { n += node.is<T>(); });
  return n;
}

// A function with one flat loop: B[i] = value(i), over inputs A and output B of `n` elements.
template <class Value>
Function flat_loop(int64_t n, ForKind kind, Value value, DType dtype = DType::float32()) {
  const Buffer a = buffer("A", {int64(n)}, dtype), b = buffer("B", {int64(n)}, dtype);
  const Var i = var("i");
  const Stmt store = make<BufferStore>(b, value(a, Expr(i)), std::vector<Expr>{i});
  return prim_func({a, b}, make<For>(i, int64(0), int64(n), kind, store));
}

}  // namespace lathe::tir::testing
