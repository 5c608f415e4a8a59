// Compiled kernels against the interpreter: random programs over all dtypes, operations and lanes, with gathers, masks
// and tails, sub-byte types, register buffers, scratch memory, parallel loops.
#include <gtest/gtest.h>

#include "codegen/emit/kernel_text.h"
#include "codegen/llvm/compile.h"
#include "codegen/llvm/read_object_test.h"
#include "codegen/llvm/run_kernel_test.h"
#include "tir/interpret/interpret.h"

namespace lathe::codegen {
namespace {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

constexpr int64_t elements = 37;

const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> dtypes = {DType::boolean(),
                                            DType::int_(8),
                                            DType::int_(16),
                                            DType::int_(32),
                                            DType::int_(64),
                                            DType::uint(8),
                                            DType::uint(16),
                                            DType::uint(32),
                                            DType::uint(64),
                                            DType::int_(4),
                                            DType::uint(4),
                                            DType::int_(2),
                                            DType::uint(2),
                                            DType::float_(16),
                                            DType::bfloat16(),
                                            DType::float_(32),
                                            DType::float_(64),
                                            *DType::parse("float8_e4m3fn"),
                                            *DType::parse("float8_e5m2"),
                                            *DType::parse("float8_e4m3fnuz"),
                                            *DType::parse("float8_e3m4"),
                                            *DType::parse("float8_e4m3"),
                                            *DType::parse("float8_e4m3b11fnuz"),
                                            *DType::parse("float8_e5m2fnuz"),
                                            *DType::parse("float4_e2m1fn")};
  return dtypes;
}

bool is_tiny_float(DType t) { return t.is_floating() && t.bits < 16; }

// A random kernel: out[i] = an expression of inputs, for every i below `elements`, by vectors with a masked tail.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Kernel kernel() {
    const DType t = pick(all_dtypes());
    lanes_ = pick(std::vector<int>{1, 1, 2, 3, 4, 8, 16});
    for (const DType d : all_dtypes()) inputs_.push_back(buffer("in_" + d.str(), {int64(elements)}, d));
    const Buffer out = buffer("out", {int64(elements)}, t);
    const int64_t steps = (elements + lanes_ - 1) / lanes_;
    base_ = Expr(i_) * lanes_;
    position_ = lanes_ == 1 ? base_ : Expr(make<Ramp>(base_, int64(1), int64_t{lanes_}));
    inside_ = position_ < constant(position_->dtype, elements);
    Stmt body = store(out, expression(t, 3));
    body = around(out, std::move(body));
    const bool parallel = chance(3);
    body = make<For>(i_, int64(0), int64(steps), parallel ? ForKind::parallel : ForKind::serial, body);
    std::vector<Buffer> params = inputs_;
    params.push_back(out);
    return {"random", prim_func(params, body)};
  }

 private:
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[random_() % from.size()];
  }
  bool chance(uint64_t one_in) { return random_() % one_in == 0; }

  Stmt store(const Buffer& to, Expr value) {
    if (lanes_ == 1) return make<BufferStore>(to, value, std::vector<Expr>{position_});
    return make<BufferStore>(to, value, std::vector<Expr>{position_}, inside_);
  }

  // Sends the value through a register buffer or scratch memory first, or puts a condition around.
  Stmt around(const Buffer& out, Stmt body) {
    const DType t = out->dtype;
    if (chance(4)) {
      const std::string scope = pick(std::vector<std::string>{"register", "local", "global"});
      const Buffer temporary = buffer("temporary", {int64(2 * lanes_)}, t, scope);
      const Expr at = lanes_ == 1 ? int64(1) : Expr(make<Ramp>(int64(lanes_), int64(1), int64_t{lanes_}));
      const Stmt fill = make<BufferStore>(temporary, expression(t, 2), std::vector<Expr>{at});
      return make<Allocate>(temporary->data, t, std::vector<Expr>{int64(2 * lanes_)}, scope,
                            seq({fill, store(out, load(temporary, {at}))}));
    }
    if (chance(4)) {
      const Expr condition = lt(floormod(Expr(i_), int64(3)), int64(2));
      return make<IfThenElse>(condition, body, store(out, expression(t, 1)));
    }
    return body;
  }

  Expr input(DType t) {
    const size_t which =
        static_cast<size_t>(std::find(all_dtypes().begin(), all_dtypes().end(), t) - all_dtypes().begin());
    const Buffer& b = inputs_[which];
    if (lanes_ == 1) return load(b, {base_});
    switch (random_() % 5) {
      case 0:  // backwards, masked
        return make<BufferLoad>(
            b, std::vector<Expr>{Expr(make<Ramp>(int64(elements - 1) - base_, int64(-1), int64_t{lanes_}))}, inside_);
      case 1:  // gathered; always inside
        return load(b, {floormod(position_ * constant(position_->dtype, 5), constant(position_->dtype, elements))});
      case 2:  // one element for all
        return make<Broadcast>(load(b, {floormod(base_, int64(elements))}), int64_t{lanes_});
      case 3:  // only where the choice is taken
        return if_then_else(base_ + int64_t{lanes_ - 1} < int64(elements), load(b, {position_}),
                            constant(t.with_lanes(lanes_), int64_t{1}));
      default:
        return make<BufferLoad>(b, std::vector<Expr>{position_}, inside_);
    }
  }

  Expr leaf(DType t) {
    if (chance(4)) return constant(t.with_lanes(lanes_), static_cast<int64_t>(random_() % 4));
    // Conversions from what is exact: contraction may change the last bit of a computed float.
    if (chance(3)) return cast(t.with_lanes(lanes_), input(pick(all_dtypes())));
    return input(t);
  }

  Expr expression(DType t, int depth) {
    if (depth == 0 || is_tiny_float(t)) return leaf(t);
    if (t.is_bool()) return boolean(depth);
    const Expr a = expression(t, depth - 1);
    if (chance(6)) return select(boolean(depth - 1), a, expression(t, depth - 1));
    if (chance(8)) {
      const Var v = var("v", a->dtype);
      return make<Let>(v, a, Expr(v) + expression(t, depth - 1));
    }
    const Expr b = expression(t, depth - 1);
    if (t.is_floating()) return of_floats(a, b);
    return of_integers(t, a, b);
  }

  Expr of_floats(const Expr& a, const Expr& b) {
    switch (random_() % 12) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return div(a, b);
      case 4:
        return min(a, b);
      case 5:
        return max(a, b);
      case 6:
        return call(intrinsic::sqrt, call(intrinsic::abs, a));
      case 7:
        return call(a->dtype, intrinsic::copysign, {a, b});
      case 8:
        return call(intrinsic::tanh, a);
      case 9:
        return call(intrinsic::sigmoid, a);
      case 10:
        return call(a->dtype, intrinsic::fma, {a, b, leaf(a->dtype.element())});
      default:
        return call(intrinsic::erf, b);
    }
  }

  Expr of_integers(DType t, const Expr& a, const Expr& b) {
    const DType v = t.with_lanes(lanes_);
    // Division by zero is an error of the program: the divisor is made odd.
    const Expr odd = call(v, intrinsic::bitwise_or, {b, constant(v, int64_t{1})});
    switch (random_() % 16) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * b;
      case 3:
        return div(a, odd);
      case 4:
        return mod(a, odd);
      case 5:
        return floordiv(a, odd);
      case 6:
        return floormod(a, odd);
      case 7:
        return min(a, b);
      case 8:
        return max(a, b);
      case 9:
        return call(v, intrinsic::bitwise_xor, {a, b});
      case 10:
        return call(v, intrinsic::shift_left, {a, b});
      case 11:
        return call(v, intrinsic::shift_right, {a, b});
      case 12:
        return call(intrinsic::popcount, a);
      case 13:
        return call(intrinsic::clz, a);
      case 14:
        return call(intrinsic::abs, a);
      default:
        return t.is_uint() ? call(v, intrinsic::pow, {a, call(v, intrinsic::bitwise_and, {b, constant(v, int64_t{3})})})
                           : call(intrinsic::bitwise_not, a);
    }
  }

  Expr boolean(int depth) {
    if (depth == 0) return leaf(DType::boolean());
    // Comparisons of inputs: the last bit of a computed float must not decide.
    const DType t = pick(all_dtypes());
    const Expr a = input(t), b = chance(2) ? input(t) : constant(t.with_lanes(lanes_), int64_t{1});
    switch (random_() % 9) {
      case 0:
        return lt(a, b);
      case 1:
        return le(a, b);
      case 2:
        return gt(a, b);
      case 3:
        return ge(a, b);
      case 4:
        return eq(a, b);
      case 5:
        return ne(a, b);
      case 6:
        return logical_and(boolean(depth - 1), boolean(depth - 1));
      case 7:
        return logical_or(boolean(depth - 1), boolean(depth - 1));
      default:
        return logical_not(boolean(depth - 1));
    }
  }

  std::mt19937_64 random_;
  int lanes_ = 1;
  Var i_ = var("i");
  Expr base_, position_, inside_;
  std::vector<Buffer> inputs_;
};

std::vector<TensorBuffer> random_arguments(const PrimFunc& f, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TensorBuffer> args;
  for (const auto& [param, b] : f.buffer_map) {
    TensorBuffer tensor = TensorBuffer::zeros(b->dtype, {elements});
    for (int64_t i = 0; i < elements; ++i) {
      if (b->dtype.is_floating())
        tensor.set_float(i, round_to(b->dtype, (static_cast<double>(random() % 4001) - 2000) / 256.0));
      else if (random() % 4 == 0)
        tensor.set_int(i, wrap_integer(static_cast<int64_t>(random()), b->dtype));
      else
        tensor.set_int(i, wrap_integer(static_cast<int64_t>(random() % 9) - 4, b->dtype));
    }
    args.push_back(std::move(tensor));
  }
  return args;
}

// What differs between the two results, or "".
std::string difference(const TensorBuffer& wanted, const TensorBuffer& got) {
  for (int64_t i = 0; i < elements; ++i) {
    if (!wanted.dtype.is_floating()) {
      if (wanted.int_at(i) != got.int_at(i))
        return fmt::format("element {}: {} is not {}", i, got.int_at(i), wanted.int_at(i));
      continue;
    }
    const double a = wanted.float_at(i), b = got.float_at(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    // FMA and the functions' last place; a narrow type's last place is coarse.
    const double place = wanted.dtype.bits == 64      ? 1e-12
                         : wanted.dtype.bits == 32    ? 2e-5
                         : wanted.dtype.is_bfloat16() ? 0.02
                         : wanted.dtype.bits == 16    ? 4e-3
                                                      : 0;
    if (a == b || std::fabs(a - b) <= place * (1 + std::fabs(a))) continue;
    return fmt::format("element {}: {} is not {}", i, b, a);
  }
  return "";
}

struct Outcome {
  int accepted = 0, refused = 0, differing = 0;
  std::string first;
};

Outcome compare_random_kernels(uint64_t first_seed, int programs, const target::Target& target,
                               const CompileOptions& options = {}) {
  Outcome outcome;
  for (int p = 0; p < programs; ++p) {
    const uint64_t seed = first_seed + static_cast<uint64_t>(p);
    const Kernel kernel = Generator(seed).kernel();
    std::vector<TensorBuffer> wanted = random_arguments(*kernel.function, seed), got = wanted;
    const support::Status ran = interpret(kernel.function, wanted);
    if (!ran.ok()) {
      ++outcome.refused;
      if (outcome.first.empty() && outcome.refused > programs / 20) outcome.first = support::render(ran.diagnostics());
      continue;
    }
    ++outcome.accepted;
    const auto loaded = test::load({kernel}, target, options);
    std::vector<void*> buffers;
    for (TensorBuffer& b : got) buffers.push_back(b.bytes.data());
    test::CallState state;
    state.threads = 2;
    EXPECT_EQ(test::call(loaded, 0, buffers, {}, &state), 0);
    for (size_t b = 0; b < got.size(); ++b) {
      const std::string d = b + 1 == got.size()               ? difference(wanted[b], got[b])
                            : wanted[b].bytes == got[b].bytes ? ""
                                                              : "an input was written to";
      if (d.empty()) continue;
      ++outcome.differing;
      outcome.first += fmt::format("seed {}, {}: {}\n", seed, got[b].dtype.str(), d);
    }
  }
  return outcome;
}

TEST(differential, line_tables_change_no_random_kernel) {
  for (uint64_t seed = 2000; seed < 2040; ++seed) {
    const std::vector<Kernel> kernels = {Generator(seed).kernel()};
    const KernelText text = kernel_text(kernels, "kernels.tir");
    const target::Target target = target::parse_target("x86-64-v3").value_or_throw();
    const auto plain = compile_kernels(kernels, target).value_or_throw();
    const auto lined = compile_kernels(kernels, target, {.text = &text}).value_or_throw();
    EXPECT_EQ(test::loaded_sections(*plain.kernels[0].object), test::loaded_sections(*lined.kernels[0].object)) << seed;
  }
}

TEST(differential, random_kernels_do_what_the_interpreter_does) {
  const Outcome outcome = compare_random_kernels(1000, 300, test::native());
  std::printf("  %d random kernels compared, %d refused by the interpreter\n", outcome.accepted, outcome.refused);
  EXPECT_EQ(outcome.differing, 0) << outcome.first;
  EXPECT_GE(outcome.accepted, 270) << outcome.first;
}

TEST(differential, code_made_quickly_computes_the_same) {
  for (const char* name : {"native", "x86-64-v2"}) {
    const target::Target target = target::parse_target(name).value_or_throw();
    if (!target.triple.starts_with(test::native().triple.substr(0, 6))) continue;
    const Outcome outcome = compare_random_kernels(9000, 200, target, {.most_full = 0});
    EXPECT_EQ(outcome.differing, 0) << outcome.first;
    EXPECT_GE(outcome.accepted, 180) << outcome.first;
  }
}

TEST(differential, an_older_machine_computes_the_same) {
  // Code for x86-64-v2 has no FMA, no F16C and no masked loads: their replacements are written out.
  target::Target v2 = target::parse_target("x86-64-v2").value_or_throw();
  if (!v2.triple.starts_with(test::native().triple.substr(0, 6))) GTEST_SKIP() << "another architecture";
  const Outcome outcome = compare_random_kernels(5000, 120, v2);
  EXPECT_EQ(outcome.differing, 0) << outcome.first;
  EXPECT_GE(outcome.accepted, 100);
}

// Neighbours in a byte are written by different threads at every place: each keeps what it is given. Threads seldom
// meet in the same moment, so that the code is looked at, too.
TEST(differential, threads_share_bytes_of_packed_elements) {
  constexpr int64_t workers = 8, each = 1 << 12, n = workers * each;
  const auto scatter = [&](DType t, ForKind kind) {
    const Buffer a = buffer("A", {int64(n)}, t), b = buffer("B", {int64(n)}, t);
    const Var i = var("i"), j = var("j");
    const Expr at = Expr(j) * workers + i;
    const Stmt store = make<BufferStore>(b, load(a, {int64(n - 1) - at}), std::vector<Expr>{at});
    const Stmt inner = make<For>(j, int64(0), int64(each), ForKind::serial, store);
    return Kernel{"scatter", prim_func({a, b}, make<For>(i, int64(0), int64(workers), kind, inner))};
  };
  const auto code = [&](ForKind kind) {
    return emit_llvm({scatter(DType::int_(4), kind)}, test::native(), {.kind = EmitKind::llvm_ir}).value_or_throw();
  };
  EXPECT_NE(code(ForKind::parallel).find("atomicrmw and"), std::string::npos);
  EXPECT_NE(code(ForKind::parallel).find("atomicrmw or"), std::string::npos);
  EXPECT_EQ(code(ForKind::serial).find("atomicrmw"), std::string::npos);
  for (const DType t : {DType::int_(4), DType::uint(2), *DType::parse("float4_e2m1fn")}) {
    const auto loaded = test::load({scatter(t, ForKind::parallel)});
    std::mt19937_64 random(7);
    TensorBuffer in = TensorBuffer::zeros(t, {n});
    for (uint8_t& byte : in.bytes) byte = static_cast<uint8_t>(random());
    for (int round = 0; round < 5; ++round) {
      TensorBuffer out = TensorBuffer::zeros(t, {n});
      for (uint8_t& byte : out.bytes) byte = static_cast<uint8_t>(random());
      test::CallState state;
      state.threads = workers;
      EXPECT_EQ(test::call(loaded, 0, {in.bytes.data(), out.bytes.data()}, {}, &state), 0);
      for (int64_t k = 0; k < n; ++k) {
        const double got = t.is_floating() ? out.float_at(k) : static_cast<double>(out.int_at(k));
        const double wanted = t.is_floating() ? in.float_at(n - 1 - k) : static_cast<double>(in.int_at(n - 1 - k));
        ASSERT_EQ(got, wanted) << t.str() << " " << k;
      }
    }
  }
}

// Runs of whole bytes, by vectors: first elements that begin a byte and that do not, tails in the middle of one.
TEST(differential, packed_runs_are_moved_whole_where_they_begin_with_a_byte) {
  constexpr int64_t n = 77;
  for (const DType t : {DType::int_(4), DType::uint(4), DType::int_(2), DType::uint(2), *DType::parse("float4_e2m1fn")})
    for (const int64_t lanes : {2, 4, 32})
      for (const int64_t first : {0, 1, 2, 4})
        for (const ForKind kind : {ForKind::serial, ForKind::parallel}) {
          const Buffer a = buffer("A", {int64(n)}, t), b = buffer("B", {int64(n)}, t);
          const Var i = var("i");
          const Expr from = make<Ramp>(Expr(i) * lanes, int64(1), lanes), to = from + constant(from->dtype, first);
          const Expr inside = to < constant(to->dtype, n);
          const Expr ramp = make<Ramp>(Expr(i) * lanes + first, int64(1), lanes);
          const Stmt store = make<BufferStore>(b, Expr(make<BufferLoad>(a, std::vector<Expr>{from}, inside)),
                                               std::vector<Expr>{ramp}, inside);
          const Stmt body = make<For>(i, int64(0), int64((n - first + lanes - 1) / lanes), kind, store);
          const Function f = prim_func({a, b}, body);
          const auto loaded = test::load({{"move", f}});
          std::mt19937_64 random(9);
          TensorBuffer in = TensorBuffer::zeros(t, {n}), out = TensorBuffer::zeros(t, {n});
          for (uint8_t& byte : in.bytes) byte = static_cast<uint8_t>(random());
          for (uint8_t& byte : out.bytes) byte = static_cast<uint8_t>(random());
          TensorBuffer wanted = out;
          const int64_t bits = t.storage_bits();
          const auto get = [&](const TensorBuffer& x, int64_t k) {
            return (x.bytes[static_cast<size_t>(k * bits / 8)] >> (k * bits % 8)) & ((1 << bits) - 1);
          };
          EXPECT_EQ(test::call(loaded, 0, {in.bytes.data(), out.bytes.data()}), 0);
          for (int64_t k = 0; k < n; ++k)
            ASSERT_EQ(get(out, k), k < first ? get(wanted, k) : get(in, k - first))
                << t.str() << " x " << lanes << " from " << first << " at " << k;
          const int64_t past = n * bits % 8;
          if (past) ASSERT_EQ(out.bytes.back() >> past, wanted.bytes.back() >> past) << "bits beyond the last element";
        }
}

// Every bit pattern of a narrow type through a conversion, against the interpreter's tables.
TEST(differential, narrow_floats_convert_exactly) {
  for (const char* target_name : {"native", "x86-64-v2"})
    for (const DType t : all_dtypes()) {
      if (!t.is_floating() || t.bits > 16) continue;
      const int64_t n = int64_t{1} << t.bits;
      const Buffer a = buffer("A", {int64(n)}, t), b = buffer("B", {int64(n)}, DType::float32()),
                   c = buffer("C", {int64(n)}, t);
      const Var i = var("i");
      const Stmt body = make<For>(i, int64(0), int64(n), ForKind::serial,
                                  seq({make<BufferStore>(b, cast(DType::float32(), load(a, {i})), std::vector<Expr>{i}),
                                       make<BufferStore>(c, cast(t, load(b, {i})), std::vector<Expr>{i})}));
      const auto loaded =
          test::load({{"convert", prim_func({a, b, c}, body)}}, target::parse_target(target_name).value_or_throw());
      const int per_byte = t.bits == 4 ? 2 : 1;
      std::vector<uint16_t> codes(static_cast<size_t>(n)), back(static_cast<size_t>(n));
      auto* in = reinterpret_cast<uint8_t*>(codes.data());
      for (int64_t k = 0; k < n; ++k) {
        if (t.bits == 16)
          codes[static_cast<size_t>(k)] = static_cast<uint16_t>(k);
        else
          in[k / per_byte] = static_cast<uint8_t>(per_byte == 2 ? (k | (k << 4)) & 0xff : k);
        if (per_byte == 2) in[k / 2] = static_cast<uint8_t>((k & ~1) | ((k | 1) << 4));
      }
      std::vector<float> wide(static_cast<size_t>(n));
      EXPECT_EQ(test::call(loaded, 0, {codes.data(), wide.data(), back.data()}), 0);
      for (int64_t k = 0; k < n; ++k) {
        const double wanted = decode_float(t, static_cast<uint64_t>(k)),
                     got = static_cast<double>(wide[static_cast<size_t>(k)]);
        if (std::isnan(wanted))
          EXPECT_TRUE(std::isnan(got)) << t.str() << " " << k;
        else
          ASSERT_TRUE(got == wanted && std::signbit(got) == std::signbit(wanted)) << t.str() << " " << k << ": " << got;
        if (std::isnan(wanted)) continue;
        const auto* out = reinterpret_cast<uint8_t*>(back.data());
        const int64_t code = t.bits == 16    ? back[static_cast<size_t>(k)]
                             : per_byte == 2 ? (out[k / 2] >> (k % 2 * 4)) & 15
                                             : out[k];
        ASSERT_EQ(code, k) << t.str();
      }
    }
}

// float32 and float64 rounded to narrow types, on random patterns and around ties.
TEST(differential, narrow_floats_are_rounded_once_to_nearest_even) {
  constexpr int64_t n = 1 << 14;
  for (const DType from : {DType::float_(32), DType::float_(64)})
    for (const DType t :
         {DType::float_(16), DType::bfloat16(), *DType::parse("float8_e4m3fn"), *DType::parse("float8_e5m2"),
          *DType::parse("float8_e4m3fnuz"), *DType::parse("float8_e5m2fnuz"), *DType::parse("float8_e8m0fnu"),
          *DType::parse("float8_e3m4"), *DType::parse("float8_e4m3"), *DType::parse("float8_e4m3b11fnuz"),
          *DType::parse("float4_e2m1fn")})
      for (const char* target_name : {"native", "x86-64-v2"}) {
        const Buffer a = buffer("A", {int64(n)}, from), b = buffer("B", {int64(n)}, t);
        const Var i = var("i");
        const Expr at = make<Ramp>(Expr(i * 16), int64(1), int64_t{16});
        const Stmt body =
            make<For>(i, int64(0), int64(n / 16), ForKind::serial,
                      Stmt(make<BufferStore>(b, cast(t.with_lanes(16), load(a, {at})), std::vector<Expr>{at})));
        const auto loaded =
            test::load({{"round", prim_func({a, b}, body)}}, target::parse_target(target_name).value_or_throw());
        std::mt19937_64 random(5);
        TensorBuffer in = TensorBuffer::zeros(from, {n}), out = TensorBuffer::zeros(t, {n});
        for (int64_t k = 0; k < n; ++k) {
          // Halfway between two neighbours, or a hair off, in the type's range.
          const double x = decode_float(t, random() % (uint64_t{1} << t.bits)),
                       y = decode_float(t, random() % (uint64_t{1} << t.bits));
          const double ulp =
              std::ldexp(1.0, std::ilogb(x == 0 || std::isnan(x) || std::isinf(x) ? 1.0 : x) - (t.is_bfloat16() ? 7
                                                                                                : t.bits == 16  ? 10
                                                                                                                : 2));
          double v = x + ulp / 2 * static_cast<double>(random() % 3);
          if (random() % 2) v = std::nextafter(v, y);
          in.set_float(k, from.bits == 32 ? static_cast<double>(static_cast<float>(v)) : v);
        }
        EXPECT_EQ(test::call(loaded, 0, {in.bytes.data(), out.bytes.data()}), 0);
        for (int64_t k = 0; k < n; ++k) {
          const double wanted = round_to(t, in.float_at(k)), got = out.float_at(k);
          ASSERT_TRUE(wanted == got || (std::isnan(wanted) && std::isnan(got)))
              << from.str() << " to " << t.str() << " on " << target_name << ": " << in.float_at(k) << " gives " << got
              << ", not " << wanted;
        }
      }
}

}  // namespace
}  // namespace lathe::codegen
