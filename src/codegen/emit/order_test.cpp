#include "codegen/emit/order.h"

#include <gtest/gtest.h>

#include "ir/build.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

const Buffer in = buffer("A", {int64(1024)}, DType::float32());
const Buffer out = buffer("B", {int64(1024)}, DType::float32());
const Buffer sums = buffer("s", {int64(32)}, DType::float32(), "register");

Expr lanes_of(int lanes) { return lanes == 1 ? Expr(int64(0)) : Expr(make<Ramp>(int64(0), int64(1), int64_t{lanes})); }

Stmt stored(const Buffer& to, const Expr& value) {
  return make<BufferStore>(to, value, std::vector<Expr>{lanes_of(value->dtype.lanes)});
}

bool kept(const Stmt& body, const std::string& target = "x86-64-v3") {
  return keeps_order({"kernel", prim_func({in, out}, body)}, target::parse_target(target).value_or_throw());
}

TEST(keeps_order, where_several_vectors_take_the_steps_of_a_function) {
  const auto of = [](const Intrinsic& f, int lanes) { return stored(out, call(f, load(in, {lanes_of(lanes)}))); };
  EXPECT_TRUE(kept(of(intrinsic::erf, 32)));
  EXPECT_TRUE(kept(of(intrinsic::exp, 16)));
  EXPECT_TRUE(kept(of(intrinsic::log, 8), "x86-64-v2")) << "two registers there";
  EXPECT_FALSE(kept(of(intrinsic::erf, 8))) << "one vector alone";
  EXPECT_FALSE(kept(of(intrinsic::erf, 1)));
  EXPECT_FALSE(kept(of(intrinsic::sqrt, 32))) << "an instruction";
  EXPECT_FALSE(kept(of(intrinsic::erf, 64), "x86-64-v4")) << "registers enough";
  EXPECT_FALSE(kept(stored(out, load(in, {lanes_of(32)}))));
}

TEST(keeps_order, of_no_kernel_that_adds_up_products) {
  const Expr at = lanes_of(32);
  const Expr product = load(in, {at}) * load(in, {at});
  const Stmt function = stored(out, call(intrinsic::erf, load(in, {at})));
  const auto with = [&](const Stmt& s) { return kept(make<SeqStmt>(std::vector<Stmt>{s, function})); };
  EXPECT_FALSE(with(stored(sums, load(sums, {at}) + product)));
  EXPECT_FALSE(with(
      stored(sums, call(DType::float_(32, 32), intrinsic::fma, {load(in, {at}), load(in, {at}), load(sums, {at})}))));
  EXPECT_TRUE(with(stored(sums, load(sums, {at}) + load(in, {at})))) << "a sum of elements";
  EXPECT_TRUE(with(stored(out, load(in, {at}) + product))) << "in memory";
}

}  // namespace
}  // namespace lathe::codegen
