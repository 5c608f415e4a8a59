#include "codegen/null/emit_null.h"

#include <gtest/gtest.h>

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

Kernel copy_kernel(ForKind kind) {
  const Buffer a = buffer("A", {int64(8)}, DType::float32()), b = buffer("B", {int64(8)}, DType::float32());
  const Var i = var("i"), n = size_var("n");
  const Stmt body = make<For>(i, int64(0), n, kind, Stmt(make<BufferStore>(b, load(a, {i}), std::vector<Expr>{i})));
  return {"copy", prim_func({a, b}, body, {n})};
}

target::Target null_target() { return target::parse_target("null").value_or_throw(); }

TEST(emit_null, lists_what_a_kernel_is_made_of) {
  EXPECT_EQ(emit_null({copy_kernel(ForKind::parallel)}, null_target(), {}).value_or_throw(),
            "kernel copy\n"
            "  buffer A: float32[8]\n"
            "  buffer B: float32[8]\n"
            "  scalar n: int64\n"
            "  body: 1 BufferStore 1 For\n");
}

TEST(emit_null, has_listings_only) {
  const auto refused = emit_null({copy_kernel(ForKind::serial)}, null_target(), {.kind = EmitKind::object});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code.name, "codegen-unsupported-emission");
  EXPECT_NE(refused.diagnostics()[0].message.find("object"), std::string::npos);
}

TEST(emit_null, refuses_what_is_not_kernel_tir) {
  const auto refused = emit_null({copy_kernel(ForKind::vectorized)}, null_target(), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code.name, "codegen-illegal-kernel");
  EXPECT_NE(refused.diagnostics()[0].message.find("'copy'"), std::string::npos);
}

}  // namespace
}  // namespace lathe::codegen
