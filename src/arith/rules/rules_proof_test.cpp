// Proves every row of the rules: by Z3 over all integers (index), over integers that wrap (integer) and over IEEE
// floats (number), where it decides within ten seconds; else by trying all small values. Proofs are cached by the
// rule's text under arith-proofs in the build folder; with LATHE_PROVE_ALL=1 all are proved anew.
#include <gtest/gtest.h>
#include <z3++.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "arith/interval.h"
#include "arith/rules/rule.h"
#include "support/hash.h"

namespace lathe::arith::rules {
namespace {

enum class Meaning { integers, wrapping_signed, wrapping_unsigned, floats };
enum class Verdict { proved, refuted, unknown };

constexpr unsigned z3_milliseconds = 10000;
constexpr unsigned wrap_bits = 8, wide_bits = 32;

std::string_view name_of(Meaning m) {
  switch (m) {
    case Meaning::integers:
      return "integers";
    case Meaning::wrapping_signed:
      return "wrapping signed";
    case Meaning::wrapping_unsigned:
      return "wrapping unsigned";
    default:
      return "floats";
  }
}

std::vector<Meaning> meanings_of(Domain domain) {
  switch (domain) {
    case Domain::index:
    case Domain::logic:
      return {Meaning::integers};
    case Domain::integer:
      return {Meaning::integers, Meaning::wrapping_signed, Meaning::wrapping_unsigned};
    default:
      return {Meaning::integers, Meaning::wrapping_signed, Meaning::wrapping_unsigned, Meaning::floats};
  }
}

// A rule as a formula. Vectors are looked at in one arbitrary lane, `lane`.
class Formula {
 public:
  Formula(z3::context& z3, const Rule& rule, Meaning meaning)
      : z3_(z3), rule_(rule), meaning_(meaning), lane_(z3.int_const("lane")), facts_(z3), names_(z3) {
    for (const std::string& name : rule.names) names_.push_back(variable(name));
  }

  // Whether the replacement ever differs.
  z3::expr refutation() {
    const z3::expr left = translate(rule_.pattern, rule_.pattern.nodes.size() - 1);
    z3::expr assumed = z3::mk_and(facts_);  // divisors of the pattern are not zero
    z3::expr holds = z3_.bool_val(true);
    for (const Pattern& c : rule_.conditions) {
      in_condition_ = true;
      holds = holds && translate(c, c.nodes.size() - 1);
      in_condition_ = false;
    }
    z3::expr_vector before(z3_);
    std::swap(before, facts_);
    facts_ = z3::expr_vector(z3_);
    const z3::expr right = translate(rule_.replacement, rule_.replacement.nodes.size() - 1);
    const z3::expr safe = facts_.empty() ? z3_.bool_val(true) : z3::mk_and(facts_);
    return assumed && holds && !(safe && same(left, right));
  }

 private:
  z3::expr variable(const std::string& name) {
    const char first = name[0];
    if (first == 'l') {
      const z3::expr lanes = z3_.int_const(name.c_str());
      facts_.push_back(0 <= lane_ && lane_ < lanes);
      return lanes;
    }
    if (first >= 'p' && first <= 'r') return z3_.bool_const(name.c_str());
    switch (meaning_) {
      case Meaning::integers:
        return z3_.int_const(name.c_str());
      case Meaning::floats:
        return z3_.constant(name.c_str(), z3_.fpa_sort(3, 4));
      default:
        return z3_.bv_const(name.c_str(), wrap_bits);
    }
  }

  bool wraps() const { return meaning_ == Meaning::wrapping_signed || meaning_ == Meaning::wrapping_unsigned; }
  bool is_signed() const { return meaning_ != Meaning::wrapping_unsigned; }

  z3::expr same(const z3::expr& a, const z3::expr& b) {
    // Of floats the bits, but for a NaN's.
    return a.get_sort().is_fpa() ? z3::expr(z3_, Z3_mk_eq(z3_, a, b)) : a == b;
  }

  // Conditions and constants are computed on the mathematical values.
  z3::expr widened(const z3::expr& e) {
    return is_signed() ? z3::sext(e, wide_bits - wrap_bits) : z3::zext(e, wide_bits - wrap_bits);
  }

  z3::expr number(int64_t value, bool wide) {
    if (meaning_ == Meaning::integers) return z3_.int_val(value);
    if (meaning_ == Meaning::floats) return float_value(value);
    return z3_.bv_val(value, wide ? wide_bits : wrap_bits);
  }
  z3::expr float_value(int64_t value) {
    return z3::expr(z3_, Z3_mk_fpa_numeral_int(z3_, static_cast<int>(value), z3_.fpa_sort(3, 4)));
  }

  void divides(const z3::expr& b, const z3::expr& zero) { facts_.push_back(b != zero); }

  z3::expr floor_quotient(const z3::expr& a, const z3::expr& b) {
    // Z3 rounds so that the remainder is never negative.
    return z3::ite(b > 0, a / b, (-a) / (-b));
  }
  z3::expr truncated_quotient(const z3::expr& a, const z3::expr& b) {
    const auto abs = [&](const z3::expr& e) { return z3::ite(e >= 0, e, -e); };
    const z3::expr magnitude = abs(a) / abs(b);
    return z3::ite((a >= 0) == (b >= 0), magnitude, -magnitude);
  }
  z3::expr bv_quotient(const z3::expr& a, const z3::expr& b, bool down, bool wide) {
    if (!is_signed() && !wide) return z3::udiv(a, b);
    const z3::expr quotient = a / b;
    if (!down) return quotient;
    const z3::expr rest = a - quotient * b, zero = z3_.bv_val(0, a.get_sort().bv_size());
    return z3::ite(rest != zero && (rest < zero) != (b < zero), quotient - z3_.bv_val(1, a.get_sort().bv_size()),
                   quotient);
  }

  // `wide`: constants and conditions of wrapping integers.
  z3::expr translate(const Pattern& p, size_t at, bool wide = false) {
    const PatternNode& n = p.nodes[at];
    if (wraps() && n.constant && !n.is_bool && !wide && n.kind >= 0)
      return translate(p, at, true).extract(wrap_bits - 1, 0);
    const auto slot = [&]() -> z3::expr {
      const z3::expr e = names_[static_cast<int>(n.slot)];
      return wraps() && e.is_bv() && (wide || in_condition_) ? widened(e) : e;
    };
    wide = wide || (wraps() && in_condition_);
    switch (n.kind) {
      case number_wildcard:
      case bool_wildcard:
      case constant_slot:
        return slot();
      case literal:
        return n.is_bool ? z3_.bool_val(n.value != 0) : number(n.value, wide);
      case kind<ir::Not>:
        return !translate(p, n.operand[0], wide);
      case kind<ir::Select>:
        return z3::ite(translate(p, n.operand[0], wide), translate(p, n.operand[1], wide),
                       translate(p, n.operand[2], wide));
      case kind<ir::Broadcast>:
        return translate(p, n.operand[0], wide);
      case kind<ir::Ramp>: {
        const z3::expr base = translate(p, n.operand[0], wide), stride = translate(p, n.operand[1], wide);
        return base + (wraps() ? z3::int2bv(base.get_sort().bv_size(), lane_) : lane_) * stride;
      }
      default:
        break;
    }
    const z3::expr a = translate(p, n.operand[0], wide), b = translate(p, n.operand[1], wide);
    if (a.is_bool()) return logical(n.kind, a, b);
    if (meaning_ == Meaning::floats) return of_floats(n.kind, a, b);
    return wraps() ? of_vectors(n.kind, a, b, wide) : of_integers(n.kind, a, b);
  }

  z3::expr logical(int k, const z3::expr& a, const z3::expr& b) {
    switch (k) {
      case kind<ir::And>:
        return a && b;
      case kind<ir::Or>:
        return a || b;
      case kind<ir::EQ>:
        return a == b;
      case kind<ir::NE>:
        return a != b;
      default:
        support::unreachable("no operation on bools");
    }
  }

  z3::expr of_integers(int k, const z3::expr& a, const z3::expr& b) {
    if (k == kind<ir::FloorDiv> || k == kind<ir::FloorMod> || k == kind<ir::Div> || k == kind<ir::Mod>)
      divides(b, z3_.int_val(0));
    switch (k) {
      case kind<ir::Add>:
        return a + b;
      case kind<ir::Sub>:
        return a - b;
      case kind<ir::Mul>:
        return a * b;
      case kind<ir::FloorDiv>:
        return floor_quotient(a, b);
      case kind<ir::FloorMod>:
        return a - floor_quotient(a, b) * b;
      case kind<ir::Div>:
        return truncated_quotient(a, b);
      case kind<ir::Mod>:
        return a - truncated_quotient(a, b) * b;
      case kind<ir::Min>:
        return z3::ite(a < b, a, b);
      case kind<ir::Max>:
        return z3::ite(a < b, b, a);
      case kind<ir::EQ>:
        return a == b;
      case kind<ir::NE>:
        return a != b;
      case kind<ir::LT>:
        return a < b;
      case kind<ir::LE>:
        return a <= b;
      case kind<ir::GT>:
        return a > b;
      case kind<ir::GE>:
        return a >= b;
      default:
        support::unreachable("no operation on integers");
    }
  }

  z3::expr of_vectors(int k, const z3::expr& a, const z3::expr& b, bool wide) {
    if (k == kind<ir::FloorDiv> || k == kind<ir::FloorMod> || k == kind<ir::Div> || k == kind<ir::Mod>)
      divides(b, z3_.bv_val(0, b.get_sort().bv_size()));
    const bool down = k == kind<ir::FloorDiv> || k == kind<ir::FloorMod>;
    const z3::expr less = is_signed() || wide ? a < b : z3::ult(a, b);
    switch (k) {
      case kind<ir::Add>:
        return a + b;
      case kind<ir::Sub>:
        return a - b;
      case kind<ir::Mul>:
        return a * b;
      case kind<ir::FloorDiv>:
      case kind<ir::Div>:
        return bv_quotient(a, b, down, wide);
      case kind<ir::FloorMod>:
      case kind<ir::Mod>:
        return a - bv_quotient(a, b, down, wide) * b;
      case kind<ir::Min>:
        return z3::ite(less, a, b);
      case kind<ir::Max>:
        return z3::ite(less, b, a);
      case kind<ir::EQ>:
        return a == b;
      case kind<ir::NE>:
        return a != b;
      case kind<ir::LT>:
        return less;
      case kind<ir::LE>:
        return less || a == b;
      case kind<ir::GT>:
        return !less && a != b;
      case kind<ir::GE>:
        return !less;
      default:
        support::unreachable("no operation on wrapping integers");
    }
  }

  // IEEE 754-2019 minimum (maximum): NaN wins, -0 is below +0.
  z3::expr float_extremum(const z3::expr& a, const z3::expr& b, bool smaller) {
    const auto flag = [&](Z3_ast e) { return z3::expr(z3_, e); };
    const z3::expr a_nan = flag(Z3_mk_fpa_is_nan(z3_, a)), b_nan = flag(Z3_mk_fpa_is_nan(z3_, b));
    const z3::expr a_negative = flag(Z3_mk_fpa_is_negative(z3_, a));
    const z3::expr equal = flag(Z3_mk_fpa_eq(z3_, a, b));
    const z3::expr first = smaller ? flag(Z3_mk_fpa_lt(z3_, a, b)) : flag(Z3_mk_fpa_gt(z3_, a, b));
    const z3::expr when_equal = smaller == true ? z3::ite(a_negative, a, b) : z3::ite(a_negative, b, a);
    return z3::ite(a_nan, a, z3::ite(b_nan, b, z3::ite(equal, when_equal, z3::ite(first, a, b))));
  }

  z3::expr of_floats(int k, const z3::expr& a, const z3::expr& b) {
    const z3::expr nearest(z3_, Z3_mk_fpa_rne(z3_));
    const auto made = [&](Z3_ast e) { return z3::expr(z3_, e); };
    switch (k) {
      case kind<ir::Add>:
        return made(Z3_mk_fpa_add(z3_, nearest, a, b));
      case kind<ir::Sub>:
        return made(Z3_mk_fpa_sub(z3_, nearest, a, b));
      case kind<ir::Mul>:
        return made(Z3_mk_fpa_mul(z3_, nearest, a, b));
      case kind<ir::Div>:
        return made(Z3_mk_fpa_div(z3_, nearest, a, b));
      case kind<ir::Min>:
        return float_extremum(a, b, true);
      case kind<ir::Max>:
        return float_extremum(a, b, false);
      case kind<ir::EQ>:
        return made(Z3_mk_fpa_eq(z3_, a, b));
      case kind<ir::NE>:
        return !made(Z3_mk_fpa_eq(z3_, a, b));
      case kind<ir::LT>:
        return made(Z3_mk_fpa_lt(z3_, a, b));
      case kind<ir::LE>:
        return made(Z3_mk_fpa_leq(z3_, a, b));
      case kind<ir::GT>:
        return made(Z3_mk_fpa_gt(z3_, a, b));
      case kind<ir::GE>:
        return made(Z3_mk_fpa_geq(z3_, a, b));
      default:
        support::unreachable("no operation on floats");
    }
  }

  z3::context& z3_;
  const Rule& rule_;
  Meaning meaning_;
  z3::expr lane_;
  z3::expr_vector facts_, names_;
  bool in_condition_ = false;
};

Verdict ask_z3(const Rule& rule, Meaning meaning, unsigned milliseconds) {
  z3::context z3;
  z3::solver solver(z3);
  z3::params params(z3);
  params.set("timeout", milliseconds);
  solver.set(params);
  Formula formula(z3, rule, meaning);
  solver.add(formula.refutation());
  switch (solver.check()) {
    case z3::unsat:
      return Verdict::proved;
    case z3::sat:
      return Verdict::refuted;
    default:
      return Verdict::unknown;
  }
}

// The exhaustive trial on mathematical integers: divisors to 16 of both signs, operands of 8 bits (5 for three, 4
// beyond).
class Trial {
 public:
  explicit Trial(const Rule& rule) : rule_(rule), divisor_(rule.names.size(), false) {
    for (const Pattern* p : {&rule.pattern, &rule.replacement}) mark_divisors(*p);
    for (const Pattern& c : rule.conditions) mark_divisors(c);
  }

  bool holds() {
    int operands = 0;
    for (size_t s = 0; s < rule_.names.size(); ++s) operands += !divisor_[s] && rule_.names[s][0] != 'l' && !is_bool(s);
    const int bits = operands <= 2 ? 8 : operands == 3 ? 5 : 4;
    low_ = -(1 << (bits - 1));
    high_ = (1 << (bits - 1)) - 1;
    return try_slot(0);
  }

 private:
  bool is_bool(size_t s) const { return rule_.names[s][0] >= 'p' && rule_.names[s][0] <= 'r'; }

  void mark_divisors(const Pattern& p) {
    for (const PatternNode& n : p.nodes) {
      const bool divides = n.kind == kind<ir::FloorDiv> || n.kind == kind<ir::FloorMod> || n.kind == kind<ir::Div> ||
                           n.kind == kind<ir::Mod>;
      if (!divides) continue;
      const PatternNode& d = p.nodes[n.operand[1]];
      if (d.kind == constant_slot) divisor_[d.slot] = true;
    }
  }

  bool try_slot(size_t s) {
    if (s == rule_.names.size()) return check();
    const char first = rule_.names[s][0];
    const int64_t from = is_bool(s) ? 0 : first == 'l' ? 1 : divisor_[s] ? -16 : low_;
    const int64_t to = is_bool(s) ? 1 : divisor_[s] ? 16 : first == 'l' ? 4 : high_;
    for (values_[s] = from; values_[s] <= to; ++values_[s])
      if (!try_slot(s + 1)) return false;
    return true;
  }

  bool check() {
    const bool vector =
        std::any_of(rule_.names.begin(), rule_.names.end(), [](const std::string& n) { return n[0] == 'l'; });
    int64_t lanes = 1;
    for (size_t s = 0; s < rule_.names.size(); ++s)
      if (rule_.names[s][0] == 'l') lanes = values_[s];
    for (const Pattern& c : rule_.conditions)
      if (const auto v = value(c, c.nodes.size() - 1); !v || !*v) return true;
    for (lane_ = 0; lane_ < (vector ? lanes : 1); ++lane_) {
      const auto left = value(rule_.pattern, rule_.pattern.nodes.size() - 1);
      if (left && left != value(rule_.replacement, rule_.replacement.nodes.size() - 1)) return false;
    }
    return true;
  }

  std::optional<int64_t> value(const Pattern& p, size_t at) const {
    const PatternNode& n = p.nodes[at];
    switch (n.kind) {
      case number_wildcard:
      case bool_wildcard:
      case constant_slot:
        return values_[n.slot];
      case literal:
        return n.value;
      default:
        break;
    }
    const auto a = value(p, n.operand[0]);
    if (!a) return a;
    if (n.kind == kind<ir::Not>) return !*a;
    if (n.kind == kind<ir::Broadcast>) return a;
    const auto b = value(p, n.operand[1]);
    if (n.kind == kind<ir::Select>) {
      const auto c = value(p, n.operand[2]);
      return b && c ? (*a ? b : c) : std::nullopt;
    }
    if (!b) return b;
    switch (n.kind) {
      case kind<ir::Ramp>:
        return *a + lane_ * *b;
      case kind<ir::Add>:
        return *a + *b;
      case kind<ir::Sub>:
        return *a - *b;
      case kind<ir::Mul>:
        return *a * *b;
      case kind<ir::FloorDiv>:
        return *b ? std::optional(floor_div(*a, *b)) : std::nullopt;
      case kind<ir::FloorMod>:
        return *b ? std::optional(floor_mod(*a, *b)) : std::nullopt;
      case kind<ir::Div>:
        return *b ? std::optional(*a / *b) : std::nullopt;
      case kind<ir::Mod>:
        return *b ? std::optional(*a % *b) : std::nullopt;
      case kind<ir::Min>:
        return std::min(*a, *b);
      case kind<ir::Max>:
        return std::max(*a, *b);
      case kind<ir::EQ>:
        return *a == *b;
      case kind<ir::NE>:
        return *a != *b;
      case kind<ir::LT>:
        return *a < *b;
      case kind<ir::LE>:
        return *a <= *b;
      case kind<ir::GT>:
        return *a > *b;
      case kind<ir::GE>:
        return *a >= *b;
      case kind<ir::And>:
        return *a && *b;
      case kind<ir::Or>:
        return *a || *b;
      default:
        support::unreachable("a rule of an unknown kind");
    }
  }

  const Rule& rule_;
  std::vector<bool> divisor_;
  int64_t values_[max_slots] = {};
  int64_t low_ = 0, high_ = 0;
  int64_t lane_ = 0;
};

bool prove_all_anew() {
  static const bool anew = std::getenv("LATHE_PROVE_ALL") != nullptr;
  return anew;
}

bool is_listed_undecided(const std::string& text) {
  static const std::set<std::string> listed{
#define LATHE_UNDECIDED(text) text,
#include "arith/rules/undecided.def"
#undef LATHE_UNDECIDED
  };
  return listed.count(text) != 0;
}

// How a rule is known to be right, as one word in its cache file; empty where it is wrong. Where there is no trial (of
// integers that wrap and of floats) Z3 gets all the time it needs: those are finite.
std::string establish(const Rule& rule, Meaning meaning, unsigned milliseconds) {
  const bool trial = meaning == Meaning::integers;
  const bool skip = trial && !prove_all_anew() && is_listed_undecided(rule.text());
  switch (skip ? Verdict::unknown : ask_z3(rule, meaning, trial ? milliseconds : 30 * milliseconds)) {
    case Verdict::proved:
      return "z3";
    case Verdict::refuted:
      return "";
    default:
      return trial && Trial(rule).holds() ? "exhaustive" : "";
  }
}

std::filesystem::path cache_file(const Rule& rule, Meaning meaning) {
  const std::string key = rule.text() + " | " + std::string(name_of(meaning)) + " | 1";
  return std::filesystem::path("arith-proofs") / support::hash_bytes(key).hex();
}

std::string known_proof(const Rule& rule, Meaning meaning) {
  std::string how;
  if (!prove_all_anew()) std::ifstream(cache_file(rule, meaning)) >> how;
  return how;
}

class RuleProofs : public testing::TestWithParam<std::string_view> {};

TEST_P(RuleProofs, hold) {
  std::filesystem::create_directories("arith-proofs");
  int by_z3 = 0, by_trial = 0;
  for (const Rule& rule : all_rules()) {
    if (rule.family != GetParam()) continue;
    for (const Meaning meaning : meanings_of(rule.domain)) {
      std::string how = known_proof(rule, meaning);
      if (how.empty()) {
        how = establish(rule, meaning, z3_milliseconds);
        if (!how.empty()) std::ofstream(cache_file(rule, meaning)) << how << "\n" << rule.text() << "\n";
      }
      EXPECT_FALSE(how.empty()) << rule.text() << " does not hold on " << name_of(meaning);
      (how == "z3" ? by_z3 : by_trial) += !how.empty();
      if (how == "exhaustive") std::printf("  by trial: %s\n", rule.text().c_str());
    }
  }
  std::printf("  %-20s %3d proofs by Z3, %2d by trial of all small values\n", std::string(GetParam()).c_str(), by_z3,
              by_trial);
  EXPECT_GT(by_z3 + by_trial, 0);
}

std::vector<std::string_view> families() {
  std::vector<std::string_view> names;
  for (const Rule& rule : all_rules())
    if (names.empty() || names.back() != rule.family) names.push_back(rule.family);
  return names;
}

INSTANTIATE_TEST_SUITE_P(families, RuleProofs, testing::ValuesIn(families()), [](const auto& family) {
  std::string name(family.param);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

struct WrongRule {
  Domain domain;
  const char *pattern, *replacement, *condition;
};

TEST(RuleProof, refuses_wrong_rules) {
  const WrongRule wrong[] = {
      {Domain::index, "(x * c1) // c2", "x * (c1 // c2)", "c2 > 0"},
      {Domain::index, "(x + c1) // c2", "x // c2 + c1 // c2", "c2 > 0"},
      {Domain::index, "tdiv(x, c1)", "x // c1", "c1 > 0"},
      {Domain::index, "min(x * c1, y * c1)", "min(x, y) * c1", ""},
      {Domain::index, "(x + y) - y", "(x // y) * y + x % y", ""},  // adds a division by zero
      {Domain::integer, "x + c1 < c2", "x < c2 - c1", ""},         // wraps
      {Domain::number, "x - x", "0", ""},                          // infinity, NaN
      {Domain::number, "x + 0", "x", ""},                          // -0
      {Domain::number, "not (x < y)", "y <= x", ""},
      {Domain::number, "min(max(x, y), x)", "x", ""},
      {Domain::logic, "p and (q or p)", "q", ""},
  };
  for (const WrongRule& row : wrong) {
    const Rule rule = parse_rule("wrong", row.domain, row.pattern, row.replacement, row.condition);
    bool found = false;
    for (const Meaning meaning : meanings_of(row.domain)) found = found || establish(rule, meaning, 2000).empty();
    EXPECT_TRUE(found) << rule.text();
    // The trial alone finds it too, where it applies.
    if (row.domain == Domain::index) EXPECT_FALSE(Trial(rule).holds()) << rule.text();
  }
}

TEST(RuleTable, reads_as_written) {
  EXPECT_GT(all_rules().size(), 200u);
  EXPECT_THROW(parse_rule("bad", Domain::index, "x +", "x", ""), support::InternalError);
  EXPECT_THROW(parse_rule("bad", Domain::index, "x + y", "z", ""), support::InternalError);
  EXPECT_EQ(orders_of(parse_rule("t", Domain::integer, "min(x, y) + max(x, y)", "x + y", "")).size(), 8u);
}

}  // namespace
}  // namespace lathe::arith::rules
