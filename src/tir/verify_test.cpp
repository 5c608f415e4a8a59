#include "tir/verify.h"

#include "driver/pipeline.h"
#include "tir/testing/programs.h"
#include "tir/testing/random_program.h"
#include "tir/testing/run.h"

namespace lathe::tir {
namespace {

using namespace testing;  // NOLINT: the subject of every line below

std::string first_code(const Function& f, const ir::RowsRun& passes = {}) {
  const auto found = verify(f, passes);
  return found.empty() ? "" : std::string(found[0].code.name);
}
Function changed(const Function& f, support::function_ref<NodeRef(NodeRef)> change) {
  return rewrite_post_order(f, change);
}

TEST(verify, accepts_programs_at_every_level) {
  const Function f = matmul(size_var("m"), int64(5), int64(3), 4, ForKind::vectorized);
  EXPECT_EQ(support::render(verify(f)), "");
  const auto kernel = driver::lower_to_kernel(f);
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(support::render(verify(*kernel, all_lowered())), "");
}

TEST(verify, says_what_is_not_legal_at_a_stage) {
  const Function f = matmul(int64(2), int64(5), int64(3), 4, ForKind::vectorized);
  for (const char* pass : {"lower_init", "convert_blocks", "vectorize_loops"})
    EXPECT_EQ(first_code(f, {pass}), "tir-illegal-after-stage") << pass;
  EXPECT_EQ(first_code(f, all_lowered()), "tir-illegal-after-stage");
  EXPECT_EQ(first_code(f, {"compact_buffers"}), "");
}

TEST(verify, asks_nothing_of_blocks_without_instances) {
  for (const int64_t n : {0, 1}) {
    const Buffer a = buffer("A", {int64(n)}, DType::float32());
    const Var i = var("i"), vi = var("vi");
    Stmt sum = block("sum", {iter(vi, int64(n))}, {i},
                     make<BufferStore>(a, load(a, {vi - 1}) + load(a, {vi}), std::vector<Expr>{vi}));
    const Function f = prim_func({a}, root_block(loop(i, int64(n), sum)));
    const Function lies = changed(f, [](NodeRef node) -> NodeRef {
      const auto* b = node.as<Block>();
      return b && b->name == "sum" ? NodeRef(with(*b, [](Block& copy) { copy.reads = copy.writes; })) : node;
    });
    EXPECT_EQ(first_code(lies), n == 0 ? "" : "tir-region-not-covered");
  }
}

TEST(verify, asks_nothing_of_blocks_that_never_run) {
  for (const bool runs : {false, true}) {
    const Buffer a = buffer("A", {int64(4)}, DType::float32()), other = buffer("B", {int64(8)}, DType::float32());
    const Var i = var("i"), vi = var("vi");
    Stmt copied =
        block("copied", {iter(vi, int64(4))}, {i}, make<BufferStore>(a, load(other, {vi}), std::vector<Expr>{vi}));
    const Function f =
        changed(prim_func({a, other}, root_block(loop(i, int64(4), copied))), [&](NodeRef node) -> NodeRef {
          if (const auto* b = node.as<Block>(); b && b->name == "copied")
            return NodeRef(with(*b, [&](Block& copy) { copy.reads = {point_region(other, {int64(7)})}; }));
          const auto* realized = node.as<BlockRealize>();
          if (!realized || realized->block->name != "copied") return node;
          return NodeRef(with(*realized, [&](BlockRealize& copy) { copy.predicate = boolean(runs); }));
        });
    EXPECT_EQ(first_code(f), runs ? "tir-region-not-covered" : "");
  }
}

TEST(verify, asks_about_what_runs_beside_a_loop_that_does_not) {
  for (const int64_t n : {0, 2}) {
    const Buffer a = buffer("A", {int64(5)}, DType::float32()), b = buffer("B", {int64(5)}, DType::float32());
    const Var i = var("i"), vi = var("vi"), j = var("j");
    const Stmt store = make<BufferStore>(a, load(b, {vi}), std::vector<Expr>{vi});
    const Stmt never = loop(j, int64(n), make<BufferStore>(a, load(b, {vi + j}), std::vector<Expr>{vi + j}));
    const Function f =
        prim_func({a, b}, root_block(loop(i, int64(4), block("both", {iter(vi, int64(4))}, {i}, seq({store, never})))));
    const auto declaring = [&](support::function_ref<void(Block&)> change) {
      return changed(f, [&](NodeRef node) -> NodeRef {
        const auto* block = node.as<Block>();
        return block && block->name == "both" ? NodeRef(with(*block, [&](Block& copy) { change(copy); })) : node;
      });
    };
    // The element that each instance touches outside of the loop is all there is where the loop never runs.
    const Function narrow = declaring([&](Block& copy) {
      copy.reads = {point_region(b, {vi})};
      copy.writes = {point_region(a, {vi})};
    });
    EXPECT_EQ(first_code(narrow), n == 0 ? "" : "tir-region-not-covered");
    EXPECT_EQ(first_code(declaring([](Block& copy) { copy.reads.clear(); })), "tir-region-not-covered");
  }
}

TEST(verify, rejects_mutated_programs) {
  const Function f = matmul(int64(2), int64(5), int64(3), 4, ForKind::serial);
  const auto with_store = [&](support::function_ref<void(BufferStore&)> mutate) {
    return changed(f, [&](NodeRef n) -> NodeRef {
      const auto* store = n.as<BufferStore>();
      return store ? NodeRef(with(*store, [&](BufferStore& copy) { mutate(copy); })) : n;
    });
  };
  EXPECT_EQ(first_code(with_store([](BufferStore& s) { s.indices.pop_back(); })), "tir-rank-mismatch");
  EXPECT_EQ(first_code(with_store([](BufferStore& s) { s.value = int64(1); })), "tir-dtype-mismatch");
  EXPECT_EQ(first_code(with_store([](BufferStore& s) { s.indices[0] = constant(DType::float32(), 1); })),
            "tir-index-not-integer");
  EXPECT_EQ(first_code(with_store([](BufferStore& s) { s.indices[0] = var("nowhere"); })), "tir-undefined-variable");
  EXPECT_EQ(first_code(with_store([](BufferStore& s) { s.value = {}; })), "tir-missing-field");
  EXPECT_EQ(first_code(with_store([](BufferStore& s) { s.indices[1] = s.indices[1] + 1; })), "tir-region-not-covered");
  const Function unbound = changed(f, [](NodeRef n) -> NodeRef {
    const auto* realize = n.as<BlockRealize>();
    return realize && !realize->iter_values.empty()
               ? NodeRef(with(*realize, [](BlockRealize& c) { c.iter_values.pop_back(); }))
               : n;
  });
  EXPECT_EQ(first_code(unbound), "tir-binding-count");
  const Function undeclared = changed(f, [](NodeRef n) -> NodeRef {
    const auto* block = n.as<Block>();
    return block ? NodeRef(with(*block, [](Block& c) { c.reads.clear(); })) : n;
  });
  EXPECT_EQ(first_code(undeclared), "tir-region-not-covered");
  const Function twice = with(*f, [&](PrimFunc& copy) { copy.body = seq({f->body, f->body}); });
  EXPECT_EQ(first_code(twice), "tir-redefinition");
}

}  // namespace
}  // namespace lathe::tir
