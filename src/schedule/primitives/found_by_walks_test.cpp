// What random walks over the primitives found, each as one small program: what is accepted means the same, is well
// formed and is printed as it is.
#include <gtest/gtest.h>

#include "schedule/analysis/access.h"
#include "schedule/testing/programs.h"
#include "tir/script/dialect.h"
#include "tir/testing/differential.h"
#include "tir/verify.h"

namespace lathe::schedule {
namespace {

using support::Diagnostics;

template <class T>
std::string told(const Result<T>& result) {
  return result.ok() ? "" : result.diagnostics()[0].message;
}

struct Walked {
  Function original;
  Schedule sch = Schedule::create(original).value_or_throw();

  explicit Walked(const std::string& text) : original(testing::from_text(text)) {}
  BlockRV block(const char* name) { return sch.get_block(name).value_or_throw(); }
  LoopRV loop(const char* name, size_t at) { return sch.get_loops(block(name)).value_or_throw().at(at); }

  // Empty: all is well.
  std::string problem() {
    const Function after = sch.mod().find_as<PrimFunc>("main");
    if (const Diagnostics wrong = tir::verify(after); !wrong.empty()) return support::render(wrong);
    const Function read = testing::from_text(tir::function_text(after));
    if (const auto other = ir::first_difference(NodeRef(read), NodeRef(after))) return "text: " + *other;
    return tir::testing::difference(original, after, 3);
  }
};

constexpr const char* rows_turned = R"(
@T.prim_func
def main(X: T.Buffer((8, 5), "int32"), Y: T.Buffer((8, 5), "int32")):
    for i in range(8):
        with T.block("turn"):
            vi = T.axis.spatial(8, i)
            row = T.alloc_buffer((5,), "int32")
            for j in range(5):
                row[j] = X[vi, j] * 2
            for k in range(5):
                Y[vi, k] = row[4 - k] + 1
)";

// Each part has memory of its own, and iterations do not share it.
TEST(found_by_walks, blocks_with_memory_of_their_own) {
  Walked w(rows_turned);
  EXPECT_EQ(told(w.sch.loop_partition(w.loop("turn", 0), {int64_t{3}, Factor()})), "");
  EXPECT_EQ(w.problem(), "");
  EXPECT_EQ(told(w.sch.parallel(w.loop("turn", 0))), "");
  EXPECT_EQ(w.problem(), "");
}

// What an iteration reads is all that the loops in the block's body read.
TEST(found_by_walks, prefetch_of_what_loops_in_a_body_read) {
  Walked w(rows_turned);
  EXPECT_EQ(told(w.sch.prefetch(w.block("turn"), 0, w.loop("turn", 0), w.loop("turn", 0))), "");
  EXPECT_EQ(w.problem(), "");
}

constexpr const char* counted_sums = R"(
@T.prim_func
def main(X: T.Buffer((9,), "int32"), Y: T.Buffer((6,), "int32")):
    for i in range(6):
        with T.block("sum"):
            vi = T.axis.spatial(6, i)
            count = T.alloc_buffer((1,), "int32")
            Y[vi] = 0
            count[0] = 0
            while count[0] < T.int32(vi % 3 + 1):
                Y[vi] = Y[vi] + X[vi + T.int64(count[0])]
                count[0] = count[0] + 1
)";

// An index out of memory may be any: a copy is of the whole, and what the block declares does not speak of its memory.
TEST(found_by_walks, elements_found_by_memory) {
  Walked w(counted_sums);
  EXPECT_EQ(told(w.sch.blockize(w.loop("sum", 0))), "");
  EXPECT_EQ(w.problem(), "");
  EXPECT_EQ(told(w.sch.cache_read(w.block("sum"), 0, "local")), "");
  EXPECT_EQ(w.problem(), "");
  EXPECT_EQ(told(w.sch.prefetch(w.block("sum"), 0, w.loop("sum", 0), w.loop("sum", 0))),
            "cannot prefetch 'X_local' for block 'sum': it is in scope 'local'");
  Walked other(counted_sums);
  EXPECT_EQ(told(other.sch.prefetch(other.block("sum"), 0, other.loop("sum", 0), other.loop("sum", 0))),
            "cannot prefetch 'X' for block 'sum': what it reads depends on what memory holds");
  // Its own memory is nobody's to cache.
  EXPECT_EQ(told(other.sch.cache_read(other.block("sum"), 1, "local")),
            "cannot cache what block 'sum' reads: it reads 1 buffers, there is no number 1");
}

// Where a loop moves an index that it changes itself, different iterations may meet.
TEST(found_by_walks, an_index_that_the_loop_changes) {
  Walked w(R"(
@T.prim_func
def main(X: T.Buffer((6,), "int32"), P: T.Buffer((1,), "int32"), Y: T.Buffer((16,), "int32")):
    for i in range(6):
        with T.block("put"):
            vi = T.axis.opaque(6, i)
            T.reads(X[vi], P[0])
            T.writes(Y[0:16], P[0])
            Y[vi + T.int64(P[0] % 8 + 7) % 8] = X[vi]
            P[0] = 3 - P[0]
)");
  EXPECT_NE(told(w.sch.parallel(w.loop("put", 0))), "");
}

// Loops that do not start at zero.
TEST(found_by_walks, rfactor_where_loops_start_later) {
  Walked w(R"(
@T.prim_func
def main(X: T.Buffer((4, 6), "int32"), Y: T.Buffer((6,), "int32")):
    for k in range(4):
        for j in range(3, 9):
            with T.block("sum"):
                vj = T.axis.spatial(6, j - 3)
                vk = T.axis.reduce(4, k)
                with T.init():
                    Y[vj] = 0
                Y[vj] = Y[vj] + X[vk, vj]
)");
  EXPECT_EQ(told(w.sch.rfactor(w.loop("sum", 0), 0)), "");
  EXPECT_EQ(w.problem(), "");
}

constexpr const char* every_second_row = R"(
@T.prim_func
def main(X: T.Buffer((4, 6), "int32"), Y: T.Buffer((4, 6), "int32")):
    for i in range(4):
        if i % 2 == 0:
            for j in range(6):
                with T.block("double"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Y[vi, vj] = X[vi, vj] * 2
)";

// Loops around an if do not say which instances run.
TEST(found_by_walks, what_an_if_leaves_out) {
  Walked w(every_second_row);
  EXPECT_EQ(told(w.sch.reindex(w.block("double"), {.writes = true})),
            "cannot reindex 'Y' of block 'double': it is inside an if");
}

// A copy of a nest over threads has its threads' variables to itself.
TEST(found_by_walks, an_init_over_threads) {
  Walked w(R"(
@T.prim_func
def main(X: T.Buffer((8, 4), "int32"), Y: T.Buffer((8,), "int32")):
    for i in range(8):
        for k in range(4):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    Y[vi] = 0
                Y[vi] = Y[vi] + X[vi, vk]
)");
  EXPECT_EQ(told(w.sch.bind(w.loop("sum", 0), "threadIdx.x")), "");
  EXPECT_EQ(told(w.sch.decompose_reduction(w.block("sum"), w.loop("sum", 0))), "");
  EXPECT_EQ(w.problem(), "");
}

// An iteration whose part has gaps does not write all that lies between its ends.
TEST(found_by_walks, placing_a_reader_of_parts_with_gaps) {
  Walked w(R"(
@T.prim_func
def main(X: T.Buffer((8,), "int32"), Y: T.Buffer((8,), "int32")):
    A = T.alloc_buffer((8,), "int32")
    for i, o in T.grid(2, 4):
        with T.block("double"):
            v = T.axis.spatial(8, o * 2 + i)
            A[v] = X[v] * 2
    for i in range(8):
        with T.block("add"):
            v = T.axis.spatial(8, i)
            Y[v] = A[v] + 1
)");
  EXPECT_EQ(told(w.sch.reverse_compute_at(w.block("add"), w.loop("double", 0))),
            "cannot compute block 'add' at loop 'i': an iteration does not write one region of 'A'");
}

// A tail inside of a block: what the loops run over is more than what is written.
TEST(found_by_walks, splitting_inside_of_a_block) {
  Walked w(R"(
@T.prim_func
def main(X: T.Buffer((7,), "int32"), Y: T.Buffer((7,), "int32")):
    for i in range(7):
        with T.block("double"):
            v = T.axis.spatial(7, i)
            Y[v] = X[v] * 2
)");
  EXPECT_EQ(told(w.sch.blockize(w.loop("double", 0))), "");
  EXPECT_EQ(told(w.sch.split(w.loop("double", 0), {Factor(), int64_t{4}})), "");
  EXPECT_EQ(w.problem(), "");
  EXPECT_EQ(told(w.sch.split(w.loop("double", 0), {Factor(), int64_t{2}})), "");
  EXPECT_EQ(w.problem(), "");
}

// What every instance of a block reads is in the buffer, whatever the index is made of; without an instance it may not
// be.
TEST(found_by_walks, reindexing_at_a_place_that_only_the_run_knows) {
  Walked w(R"(
@T.prim_func
def main(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 4), "float32"), begin: T.int64):
    for i, j in T.grid(4, 4):
        with T.block("part"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj + begin]
)");
  EXPECT_EQ(told(w.sch.reindex(w.block("part"), {.writes = false})), "");
  Walked maybe_none(R"(
@T.prim_func
def main(X: T.Buffer((8,), "float32"), z: T.handle, Y: T.Buffer((4,), "float32"), begin: T.int64):
    n = T.int64()
    Z = T.match_buffer(z, (n,), "float32")
    for i, k in T.grid(4, n):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Y[vi] = T.float32(0)
            Y[vi] = Y[vi] + X[vi + begin] * Z[vk]
)");
  EXPECT_EQ(told(maybe_none.sch.reindex(maybe_none.block("sum"), {.number = 0})),
            "cannot reindex 'X' of block 'sum': could not show that its index 0 is always inside the buffer");
}

// What finds an element must have its value where the copy is made.
TEST(found_by_walks, reindexing_what_is_found_by_memory_of_the_same_loop) {
  Walked w(R"(
@T.prim_func
def main(P: T.Buffer((5,), "int32"), X: T.Buffer((4,), "int32"), Y: T.Buffer((5,), "int32")):
    Q = T.alloc_buffer((5,), "int32")
    for i in range(5):
        with T.block("copy"):
            vi = T.axis.spatial(5, i)
            Q[vi] = P[vi]
        with T.block("find"):
            vi = T.axis.spatial(5, i)
            Y[vi] = X[T.int64(Q[vi]) % 4]
)");
  const auto which = [](Walked& walked) -> int64_t {
    return buffers_read(walked.sch.get(walked.block("find")).value_or_throw()->body)[0]->name == "X" ? 0 : 1;
  };
  EXPECT_EQ(told(w.sch.reindex(w.block("find"), {.number = which(w)})),
            "cannot reindex 'X' of block 'find': its indices read 'Q', which is written in the same loops");
  Walked apart(R"(
@T.prim_func
def main(Q: T.Buffer((5,), "int32"), X: T.Buffer((4,), "int32"), Y: T.Buffer((5,), "int32")):
    for i in range(5):
        with T.block("find"):
            vi = T.axis.spatial(5, i)
            Y[vi] = X[T.int64(Q[vi]) % 4]
)");
  EXPECT_EQ(told(apart.sch.reindex(apart.block("find"), {.number = which(apart)})), "");
  EXPECT_EQ(apart.problem(), "");
}

// Where the predicate does not hold, a block's variables need no values.
TEST(found_by_walks, splitting_where_memory_binds_a_variable) {
  Walked w(R"(
@T.prim_func
def main(P: T.Buffer((5,), "int32"), X: T.Buffer((4,), "int32"), Y: T.Buffer((5,), "int32")):
    for i in range(5):
        with T.block("find"):
            vi = T.axis.spatial(5, i)
            vk = T.axis.spatial(4, T.int64(P[i]) % 4)
            Y[vi] = X[vk]
)");
  EXPECT_EQ(told(w.sch.split(w.loop("find", 0), {Factor(), int64_t{3}})), "");
  EXPECT_EQ(w.problem(), "");
}

// The box around what a row reads holds elements that no instance wrote.
TEST(found_by_walks, placing_a_copy_of_a_diagonal_band) {
  Walked w(R"(
@T.prim_func
def main(X: T.Buffer((7, 4), "int32"), Y: T.Buffer((7, 4), "int32")):
    A = T.alloc_buffer((10, 4), "int32")
    B = T.alloc_buffer((10, 4), "int32")
    for i, j in T.grid(7, 4):
        with T.block("band"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + vj, vj] = X[vi, vj] + 1
        with T.block("copy"):
            v0 = T.axis.spatial(10, i + j)
            v1 = T.axis.spatial(4, j)
            B[v0, v1] = A[v0, v1]
    for i, j in T.grid(7, 4):
        with T.block("read"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = B[vi + vj, vj] + 1
)");
  EXPECT_EQ(told(w.sch.compute_at(w.block("copy"), w.loop("read", 0))),
            "cannot compute block 'copy' at loop 'i': an iteration would run instances that did not run before");
  EXPECT_EQ(told(w.sch.compute_at(w.block("copy"), w.loop("read", 1))), "");
  EXPECT_EQ(w.problem(), "");
}

// What a sum inside a block went on from lies in the cache: the blocks around do not say that they read it.
TEST(found_by_walks, a_block_around_a_cached_sum_reads_no_result) {
  Walked w(R"(
@T.prim_func
def main(X: T.Buffer((3, 6), "int32"), Y: T.Buffer((3,), "int32")):
    for i in range(3):
        with T.block("row"):
            vi = T.axis.spatial(3, i)
            T.reads(Y[vi], X[vi, 0:6])
            T.writes(Y[vi])
            for k in range(6):
                with T.block("sum"):
                    vk = T.axis.reduce(6, k)
                    with T.init():
                        Y[vi] = 0
                    Y[vi] = Y[vi] + X[vi, vk]
)");
  ASSERT_EQ(told(w.sch.cache_write(w.block("sum"), 0, "local")), "");
  ASSERT_EQ(told(w.sch.blockize(w.loop("row", 0))), "");
  EXPECT_EQ(w.problem(), "");
}

// A consumer that goes on from its own results keeps its order, and enters no loop whose iterations run at once.
TEST(found_by_walks, an_inlined_consumer_keeps_the_order_of_its_instances) {
  for (const char* how : {"same", "turned", "at once"}) {
    const bool turned = how == std::string("turned"), at_once = how == std::string("at once");
    Walked w(fmt::format(R"(
@T.prim_func
def main(A: T.Buffer((6, 9), "int32"), X: T.Buffer((4, 7), "int32")):
    P = T.alloc_buffer((4, 7), "int32")
    for {}, {} in T.grid({}, {}):
        with T.block("p"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = X[vi, vj] + 1
    for i, j in T.grid(4, 7):
        with T.block("c"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj] = A[vi, vj + 1] * 2 + P[vi, vj]
)",
                         turned ? "j" : "i", turned ? "i" : "j", turned ? 7 : 4, turned ? 4 : 7));
    if (at_once) ASSERT_EQ(told(w.sch.parallel(w.loop("p", 0))), "");
    const std::string why = told(w.sch.reverse_compute_inline(w.block("c")));
    EXPECT_EQ(why.empty(), !turned && !at_once) << how << ": " << why;
    EXPECT_EQ(w.problem(), "") << how;
  }
}

}  // namespace
}  // namespace lathe::schedule
