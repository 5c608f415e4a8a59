#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(flatten_buffers, makes_of_programs_what_its_text_expects) { expect_text(flatten_buffers, __FILE__); }

TEST(flatten_buffers, gives_every_access_one_flat_index) {
  const Function f = matmul(int64(3), int64(5), int64(2), 4, ForKind::serial);
  const Function g = run(f, {lower_init, convert_blocks, flatten_buffers});
  for (const auto& [handle, buffer] : g->buffer_map) EXPECT_EQ(buffer->shape.size(), 1u);
  post_order(g->body, [](const NodeRef& n) {
    if (const auto* load = n.as<BufferLoad>()) EXPECT_EQ(load->indices.size(), 1u);
  });
  EXPECT_EQ(difference(f, g, 3), "");
}

TEST(flatten_buffers, honours_strides_and_offset) {
  // B[i, j] = A[i, j], where A lies transposed from element 3 on.
  const DType f32 = DType::float32();
  const Buffer a = make<BufferNode>("A", var("A", DType::handle()), f32, std::vector<Expr>{int64(4), int64(3)},
                                    std::vector<Expr>{int64(1), int64(4)}, int64(3));
  const Buffer b = buffer("B", {int64(4), int64(3)}, f32);
  const Var i = var("i"), j = var("j");
  const Function f = prim_func(
      {a, b}, loop(i, int64(4), loop(j, int64(3), make<BufferStore>(b, load(a, {i, j}), std::vector<Expr>{i, j}))));
  std::vector<TensorBuffer> args{TensorBuffer::zeros(f32, {15}), TensorBuffer::uninitialised(f32, {4, 3})};
  for (int64_t k = 0; k < 15; ++k) args[0].set_float(k, static_cast<double>(k));
  ASSERT_TRUE(interpret(run(f, {flatten_buffers}), args).ok());
  for (int64_t k = 0; k < 12; ++k) EXPECT_EQ(args[1].float_at(k), 3 + k / 3 + k % 3 * 4) << k;
}

TEST(flatten_buffers, appends_symbols_of_shapes_as_scalars) {
  const Var n = size_var("n"), m = size_var("m");
  const Function f = matmul(m, n, int64(2), 4, ForKind::serial);
  const Function g = run(f, {lower_init, convert_blocks, flatten_buffers});
  ASSERT_EQ(g->params.size(), 5u);
  EXPECT_EQ(g->params[3], m);
  EXPECT_EQ(g->params[4], n);
  EXPECT_EQ(difference(f, g, 3, {{"n", 6}, {"m", 3}}), "");
}

}  // namespace
}  // namespace lathe::tir
