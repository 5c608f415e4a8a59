#include "tir/differentiate/adjoint_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/visit.h"
#include "script/parse.h"
#include "tir/interpret/interpret.h"
#include "tir/script/dialect.h"

namespace lathe::tir {
namespace {

Function program_in(const std::string& lines) {
  const script::Dialect* const dialects[] = {&script_dialect()};
  const std::string text = "@T.prim_func\ndef f" + lines;
  return script::parse({"f.py", text}, dialects).value_or_throw().find_as<PrimFunc>("f");
}

std::vector<int64_t> extents_of(const Buffer& b) {
  std::vector<int64_t> extents;
  for (const Expr& extent : b->shape) extents.push_back(ir::as_int(extent).value());
  return extents;
}

// The adjoints of a program's inputs against central differences along a random direction: the relative distance.
class SlopeCheck {
 public:
  SlopeCheck(Function f, size_t inputs, uint64_t seed) : f_(std::move(f)), inputs_(inputs), random_(seed) {
    for (const auto& [param, buffer] : f_->buffer_map) {
      const bool is_input = args_.size() < inputs;
      args_.push_back(TensorBuffer::zeros(buffer->dtype, extents_of(buffer)));
      if (!buffer->dtype.is_floating()) {
        for (int64_t i = 0; i < args_.back().elements(); ++i)
          args_.back().set_int(i, std::uniform_int_distribution<int64_t>(0, 3)(random_));
        continue;
      }
      randomise(args_.back());
      if (is_input) directions_.push_back(args_.back());
      if (is_input) randomise(directions_.back());
    }
  }

  double distance() {
    const double slope = (loss(1e-5) - loss(-1e-5)) / 2e-5;
    AdjointRequest request{inputs_, {}, {}};
    std::vector<TensorBuffer> args;
    for (size_t i = 0; i < inputs_; ++i) {
      args.push_back(args_[i]);
      request.wanted.push_back(args_[i].dtype.is_floating());
    }
    // The outputs' arguments hold the weights of the loss.
    for (size_t i = inputs_; i < args_.size(); ++i) {
      request.given.push_back(args_[i].dtype.is_floating());
      if (request.given.back()) args.push_back(args_[i]);
    }
    const size_t first = args.size();
    for (const TensorBuffer& direction : directions_)
      args.push_back(TensorBuffer::uninitialised(direction.dtype, direction.shape));
    const support::Status ran = interpret(adjoint_program(f_, request), args);
    if (!ran.ok()) throw support::DiagnosticError(ran.diagnostics());
    double along = 0;
    for (size_t k = 0; k < directions_.size(); ++k)
      for (int64_t i = 0; i < directions_[k].elements(); ++i)
        along += args[first + k].float_at(i) * directions_[k].float_at(i);
    return std::abs(along - slope) / (1 + std::abs(slope));
  }

 private:
  void randomise(TensorBuffer& b) {
    for (int64_t i = 0; i < b.elements(); ++i)
      b.set_float(i, std::uniform_real_distribution<double>(0.2, 1.5)(random_));
  }

  // The sum of the outputs times their weights, some way along the direction.
  double loss(double way) const {
    std::vector<TensorBuffer> args;
    size_t next = 0;
    for (size_t i = 0; i < args_.size(); ++i) {
      args.push_back(i < inputs_ ? args_[i] : TensorBuffer::uninitialised(args_[i].dtype, args_[i].shape));
      if (i >= inputs_ || !args_[i].dtype.is_floating()) continue;
      for (int64_t k = 0; k < args_[i].elements(); ++k)
        args[i].set_float(k, args_[i].float_at(k) + way * directions_[next].float_at(k));
      ++next;
    }
    const support::Status ran = interpret(f_, args);
    if (!ran.ok()) throw support::DiagnosticError(ran.diagnostics());
    double sum = 0;
    for (size_t i = inputs_; i < args_.size(); ++i)
      for (int64_t k = 0; args_[i].dtype.is_floating() && k < args_[i].elements(); ++k)
        sum += args_[i].float_at(k) * args[i].float_at(k);
    return sum;
  }

  Function f_;
  size_t inputs_;
  std::mt19937_64 random_;
  std::vector<TensorBuffer> args_, directions_;
};

void expect_slope(const std::string& lines, size_t inputs) {
  const Function f = program_in(lines);
  for (uint64_t seed = 1; seed <= 3; ++seed) EXPECT_LT(SlopeCheck(f, inputs, seed).distance(), 1e-7) << lines;
}

// An element, by one operand or by two, of B = value.
void expect_slope_of(const std::string& value) {
  expect_slope(
      "(X: T.Buffer((3, 2), \"float64\"), Y: T.Buffer((3, 2), \"float64\"), B: T.Buffer((3, 2), \"float64\")):\n"
      "    for i, j in T.grid(3, 2):\n        with T.block(\"b\"):\n"
      "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
      "            with T.LetStmt(X[vi, vj]) as x:\n                with T.LetStmt(Y[vi, vj]) as y:\n"
      "                    B[vi, vj] = " +
          value + "\n",
      2);
}

TEST(adjoint_program, differentiates_every_function) {
  for (const char* of_one :
       {"abs(x)",  "exp(x)",   "exp2(x)", "exp10(x)",   "log(x)",   "log2(x)",  "log10(x)",    "log1p(x)",
        "sqrt(x)", "rsqrt(x)", "sin(x)",  "cos(x)",     "tan(x)",   "sinh(x)",  "cosh(x)",     "tanh(x)",
        "atan(x)", "asinh(x)", "erf(x)",  "sigmoid(x)", "expm1(x)", "floor(x)", "nearbyint(x)"})
    expect_slope_of(std::string("T.") + of_one);
  for (const char* shrunk : {"T.acos(x * 0.5)", "T.asin(x * 0.5)", "T.atanh(x * 0.5)", "T.acosh(x + 1.0)"})
    expect_slope_of(shrunk);
  for (const char* of_two :
       {"x + y", "x - y", "x * y", "x / y", "x * x / (x + y)", "T.pow(x, y)", "T.atan2(x, y)", "T.hypot(x, y)",
        "T.copysign(x, y)", "T.fma(x, y, x)", "T.max(x, y)", "T.min(x, y)", "T.fmod(x + 3.0, y)",
        "T.Select(x < y, x * x, y)", "T.if_then_else(x < y, T.sin(x), x * y)", "T.ldexp(x, 3) * y"})
    expect_slope_of(of_two);
}

TEST(adjoint_program, of_stages_and_reductions) {
  expect_slope(
      "(X: T.Buffer((3, 4), \"float64\"), W: T.Buffer((4, 2), \"float64\"), B: T.Buffer((3, 2), \"float64\")):\n"
      "    S = T.alloc_buffer((3, 2), \"float64\")\n"
      "    for i, j, k in T.grid(3, 2, 4):\n        with T.block(\"s\"):\n"
      "            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n            with T.init():\n"
      "                S[vi, vj] = T.float64(0)\n"
      "            S[vi, vj] = S[vi, vj] + X[vi, vk] * W[vk, vj]\n"
      "    for i, j in T.grid(3, 2):\n        with T.block(\"b\"):\n"
      "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
      "            B[vi, vj] = T.tanh(S[vi, vj]) * S[2 - vi, vj]\n",
      2);
  // A window that overlaps, and the largest of it.
  for (const char* combined : {"S[vi] + X[vi + vk] * W[vk]", "T.max(S[vi], X[vi + vk] * W[vk])",
                               "T.min(S[vi], X[vi + vk] * W[vk])", "S[vi] * (X[vi + vk] + W[vk])"})
    expect_slope(
        "(X: T.Buffer((7,), \"float64\"), W: T.Buffer((3,), \"float64\"), S: T.Buffer((5,), \"float64\")):\n"
        "    for i, k in T.grid(5, 3):\n        with T.block(\"s\"):\n"
        "            vi, vk = T.axis.remap(\"SR\", [i, k])\n            with T.init():\n"
        "                S[vi] = T.float64(1)\n            S[vi] = " +
            std::string(combined) + "\n",
        2);
}

// Rows chosen by data, one of them several times, and elements that no guard lets through.
TEST(adjoint_program, adds_up_where_indices_are_data) {
  expect_slope(
      "(X: T.Buffer((4, 3), \"float64\"), I: T.Buffer((6,), \"int32\"), B: T.Buffer((6, 3), \"float64\")):\n"
      "    for i, j in T.grid(6, 3):\n        with T.block(\"b\"):\n"
      "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
      "            B[vi, vj] = T.if_then_else(vj > 0, X[I[vi], vj - 1] * X[I[vi], vj], T.float64(0))\n",
      2);
}

// Elements that are overwritten again and again: the program is undone step by step.
TEST(adjoint_program, undoes_what_is_overwritten) {
  expect_slope(
      "(X: T.Buffer((5,), \"float64\"), H: T.Buffer((2,), \"float64\"), B: T.Buffer((5,), \"float64\")):\n"
      "    S = T.alloc_buffer((2,), \"float64\")\n"
      "    with T.block(\"all\"):\n"
      "        T.reads(X[0:5], H[0:2], S[0:2])\n        T.writes(S[0:2], B[0:5])\n"
      "        for j in range(2):\n            S[j] = H[j]\n"
      "        for t in range(5):\n"
      "            S[0] = T.tanh(S[0] * X[t] + S[1])\n"
      "            if S[0] > 0.9:\n                S[1] = S[0] * S[1]\n"
      "            else:\n                S[1] = S[1] + X[t]\n"
      "            B[t] = S[0] * S[1]\n",
      2);
  // Values that swap, through lets.
  expect_slope(
      "(X: T.Buffer((5,), \"float64\"), B: T.Buffer((2,), \"float64\")):\n"
      "    with T.block(\"all\"):\n"
      "        T.reads(X[0:5], B[0:2])\n        T.writes(B[0:2])\n"
      "        B[0] = X[0]\n        B[1] = X[1]\n"
      "        for t in range(5):\n"
      "            with T.LetStmt(B[0] * X[t]) as a:\n"
      "                with T.LetStmt(B[0] + B[1]) as b:\n"
      "                    B[0] = b\n                    B[1] = a * b\n",
      1);
}

// The two of three equal elements that come later get nothing.
TEST(adjoint_program, gives_the_first_of_equal_elements_all) {
  const Function f = program_in(
      "(X: T.Buffer((3,), \"float64\"), B: T.Buffer((1,), \"float64\")):\n"
      "    for i, k in T.grid(1, 3):\n        with T.block(\"s\"):\n"
      "            vi, vk = T.axis.remap(\"SR\", [i, k])\n            with T.init():\n"
      "                B[vi] = T.min_value(\"float64\")\n"
      "            B[vi] = T.max(B[vi], X[vk])\n");
  std::vector<TensorBuffer> args{TensorBuffer::zeros(DType::float_(64), {3}),
                                 TensorBuffer::zeros(DType::float_(64), {1}),
                                 TensorBuffer::uninitialised(DType::float_(64), {3})};
  args[1].set_float(0, 2);
  ASSERT_TRUE(interpret(adjoint_program(f, {1, {true}, {true}}), args).ok());
  EXPECT_EQ(args[2].float_at(0), 2);
  EXPECT_EQ(args[2].float_at(1), 0);
  EXPECT_EQ(args[2].float_at(2), 0);
}

TEST(adjoint_program, refuses_what_it_cannot_undo) {
  const auto refused = [](const std::string& body) {
    const Function f = program_in(
        "(X: T.Buffer((5,), \"float64\"), B: T.Buffer((5,), \"float64\")):\n    with T.block(\"all\"):\n"
        "        T.reads(X[0:5], B[0:5])\n        T.writes(B[0:5])\n" +
        body);
    try {
      adjoint_program(f, {1, {true}, {true}});
    } catch (const support::DiagnosticError& error) {
      return std::string(error.diagnostics[0].code.name) + ": " + error.diagnostics[0].message;
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused("        B[0] = T.call_pure_extern(\"float64\", \"f\", X[0])\n"),
            "tir-no-gradient: 'call_pure_extern' has no derivative");
  EXPECT_EQ(refused("        while B[0] < 3.0:\n            B[0] = B[0] * X[0]\n"),
            "tir-no-gradient: no gradient is made of a tensor program with the statement While");
  EXPECT_EQ(refused("        T.evaluate(T.call_extern(\"int32\", \"f\", X[0]))\n        B[0] = X[0]\n"),
            "tir-no-gradient: no gradient is made of a tensor program with calls");
  EXPECT_EQ(refused("        for i in range(T.cast(X[0], \"int32\")):\n            B[0] = B[0] * B[0] + X[i]\n"),
            "tir-no-gradient: no gradient is made of a tensor program with a loop whose bounds are data, and that "
            "overwrites what the gradient needs");
}

}  // namespace
}  // namespace lathe::tir
