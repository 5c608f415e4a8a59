#include "lower/plan/plan_memory.h"

#include <gtest/gtest.h>

#include "graph/passes.h"
#include "lower/legalize/legalize.h"
#include "lower/legalize/versions.h"
#include "lower/testing/plan_of.h"
#include "lower/testing/random_graph.h"
#include "tir/stmt.h"

namespace lathe::lower {
namespace {

using namespace relax;  // NOLINT: the subject of these tests
using testing::plan_of;
using testing::random_graph;
using Key = std::pair<const ir::Node*, int>;

// Goes through a function under a plan as a machine would, knowing who wrote each byte last: no lifetimes are computed,
// a value that is read must simply still be there.
class Replay {
 public:
  Replay(const ir::IRModule& module, const MemoryPlan& plan) : module_(module), plan_(plan) {}

  void run(const relax::Function& main) {
    const auto* body = main->body.as<SeqExpr>();
    for (const BindingBlock& block : body->blocks)
      for (const Binding& binding : block->bindings) step(*binding.as<VarBinding>());
    const auto* results = body->body.as<Tuple>();
    for (const Expr& result : results->items) read(result);
  }

 private:
  std::vector<Key> keys(const Expr& e) const {
    const auto it = held_.find(e.get());
    return it == held_.end() ? std::vector<Key>{} : it->second;
  }
  // The pieces of memory a placement stands for, as names.
  static std::vector<std::pair<int, int64_t>> cells(const Placement& p) {
    std::vector<std::pair<int, int64_t>> all;
    if (p.kind != Placement::planned) all.emplace_back(p.kind, p.slot_index);
    for (int64_t at = 0; p.kind == Placement::planned && at < p.bytes; ++at) all.emplace_back(p.kind, p.offset + at);
    return all;
  }
  void read(const Expr& e) {
    for (const Key& key : keys(e))
      for (const auto& cell : cells(plan_.placements.at(key)))
        ASSERT_EQ(owner_[cell], key) << "a value was overwritten before its last use";
  }

  void step(const VarBinding& binding) {
    const auto parts = as_call_tir(binding.value);
    if (!parts) {
      if (binding.value.is<VarNode>()) held_[binding.var.get()] = keys(binding.value);
      if (const auto* call = binding.value.as<Call>()) {
        ASSERT_TRUE(callee_operator(*call)->is_view);
        read(call->args[0]);
        held_[binding.var.get()] = keys(call->args[0]);
      }
      return;
    }
    const auto* pairs = module_.find_as<tir::PrimFunc>(parts->function)->attrs.get<ir::Value::List>("inplace");
    for (const Expr& arg : parts->args) read(arg);
    for (size_t i = 0; i < parts->outputs.size(); ++i) {
      const Key key{binding.var.get(), static_cast<int>(i)};
      const Placement& to = plan_.placements.at(key);
      check_operands(*parts, pairs, i, to);
      for (const auto& cell : cells(to)) {
        if (to.kind == Placement::output) ASSERT_FALSE(owner_.count(cell)) << "a result is written twice";
        owner_[cell] = key;
      }
      held_[binding.var.get()].push_back(key);
    }
  }

  // No operand lies where the output goes, unless the kernel may work in place there.
  void check_operands(const CallTir& parts, const ir::Value::List* pairs, size_t output, const Placement& to) {
    const auto target = cells(to);
    const std::set<std::pair<int, int64_t>> written(target.begin(), target.end());
    int shared = 0;
    for (size_t i = 0; i < parts.args.size(); ++i)
      for (const Key& key : keys(parts.args[i])) {
        const Placement& from = plan_.placements.at(key);
        bool overlaps = false;
        for (const auto& cell : cells(from)) overlaps |= written.count(cell) != 0;
        if (!overlaps) continue;
        ++shared;
        bool allowed = false;
        for (size_t p = 0; pairs && p < pairs->size(); ++p) {
          const auto& pair = *(*pairs)[p].get<ir::Value::List>();
          allowed |= *pair[0].get<int64_t>() == static_cast<int64_t>(i) &&
                     *pair[1].get<int64_t>() == static_cast<int64_t>(parts.args.size() + output);
        }
        EXPECT_TRUE(allowed && from.offset == to.offset && from.bytes == to.bytes);
      }
    EXPECT_LE(shared, 1);
  }

  const ir::IRModule& module_;
  const MemoryPlan& plan_;
  std::map<std::pair<int, int64_t>, Key> owner_;
  std::unordered_map<const ir::Node*, std::vector<Key>> held_;
};

ir::IRModule lowered(ir::IRModule module, bool fused) {
  if (fused) module = graph::fuse_ops(std::move(module), {}).value_or_throw();
  return legalize(std::move(module), {}).value_or_throw();
}

TEST(plan_memory, keeps_every_value_until_its_last_use) {
  std::mt19937_64 random(11);
  int64_t in_place = 0, saved = 0, slots = 0, direct = 0;
  for (int round = 0; round < 60; ++round) {
    const int64_t sizes[] = {0, 1, 2, 13};
    const ir::Expr rows = round % 5 == 4 ? ir::Expr(ir::size_var("n")) : ir::int64(sizes[round % 4]);
    const auto graph = random_graph(rows, 4 + round / 3, random);
    const ir::IRModule module = lowered(graph.module, round % 2 == 0);
    const MemoryPlan plan = plan_of(module);
    SCOPED_TRACE("round " + std::to_string(round));
    Replay(module, plan).run(module.find_as<FunctionNode>("main"));
    int64_t largest = 0, sum = 0;
    for (const auto& [key, placement] : plan.placements) {
      if (placement.kind == Placement::output) ++direct;
      if (placement.kind != Placement::planned) continue;
      const auto* info = static_cast<const VarNode*>(key.first)->struct_info.as<TensorStructInfo>();
      EXPECT_EQ(placement.offset % plan_alignment, 0);
      EXPECT_GE(placement.bytes, *static_bytes(*info));
      EXPECT_LE(placement.offset + placement.bytes, plan.arena_bytes);
      largest = std::max(largest, *static_bytes(*info));
      sum += placement.bytes;
    }
    EXPECT_GE(plan.arena_bytes, largest);
    EXPECT_LE(plan.arena_bytes, sum);
    in_place += plan.in_place;
    saved += sum - plan.arena_bytes;
    slots += plan.slots;
  }
  // Each of these happened, so each was checked.
  EXPECT_GT(in_place, 0);
  EXPECT_GT(saved, 0);
  EXPECT_GT(slots, 0);
  EXPECT_GT(direct, 0);
}

struct Chain {
  BlockBuilder builder;
  Var x;
  explicit Chain(const ir::Expr& rows = ir::int64(4))
      : x(relax_var("x", tensor_info(Shape{rows, ir::int64(16)}, DType::float32()))) {
    builder.begin_function("main", {x});
  }
  Expr call(const Operator& op, std::vector<Expr> args) {
    return builder.emit_output(make_call(op, std::move(args)).value_or_throw());
  }
  MemoryPlan plan(const Expr& result) {
    builder.end_function(result);
    return plan_of(lowered(builder.finish(), false));
  }
};

TEST(plan_memory, works_in_place_along_a_chain) {
  Chain c;
  const Expr a = c.call(ops::relu, {c.x}), b = c.call(ops::negative, {a}), d = c.call(ops::exp, {b});
  const MemoryPlan plan = c.plan(
      c.call(ops::matmul, {d, constant(ir::tensor_of<float>(DType::float32(), {16, 1}, std::vector<float>(16)))}));
  EXPECT_EQ(plan.in_place, 2);
  EXPECT_EQ(plan.arena_bytes, 4 * 16 * 4);
  EXPECT_EQ(plan.unplanned_bytes, 3 * 4 * 16 * 4);
}

// Of tensors whose size only the run knows too, where it is the same.
TEST(plan_memory, works_in_place_at_any_size) {
  const ir::Var n = ir::size_var("n");
  Chain c(n);
  const Expr a = c.call(ops::relu, {c.x}), b = c.call(ops::negative, {a}), d = c.call(ops::exp, {b});
  const MemoryPlan plan = c.plan(
      c.call(ops::matmul, {d, constant(ir::tensor_of<float>(DType::float32(), {16, 1}, std::vector<float>(16)))}));
  EXPECT_EQ(plan.in_place, 2);
  EXPECT_EQ(plan.slots, 1);
}

// What does a kernel's work at some sizes has to be able to, too.
TEST(plan_memory, works_in_place_where_all_versions_may) {
  for (const bool may : {true, false}) {
    BlockBuilder builder;
    const Var x = relax_var("x", tensor_info(Shape{ir::size_var("n"), ir::int64(16)}, DType::float32()));
    builder.begin_function("main", {x});
    Expr y = x;
    for (int i = 0; i < 3; ++i) y = builder.emit_output(make_call(ops::relu, {y}).value_or_throw());
    builder.end_function(y);
    ir::IRModule module = lowered(builder.finish(), false);
    std::string name;
    for (const auto& [own, function] : module.functions())
      if (function.is<tir::PrimFunc>()) name = own;
    const auto kernel = module.find_as<tir::PrimFunc>(name);
    ASSERT_TRUE(kernel);
    const auto version = ir::with(*kernel, [&](auto& copy) {
      if (!may) copy.attrs.erase("inplace");
    });
    const auto versioned = ir::with(*kernel, [&](auto& copy) {
      copy.attrs.set("versions", to_value({{.function = "relu_at_8", .sizes = {{0, 8}}}}));
    });
    module.set("relu_at_8", version);
    module.set(name, versioned);
    EXPECT_EQ(plan_of(module).in_place, may ? 1 : 0);
  }
}

TEST(plan_memory, does_not_work_in_place_on_an_operand_read_later) {
  Chain c;
  const Expr a = c.call(ops::relu, {c.x}), b = c.call(ops::negative, {a});
  const MemoryPlan plan = c.plan(c.call(ops::subtract, {b, a}));
  EXPECT_EQ(plan.in_place, 0);
  EXPECT_EQ(plan.arena_bytes, 2 * 4 * 16 * 4);
}

TEST(plan_memory, another_name_keeps_a_value_alive) {
  Chain c;
  const Expr a = c.call(ops::relu, {c.x}), name = c.builder.emit_output(a), b = c.call(ops::negative, {a});
  const MemoryPlan plan = c.plan(c.call(ops::subtract, {b, name}));
  EXPECT_EQ(plan.in_place, 0);
  EXPECT_EQ(plan.arena_bytes, 2 * 4 * 16 * 4);
}

TEST(plan_memory, writes_a_result_where_the_caller_wants_it) {
  Chain c;
  const MemoryPlan plan = c.plan(c.call(ops::relu, {c.x}));
  ASSERT_EQ(plan.placements.size(), 1u);
  EXPECT_EQ(plan.placements.begin()->second.kind, Placement::output);
  EXPECT_EQ(plan.arena_bytes, 0);
}

TEST(plan_memory, counts_packed_bytes) {
  const auto bytes = [](std::vector<int64_t> shape, const char* dtype) {
    return static_bytes(*tensor_info(shape, *DType::parse(dtype)).as<TensorStructInfo>());
  };
  EXPECT_EQ(bytes({3, 5}, "float32"), 60);
  EXPECT_EQ(bytes({3, 5}, "int4"), 8);
  EXPECT_EQ(bytes({3, 5}, "bool"), 15);
  EXPECT_EQ(bytes({}, "float64"), 8);
  EXPECT_EQ(bytes({3, 0}, "float32"), 0);
  EXPECT_EQ(static_bytes(*tensor_info({ir::size_var("n")}, DType::float32()).as<TensorStructInfo>()), std::nullopt);
}

}  // namespace
}  // namespace lathe::lower
