// What is written out for targets that this machine may not be, by the interpreter.
#include "codegen/emit/math/expand.h"

#include <gtest/gtest.h>

#include "ir/visit.h"
#include "tir/interpret/interpret.h"
#include "tir/stmt.h"

namespace lathe::codegen::math {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

constexpr int64_t count = 16 * 64;

// sigmoid of `count` elements, so many lanes at a time, as a target with these instructions computes it.
std::vector<uint8_t> sigmoids(int lanes, const Native& native, const std::vector<float>& values) {
  const Buffer a = buffer("A", {int64(count)}, DType::float32()), b = buffer("B", {int64(count)}, DType::float32());
  const Var i = var("i");
  const Expr at = lanes == 1 ? Expr(i) : Expr(make<Ramp>(Expr(i * lanes), int64(1), int64_t{lanes}));
  const Expr whole = call(intrinsic::sigmoid, load(a, {at}));
  const Expr y = rewrite_post_order(whole, [&](NodeRef n) -> NodeRef {  // and what its expansion calls
    for (const auto* next = n.as<Call>(); next; next = n.as<Call>()) {
      const Expr expanded = expand(*next, native);
      if (!expanded) break;
      n = expanded;
    }
    return n;
  });
  const Stmt body = make<For>(i, int64(0), int64(count / lanes), ForKind::serial,
                              Stmt(make<BufferStore>(b, y, std::vector<Expr>{at})));
  std::vector<TensorBuffer> args{TensorBuffer::zeros(DType::float32(), {count}),
                                 TensorBuffer::uninitialised(DType::float32(), {count})};
  for (int64_t k = 0; k < count; ++k) args[0].set_float(k, values[static_cast<size_t>(k)]);
  const support::Status ran = interpret(prim_func({a, b}, body), args);
  EXPECT_TRUE(ran.ok()) << support::render(ran.diagnostics());
  return args[1].bytes;
}

// An instruction that scales vectors alone leaves single elements to two products, below the normal numbers too.
TEST(expand, sigmoid_of_an_element_has_the_bits_of_a_vector_s_lane) {
  const Native wide{.fma = true, .ldexp_lanes = 16, .table_entries = 16, .paired_entries = 32};
  std::vector<float> values;
  for (int64_t k = 0; k < count; ++k) values.push_back(-120.0F + 0.21F * static_cast<float>(k));
  const std::vector<uint8_t> vectors = sigmoids(16, wide, values);
  EXPECT_EQ(vectors, sigmoids(1, wide, values));
  EXPECT_EQ(vectors, sigmoids(8, wide, values));
}

}  // namespace
}  // namespace lathe::codegen::math
