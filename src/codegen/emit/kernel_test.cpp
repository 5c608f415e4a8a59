#include "codegen/emit/kernel.h"

#include <gtest/gtest.h>

#include "ir/fields.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

const Buffer a = buffer("A", {int64(8)}, DType::float32()), b = buffer("B", {int64(8)}, DType::float32());
const Var i = var("i");

Kernel kernel(Stmt body, Attributes attrs = {}) {
  return {"k", prim_func({a, b}, std::move(body), {}, std::move(attrs))};
}
Stmt store(const Buffer& to, Expr value, Expr index, Expr predicate = nullptr) {
  return make<BufferStore>(to, std::move(value), std::vector<Expr>{std::move(index)}, std::move(predicate));
}
Stmt loop(Stmt body, ForKind kind = ForKind::serial) { return make<For>(i, int64(0), int64(8), kind, std::move(body)); }
std::string problem(const Stmt& body) {
  const support::Diagnostics found = check_kernel(kernel(body), "llvm");
  return found.empty() ? "" : found[0].message;
}

TEST(check_kernel, accepts_kernel_tir) {
  EXPECT_EQ(problem(loop(store(b, load(a, {i}), i), ForKind::parallel)), "");
  EXPECT_EQ(problem(nop()), "");
}

TEST(check_kernel, names_the_threads_that_a_target_lacks) {
  const Stmt bound = with(*loop(store(b, load(a, {i}), i), ForKind::thread_binding).as<For>(), [&](For& copy) {
    copy.thread_binding = make<IterVarNode>(Range{}, i, IterType::spatial, std::string("threadIdx.x"));
  });
  const support::Diagnostics found = check_kernel(kernel(bound), "llvm");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message,
            "kernel 'k': loop 'i' is bound to threadIdx.x, and a target of kind 'llvm' has no such threads");
  EXPECT_NE(found[0].help.find("sch.parallel"), std::string::npos);
}

TEST(check_kernel, says_what_is_wrong) {
  EXPECT_NE(problem(loop(store(b, load(a, {i}), i), ForKind::unrolled)).find("neither serial nor parallel"),
            std::string::npos);
  EXPECT_NE(problem(store(b, load(a, {i}), int64(0))).find("'i' has no value"), std::string::npos);
  EXPECT_NE(problem(store(b, load(a, {int32(0)}), int64(0))).find("is int32"), std::string::npos);
  EXPECT_NE(problem(store(b, constant(DType::int32(), 1), int64(0))).find("a store of int32"), std::string::npos);
  EXPECT_NE(problem(root_block(nop())).find("block 'root' is left"), std::string::npos);
  const Buffer stranger = buffer("C", {int64(8)}, DType::float32());
  EXPECT_NE(problem(store(stranger, load(a, {int64(0)}), int64(0))).find("'C' has no memory"), std::string::npos);
  const Expr address = call(DType::handle(), intrinsic::address_of, {load(a, {int64(0)})});
  EXPECT_NE(problem(make<Evaluate>(call(DType::int32(), intrinsic::call_packed, {make<StringImm>("f"), address})))
                .find("argument 0 of 'f' is neither a buffer nor a number nor a text"),
            std::string::npos);
}

TEST(check_kernel, holds_registers_to_constant_indices) {
  const Buffer r = buffer("r", {int64(4)}, DType::float32(), "register");
  const auto with_register = [&](Stmt body) {
    return problem(make<Allocate>(r->data, DType::float32(), std::vector<Expr>{int64(4)}, std::string("register"),
                                  std::move(body)));
  };
  EXPECT_EQ(with_register(store(r, load(a, {int64(0)}), int64(3))), "");
  EXPECT_NE(with_register(loop(store(r, load(a, {i}), i))).find("is not constant"), std::string::npos);
  EXPECT_NE(with_register(store(r, load(a, {int64(0)}), int64(4))).find("outside"), std::string::npos);
  const Expr address = call(DType::handle(), intrinsic::address_of, {load(r, {int64(0)})});
  EXPECT_NE(with_register(make<Evaluate>(address)).find("address of 'r' is taken"), std::string::npos);
  EXPECT_NE(with_register(loop(store(r, load(a, {i}), int64(0)), ForKind::parallel)).find("no memory here"),
            std::string::npos);
}

TEST(kernel_hash, leaves_the_name_out_and_takes_the_checked_nodes_in) {
  const Stmt body = loop(store(b, load(a, {i}), i));
  EXPECT_EQ(kernel_hash(kernel(body, {{"global_symbol", "x"}})), kernel_hash(kernel(body, {{"global_symbol", "y"}})));
  EXPECT_NE(kernel_hash(kernel(body)), kernel_hash(kernel(loop(store(b, load(a, {i}) + load(a, {i}), i)))));
  const auto checked = [&](const char* node) {
    const auto place = std::make_shared<const support::Place>(support::ModelNode{"m.onnx", node, "Gather"});
    return kernel(with_origin(Stmt(make<AssertStmt>(boolean(true), std::string("in range"))), place));
  };
  EXPECT_NE(kernel_hash(checked("Gather_1")), kernel_hash(checked("Gather_2")));
}

TEST(sharing_groups, come_from_the_attribute) {
  EXPECT_EQ(sharing_groups(*kernel(nop()).function), (std::vector<int>{0, 1}));
  const Attributes inplace{{"inplace", Value(Value::List{Value(Value::List{Value(0), Value(1)})})}};
  EXPECT_EQ(sharing_groups(*kernel(nop(), inplace).function), (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace lathe::codegen
