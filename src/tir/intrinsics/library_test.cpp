// The library's intrinsics: each is well formed, and offered where its instructions are.
#include "tir/intrinsics/library.h"

#include <gtest/gtest.h>

#include "tir/codes.h"
#include "tir/interpret/interpret.h"

namespace lathe::tir {
namespace {

TEST(library, has_intrinsics_that_a_context_would_take) {
  for (const std::string& name : library_intrin_names()) {
    const auto intrin = library_intrin(name);
    ASSERT_TRUE(intrin) << name;
    const auto checked = check_tensor_intrin(name, *intrin);
    EXPECT_TRUE(checked.ok()) << name << support::render(checked.ok() ? support::Diagnostics() : checked.diagnostics());
  }
  EXPECT_FALSE(library_intrin("dot_nothing"));
}

TEST(library, offers_what_the_target_has_instructions_for) {
  const auto offered = [](const char* text) { return offered_intrins(target::parse_target(text).value_or_throw()); };
  EXPECT_TRUE(offered("x86-64-v3").empty());
  const auto vnni = offered("x86_64-unknown-linux-gnu -mattr=+avx512f,+avx512vnni");
  EXPECT_EQ(vnni, std::vector<std::string>{"dot_16x4_vnni"});
}

TEST(context, takes_no_name_twice_and_none_of_the_library) {
  Context context;
  const TensorIntrin intrin = *library_intrin("dot_16x4_vnni");
  EXPECT_TRUE(context.add("mine", intrin).ok());
  EXPECT_FALSE(context.add("mine", intrin).ok());
  EXPECT_TRUE(context.add("mine", intrin, true).ok());
  const auto refused = context.add("dot_16x4_vnni", intrin);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].code.name, codes::tensor_intrin.name);
  EXPECT_TRUE(context.find("mine"));
  EXPECT_FALSE(context.find("other"));
}

std::string registered(TensorIntrin intrin) {
  const auto checked = check_tensor_intrin("x", intrin);
  return checked.ok() ? "accepted" : checked.diagnostics()[0].message;
}

TEST(context, refuses_what_makes_no_intrinsic) {
  const auto copy = [](int64_t n, bool call) {
    const Buffer a = buffer("A", {int64(n)}, DType::float32()), b = buffer("B", {int64(n)}, DType::float32());
    const Var i = var("i");
    Stmt body = make<For>(i, int64(0), int64(n), ForKind::serial,
                          make<BufferStore>(b, load(a, {i}), std::vector<Expr>{i}, Expr()));
    if (call)
      body = make<Evaluate>(ir::call(DType::int32(), intrinsic::call_extern, {make<StringImm>(std::string("f"))}));
    return prim_func({a, b}, root_block(body));
  };
  EXPECT_EQ(registered({copy(4, false), copy(4, true)}), "accepted");
  EXPECT_EQ(registered({copy(4, false), copy(5, false)}),
            "the intrinsic 'x' cannot be registered: buffer 0 is float32[4] in scope 'global' in its description and "
            "float32[5] in scope 'global' in its implementation");
  EXPECT_EQ(registered({copy(4, true), copy(4, false)}),
            "the intrinsic 'x' cannot be registered: its description calls 'call_extern'");
  const Function one = copy(4, false);
  Function fewer = with(*one, [](PrimFunc& f) {
    f.params.pop_back();
    f.buffer_map.pop_back();
  });
  EXPECT_EQ(registered({one, fewer}),
            "the intrinsic 'x' cannot be registered: its description has 2 buffers and its implementation 1");
  // What the description only reads, the implementation writes.
  const Function other_way = with(*one, [](PrimFunc& f) {
    std::swap(f.params[0], f.params[1]);
    std::swap(f.buffer_map[0], f.buffer_map[1]);
  });
  EXPECT_EQ(registered({one, other_way}),
            "the intrinsic 'x' cannot be registered: its implementation writes 'B', which its description only reads");
}

}  // namespace
}  // namespace lathe::tir
