#include "tir/interpret/interpret.h"

#include "tir/testing/programs.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

std::string failure(const Function& f, std::vector<TensorBuffer> args, const InterpretOptions& options = {}) {
  const auto status = interpret(f, args, {}, options);
  return status.ok() ? "" : std::string(status.diagnostics()[0].code.name);
}
std::vector<TensorBuffer> two(int64_t n, DType dtype = DType::float32()) {
  return {TensorBuffer::zeros(dtype, {n}), TensorBuffer::uninitialised(dtype, {n})};
}

TEST(interpret, multiplies_matrices) {
  std::vector<TensorBuffer> args{TensorBuffer::zeros(DType::float32(), {3, 2}),
                                 TensorBuffer::zeros(DType::float32(), {2, 5}),
                                 TensorBuffer::uninitialised(DType::float32(), {3, 5})};
  for (int64_t k = 0; k < 6; ++k) args[0].set_float(k, static_cast<double>(k) - 2);
  for (int64_t k = 0; k < 10; ++k) args[1].set_float(k, static_cast<double>(k * k));
  ASSERT_TRUE(interpret(matmul(int64(3), int64(5), int64(2), 4, ForKind::serial), args).ok());
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 5; ++j)
      EXPECT_EQ(args[2].float_at(i * 5 + j),
                static_cast<double>((2 * i - 2) * j * j + (2 * i - 1) * (5 + j) * (5 + j)));
}

TEST(interpret, finds_accesses_out_of_bounds) {
  const Function f = flat_loop(4, ForKind::serial, [](const Buffer& a, const Expr& i) { return load(a, {i + 1}); });
  EXPECT_EQ(failure(f, two(4)), "tir-out-of-bounds");
}

TEST(interpret, finds_reads_of_what_was_never_written) {
  const Function f = flat_loop(4, ForKind::serial, [](const Buffer& a, const Expr& i) { return load(a, {i}); });
  std::vector<TensorBuffer> args{TensorBuffer::uninitialised(DType::float32(), {4}),
                                 TensorBuffer::uninitialised(DType::float32(), {4})};
  EXPECT_EQ(failure(f, args), "tir-uninitialised-read");
}

TEST(interpret, shows_parallelism_that_is_not_allowed) {
  // A prefix sum with its loop declared parallel.
  const Buffer a = buffer("A", {int64(16)}, DType::int64());
  const Var i = var("i");
  const Stmt add_left = make<BufferStore>(a, load(a, {i}) + load(a, {i + 1}), std::vector<Expr>{i + 1});
  const auto sum = [&](ForKind kind) {
    std::vector<TensorBuffer> args{TensorBuffer::zeros(DType::int64(), {16})};
    for (int64_t k = 0; k < 16; ++k) args[0].set_int(k, 1);
    EXPECT_TRUE(interpret(prim_func({a}, loop(i, int64(15), add_left, kind)), args).ok());
    return args[0].int_at(15);
  };
  EXPECT_EQ(sum(ForKind::serial), 16);
  EXPECT_NE(sum(ForKind::parallel), 16);
}

TEST(interpret, wraps_integers_and_rounds_floats_to_their_dtype) {
  const auto last = [&](DType dtype, double value, const Expr& by) {
    const Function f =
        flat_loop(1, ForKind::serial, [&](const Buffer& a, const Expr& i) { return load(a, {i}) + by; }, dtype);
    std::vector<TensorBuffer> args = two(1, dtype);
    dtype.is_floating() ? args[0].set_float(0, value) : args[0].set_int(0, static_cast<int64_t>(value));
    EXPECT_TRUE(interpret(f, args).ok());
    return args[1].float_at(0);
  };
  EXPECT_EQ(last(DType::int_(8), 127, constant(DType::int_(8), 1)), -128);
  EXPECT_EQ(last(DType::uint(8), 255, constant(DType::uint(8), 1)), 0);
  EXPECT_EQ(last(DType::float32(), 16777216, constant(DType::float32(), 1)), 16777216);
  EXPECT_EQ(last(DType::float_(16), 2048, constant(DType::float_(16), 1)), 2048);
  EXPECT_EQ(last(DType::bfloat16(), 256, constant(DType::bfloat16(), 1)), 256);
}

TEST(interpret, refuses_wrong_arguments_and_endless_programs) {
  const Function f = flat_loop(4, ForKind::serial, [](const Buffer& a, const Expr& i) { return load(a, {i}); });
  EXPECT_EQ(failure(f, two(5)), "tir-argument-mismatch");
  EXPECT_EQ(failure(f, two(4, DType::int32())), "tir-argument-mismatch");
  EXPECT_EQ(failure(f, {}), "tir-argument-mismatch");
  EXPECT_EQ(failure(prim_func({}, make<While>(boolean(true), nop())), {}, {.max_steps = 100}), "tir-step-budget");
  EXPECT_EQ(failure(prim_func({}, make<AssertStmt>(boolean(false), std::string("no"))), {}), "tir-assertion-failed");
  const Function zero = flat_loop(
      1, ForKind::serial, [](const Buffer& a, const Expr& i) { return make<Div>(load(a, {i}), load(a, {i})); },
      DType::int32());
  EXPECT_EQ(failure(zero, two(1, DType::int32())), "tir-division-by-zero");
  const Expr raised = call(DType::int32(), intrinsic::raise_error, {int32(1), make<StringImm>(std::string("stop"))});
  EXPECT_EQ(failure(prim_func({}, make<Evaluate>(raised)), {}), "tir-raised");
}

TEST(interpret, refuses_what_has_no_meaning_in_it) {
  EXPECT_EQ(failure(prim_func({}, make<Evaluate>(call(DType::void_(), intrinsic::call_extern,
                                                      {make<StringImm>(std::string("puts"))}))),
                    {}),
            "tir-not-interpretable");
  const Buffer whole = buffer("A", {int64(4)}, DType::float32());
  const Buffer plane = buffer("M", {int64(1), int64(4)}, DType::float32());
  const Ref<Block> block =
      make<Block>(std::vector<IterVar>{}, std::vector<Buffer>{},
                  std::vector<MatchBufferRegion>{make<MatchBufferRegionNode>(
                      plane, make<BufferRegionNode>(whole, std::vector<Range>{{int64(0), int64(4)}}))},
                  std::vector<BufferRegion>{}, std::vector<BufferRegion>{}, std::string("b"), Stmt{}, nop());
  const Function f = prim_func({whole}, make<BlockRealize>(std::vector<Expr>{}, boolean(true), block));
  EXPECT_EQ(failure(f, {TensorBuffer::zeros(DType::float32(), {4})}), "tir-match-buffer-rank");
}

}  // namespace
}  // namespace lathe::tir
