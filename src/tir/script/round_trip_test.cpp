#include <gtest/gtest.h>

#include "driver/pipeline.h"
#include "script/parse.h"
#include "script/print.h"
#include "tir/script/dialect.h"
#include "tir/testing/differential.h"
#include "tir/testing/programs.h"
#include "tir/testing/random_program.h"

namespace lathe::tir {
namespace {

const script::Dialect* const dialects[] = {&script_dialect()};

// parse(print(x)) equals x, and prints as x does.
void expect_round_trip(const Function& f) {
  const std::string text = function_text(f);
  auto back = script::parse_function({"<text>", text}, dialects);
  ASSERT_TRUE(back.ok()) << support::render(back.diagnostics()) << text;
  const auto difference = ir::first_difference(f, *back, true);
  EXPECT_FALSE(difference) << *difference << "\n" << text;
  EXPECT_EQ(function_text(ir::cast<PrimFunc>(*back)), text);
}

// As `expect_round_trip`, for the output of passes: they may bind one variable in several places, and leave sequences
// in sequences, which no text tells from the program as it is read. So what comes back must compute the same.
void expect_same_program(const Function& f) {
  const std::string text = function_text(f);
  const auto back = script::parse_function({"<text>", text}, dialects);
  ASSERT_TRUE(back.ok()) << support::render(back.diagnostics()) << text;
  const Function again = ir::cast<PrimFunc>(*back);
  EXPECT_EQ(function_text(again), text);
  EXPECT_EQ(testing::difference(f, again, 3), "") << text;
  expect_round_trip(again);
}

Function evaluates(const Expr& e) {
  return prim_func({}, make<Evaluate>(ir::call(DType::void_(), intrinsic::ret, {e})));
}

TEST(tir_script, programs_come_back) {
  expect_round_trip(testing::matmul(size_var("m"), int64(7), int64(5), 4, ForKind::vectorized));
  expect_round_trip(testing::matmul(int64(8), int64(8), int64(5), 4, ForKind::unrolled, DType::float_(16)));
  expect_round_trip(testing::padded_stencil(9, ForKind::parallel));
  expect_round_trip(prim_func({}, nop()));
}

TEST(tir_script, lowered_programs_come_back) {
  ir::IRModule module;
  module.set("matmul", testing::matmul(size_var("m"), int64(7), int64(5), 4, ForKind::vectorized));
  module.set("stencil", testing::padded_stencil(9, ForKind::parallel));
  for (const ir::PassRow& row : driver::kernel_rows()) {
    auto next = row.run(module, {});
    ASSERT_TRUE(next.ok()) << row.name;
    module = *next;
    for (const auto& [name, f] : module) {
      SCOPED_TRACE(row.name);
      expect_round_trip(ir::cast<PrimFunc>(f));
    }
  }
}

TEST(tir_script, random_programs_come_back_at_every_stage) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    ir::IRModule module;
    module.set("main", testing::random_program(seed));
    expect_round_trip(module.find_as<PrimFunc>("main"));
    for (const ir::PassRow& row : driver::kernel_rows()) {
      auto next = row.run(module, {});
      if (!next.ok()) break;
      module = *next;
      SCOPED_TRACE(row.name);
      expect_same_program(module.find_as<PrimFunc>("main"));
      if (HasFailure()) return;
    }
  }
}

// Any damage to a valid text is read or refused with a place, and what is read prints and comes back.
TEST(tir_script, damaged_texts_are_read_or_refused) {
  const std::string text = function_text(testing::matmul(size_var("m"), int64(7), int64(5), 4, ForKind::vectorized));
  static constexpr std::string_view pieces[] = {
      "",     "(", ")",  "[",  "]", ",",    ":", "\n",  "    ", "T.",
      "0",    "-", "\"", "vi", "A", "None", "=", "if ", "not ", "9999999999999999999",
      "\xff", "#", "\\"};
  std::mt19937 random(7);
  size_t read = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    for (unsigned k = 0; k <= random() % 3; ++k) {
      const size_t at = random() % damaged.size();
      damaged.replace(at, random() % 5, pieces[random() % std::size(pieces)]);
    }
    const auto result = script::parse({"damaged", damaged}, dialects);
    if (!result.ok()) {
      ++refused;
      ASSERT_FALSE(result.diagnostics().empty()) << damaged;
      for (const support::Diagnostic& d : result.diagnostics()) EXPECT_FALSE(d.message.empty()) << damaged;
      continue;
    }
    ++read;
    for (const auto& [name, f] : *result)
      if (f.is<PrimFunc>()) EXPECT_FALSE(function_text(ir::cast<PrimFunc>(f), name).empty());
  }
  EXPECT_GT(read, 50u);
  EXPECT_GT(refused, 500u);
}

TEST(tir_script, the_deepest_expressions_print_and_long_sums_come_back) {
  const Var x = var("x");
  Expr left = x, right = x;
  for (int i = 0; i < 4000; ++i) left = make<Add>(left, x), right = make<Sub>(x, right);
  EXPECT_GT(function_text(evaluates(right)).size(), 4000u);
  expect_round_trip(make<PrimFunc>(std::vector<Var>{x}, std::vector<std::pair<Var, Buffer>>{},
                                   make<Evaluate>(ir::call(DType::void_(), intrinsic::ret, {left}))));
}

TEST(tir_script, literals_keep_their_type_and_bits) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const char* name : {"float16", "bfloat16", "float32", "float64", "float8_e5m2"}) {
    const DType t = *DType::parse(name);
    for (const double x : {0.0, -0.0, 1.0, 0.1, -2.5, 1e-3, 65504.0, 3.14159265358979, inf, -inf, nan, -nan})
      expect_round_trip(evaluates(make<FloatImm>(t, round_to(t, x))));
  }
  for (const char* name : {"int8", "int32", "int64", "uint8", "uint32", "uint64", "int4", "bool"}) {
    const DType t = *DType::parse(name);
    for (const int64_t x : {int64_t{0}, int64_t{1}, min_integer(t), max_integer(t)})
      expect_round_trip(evaluates(constant(t, x)));
  }
}

TEST(tir_script, expressions_come_back) {
  const Var x = var("x"), y = var("if"), b = var("b", DType::boolean());
  const Var f = var("f", DType::float32()), v = var("v", DType::float_(32, 4));
  const std::vector<Expr> list = {make<Add>(x, make<Sub>(y, x)),
                                  make<Sub>(make<Sub>(x, y), int64(3)),
                                  make<Sub>(x, make<Add>(y, int64(-3))),
                                  make<Mul>(make<Add>(x, y), int64(2)),
                                  make<Add>(int64(1), int64(2)),
                                  make<FloorDiv>(x, make<Mul>(y, y)),
                                  make<FloorMod>(make<FloorDiv>(x, y), y),
                                  make<Div>(x, y),
                                  make<Mod>(x, y),
                                  make<Div>(f, f),
                                  make<Min>(x, int64(1)),
                                  make<Max>(int64(1), x),
                                  make<Not>(make<And>(b, make<Or>(b, make<LT>(x, y)))),
                                  make<EQ>(make<LT>(x, y), b),
                                  make<And>(make<Not>(b), make<Or>(b, b)),
                                  make<Select>(b, x, int64(3)),
                                  make<Ramp>(x, int64(1), int64_t{4}),
                                  make<Broadcast>(constant(DType::float32(), 2), int64_t{4}),
                                  make<Cast>(DType::int32(), x),
                                  make<Cast>(DType::int64(), x),
                                  make<Cast>(DType::float_(64), constant(DType::float32(), 0.1)),
                                  make<Cast>(DType::int_(32, 4), v),
                                  make<Shuffle>(std::vector<Expr>{v, v}, std::vector<int64_t>{0, 7, 3}),
                                  make<Let>(var("z"), x + 1, x * 2),
                                  ir::call(intrinsic::exp, f),
                                  ir::call(DType::float_(64), intrinsic::exp, {f}),
                                  ir::call(DType::int32(), intrinsic::call_extern, {make<StringImm>("g\n\"\\"), x, f}),
                                  ir::call(DType::float32(), intrinsic::reinterpret, {constant(DType::int32(), 5)}),
                                  ir::call(DType::int64(), intrinsic::shift_left, {x, int64(3)}),
                                  ir::if_then_else(b, x, y)};
  for (const Expr& e : list) {
    const Function g = make<PrimFunc>(std::vector<Var>{x, y, b, f, v}, std::vector<std::pair<Var, Buffer>>{},
                                      make<Evaluate>(ir::call(DType::void_(), intrinsic::ret, {e})));
    expect_round_trip(g);
  }
}

TEST(tir_script, statements_come_back) {
  const Buffer a = buffer("A", {int64(8)}, DType::float32());
  const Var n = var("n"), i = var("i"), p = var("p", DType::handle());
  const Stmt store = make<BufferStore>(a, constant(DType::float32(), 1), std::vector<Expr>{n});
  const Buffer view = make<BufferNode>("view", p, DType::float32(), std::vector<Expr>{int64(8)});
  const Stmt write_view = make<BufferStore>(view, load(view, {int64(0)}), std::vector<Expr>{int64(1)});
  const Stmt allocate = make<Allocate>(p, DType::float32(), std::vector<Expr>{int64(8)}, "local", write_view);
  const Expr yes = make<Broadcast>(boolean(true), int64_t{4});
  const Expr ramp = make<Ramp>(n, int64(1), int64_t{4});
  const Stmt masked =
      make<BufferStore>(a, make<BufferLoad>(a, std::vector<Expr>{ramp}, yes), std::vector<Expr>{ramp}, yes);
  const std::vector<Stmt> list = {
      store,
      make<SeqStmt>(std::vector<Stmt>{allocate, store, masked}),
      masked,
      make<IfThenElse>(lt(n, int64(3)), store, make<IfThenElse>(lt(n, int64(5)), store, masked)),
      make<While>(lt(n, int64(3)), store),
      make<AssertStmt>(lt(n, int64(3)), "n is small"),
      make<LetStmt>(i, n + 1, store),
      make<SeqStmt>(std::vector<Stmt>{make<LetStmt>(i, n + 1, store), store}),
      make<AttrStmt>(Value("node"), "pragma", int32(3), store),
      make<AllocateConst>(p, ir::tensor_of<float>(DType::float32(), {2}, {1.5f, -0.0f}), store),
      make<DeclBuffer>(buffer("B", {n}, DType::int32()), store),
      make<For>(i, int64(2), n, ForKind::parallel, store, IterVar{},
                Attributes{{"pragma", 1}, {"list", Value::List{1.5, "text", DType::float32(), Value()}}}),
      make<For>(i, int64(0), int64(8), ForKind::thread_binding, store,
                make<IterVarNode>(Range{}, var("threadIdx.x"), IterType::thread_index, "threadIdx.x")),
      make<Evaluate>(int32(0)),
      make<Evaluate>(int64(3))};
  for (const Stmt& s : list) expect_round_trip(prim_func({a}, s, {n}));
}

TEST(tir_script, spellings_of_other_years_are_read) {
  const char* text = R"(
import tvm
from tvm.script import tir as T

@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def mm(A: T.Buffer[(128, 128), "float32"], B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
        T.func_attr({"global_symbol": "mm", "tir.noalias": True})
        for i, j, k in T.grid(128, 128, 128):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] += A[vi, vk] * B[vk, vj]
)";
  const auto module = script::parse({"course.py", text}, dialects);
  ASSERT_TRUE(module.ok()) << support::render(module.diagnostics());
  const auto f = module->find_as<PrimFunc>("mm");
  ASSERT_TRUE(f);
  EXPECT_NE(function_text(f).find("T.reads(A[vi, vk], B[vk, vj])"), std::string::npos) << function_text(f);
  expect_round_trip(f);
}

TEST(tir_script, errors_say_where) {
  const auto message = [](const std::string& body) {
    const auto result =
        script::parse({"f.py", "@T.prim_func\ndef f(A: T.Buffer((8,), \"float32\")):\n" + body}, dialects);
    return result.ok() ? std::string("accepted") : support::render(result.diagnostics()[0]);
  };
  EXPECT_EQ(message("    A[i] = 1.0\n"), "f.py:3:7: 'i' is not defined\n      A[i] = 1.0\n        ^\n");
  EXPECT_TRUE(message("    A[0, 1] = 1.0\n").starts_with("f.py:3:7: buffer 'A' has 1 dimensions, not 2"));
  EXPECT_TRUE(message("    A[0] = A[0] / (\n").starts_with("f.py:3:19: '(' is never closed"));
  EXPECT_TRUE(
      message("    A[0] = T.int32(3)\n").starts_with("f.py:3:12: the value stored into 'A' is int32, not float32"));
  EXPECT_EQ(message("    A[0] = [x for x in A]\n").substr(0, 57),
            "f.py:3:12: `[x for x in A]` must be evaluated by Python, ");
  const std::string deep = std::string(1000000, '(') + "1" + std::string(1000000, ')');
  EXPECT_NE(message("    A[0] = " + deep + "\n").find("nested more than 500 levels deep"), std::string::npos);
}

}  // namespace
}  // namespace lathe::tir
