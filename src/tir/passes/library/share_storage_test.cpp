#include "tir/rewrite.h"
#include "tir/testing/programs.h"
#include "tir/testing/random_program.h"
#include "tir/testing/run.h"
#include "tir/verify.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

TEST(share_storage, makes_of_programs_what_its_text_expects) { expect_text(share_storage, __FILE__); }

// Elements of all allocations together.
int64_t allocated_elements(const Function& f) {
  int64_t elements = 0;
  post_order(f->body, [&](const NodeRef& n) {
    if (const auto* allocate = n.as<Allocate>())
      elements += as_int(fold_constants(product(allocate->extents))).value_or(0);
  });
  return elements;
}

// A[k] = A[k - 1] * 2 + k, over `stages` arrays of different sizes; B gets the last.
Function chain(int stages) {
  const auto extent = [](int k) { return int64(8 + 4 * (k % 3)); };
  const Buffer x = buffer("X", {int64(16)}, DType::float32()), y = buffer("Y", {extent(stages - 1)}, DType::float32());
  std::vector<Stmt> body;
  std::vector<Buffer> made;
  Buffer source = x;
  for (int k = 0; k < stages; ++k) {
    const bool last = k + 1 == stages;
    const Buffer target = last ? y : buffer(fmt::format("T{}", k), {extent(k)}, DType::float32());
    if (!last) made.push_back(target);
    const Var i = var("i");
    const Expr value = load(source, {floormod(i, source->shape[0])}) * 2 + constant(DType::float32(), k);
    body.push_back(loop(i, extent(k), make<BufferStore>(target, value, std::vector<Expr>{i})));
    source = target;
  }
  Stmt s = seq(std::move(body));
  for (size_t k = made.size(); k-- > 0;)
    s = make<Allocate>(made[k]->data, DType::float32(), made[k]->shape, std::string("global"), s);
  return prim_func({x, y}, s);
}

TEST(share_storage, of_a_chain_takes_what_two_neighbours_take) {
  const Function f = chain(9), g = run(f, {share_storage});
  EXPECT_EQ(difference(f, g, 3), "");
  EXPECT_EQ(allocated_elements(f), 92);
  EXPECT_EQ(allocated_elements(g), 32);
  EXPECT_EQ(difference(f, run(g, {flatten_buffers}), 3), "");
  for (int stages = 2; stages < 14; ++stages)
    EXPECT_EQ(difference(chain(stages), run(chain(stages), {share_storage, flatten_buffers}), 5), "") << stages;
}

TEST(share_storage, keeps_what_random_programs_compute) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Function f = run(random_program(seed), {compact_buffers, lower_init, convert_blocks});
    const Function g = run(f, {share_storage});
    EXPECT_EQ(difference(f, g, seed), "") << seed;
    EXPECT_EQ(difference(f, run(g, {flatten_buffers}), seed), "") << seed;
    EXPECT_TRUE(verify(g, {}).empty()) << seed << support::render(verify(g, {}));
    EXPECT_LE(allocated_elements(g), allocated_elements(f)) << seed;
  }
}

TEST(share_storage, refuses_blocks_that_allocate) {
  EXPECT_EQ(refusal(padded_stencil(7, ForKind::serial), share_storage), "tir-illegal-after-stage");
}

}  // namespace
}  // namespace lathe::tir
