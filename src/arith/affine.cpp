#include "arith/affine.h"

#include "arith/codes.h"
#include "arith/knowledge.h"
#include "ir/visit.h"
#include "support/mutation.h"

namespace lathe::arith {

LATHE_FAULT(arith_affine_overlap, "arith_test", "overlapping terms of an index count as a fusion");

namespace {

using namespace ir;
using support::Diagnostic;
using support::Result;

class Detector {
 public:
  Detector(const Domain& domain, Analyzer& analyzer) : analyzer_(analyzer), known_(analyzer.knowledge()) {
    for (const auto& [var, range] : domain) {
      // Everything counts from 0: a variable with another minimum is written as one that does, and the minimum.
      const Expr min = analyzer.simplify(range.min), extent = analyzer.simplify(range.extent);
      const Var counter = is_int(min, 0) ? var : ir::var(var->name, var->dtype);
      if (counter != var) from_zero_.emplace(var, counter + min);
      analyzer.bind(counter, Range{int64(0), extent});
      by_var_.emplace(counter.get(), sources_.size());
      sources_.push_back({.var = var, .min = min, .extent = extent});
    }
    loops_ = sources_.size();
  }

  // Cuts the fusions that upper bounds in the predicate name. False when a part of it says something else.
  bool constrain(const Expr& predicate) {
    if (!predicate || is_int(predicate, 1)) return true;
    if (const auto* both = predicate.as<And>()) {
      const bool left = constrain(both->a);
      return constrain(both->b) && left;
    }
    if (const auto* likely = predicate.as<Call>(); likely && likely->op == &intrinsic::likely)
      return constrain(likely->args[0]);
    const Expr simple = analyzer_.simplify(substitute(predicate, from_zero_));
    if (is_int(simple, 1)) return true;
    Expr index, bound;
    if (const auto* lt = simple.as<LT>()) index = lt->a, bound = lt->b;
    if (const auto* le = simple.as<LE>()) index = le->a, bound = le->b + 1;
    if (!index || mentions_loops(bound)) return false;
    auto sum = parse(index);
    if (!sum.ok() || !is_int(sum->base, 0)) return false;
    if (sum->digits.size() < 2) return false;  // a loop variable alone: its domain is what it is
    auto source = fuse(*sum, index);
    if (!source.ok()) return false;
    AffineSource& fusion = sources_[*source];
    if (!prove_le(bound, fusion.extent)) return false;
    fusion.extent = analyzer_.simplify(bound);
    cut_.push_back(*source);
    return true;
  }

  Result<AffineSum> index(const Expr& e, bool simplify) {
    const Expr counted = substitute(e, from_zero_);
    return parse(simplify ? analyzer_.simplify(counted) : counted);
  }

  std::vector<AffineSource> take_sources() { return std::move(sources_); }
  std::vector<AffineSource>& sources() { return sources_; }
  size_t loops() const { return loops_; }
  const std::vector<size_t>& cut() const { return cut_; }

  // Orders digits so that each counts in steps of the whole of the ones after it. Refuses where two overlap. `compact`
  // says whether there are no gaps.
  Result<bool> order(AffineSum& sum, const Expr& shown) {
    std::vector<AffineDigit> left = std::move(sum.digits), ordered;
    bool compact = true;
    Expr step;
    while (!left.empty()) {
      size_t next = left.size();
      for (size_t i = 0; i < left.size() && next == left.size(); ++i)
        if (step ? analyzer_.can_prove_equal(left[i].scale, step) : is_smallest(left, i)) next = i;
      if (next == left.size() && step) {
        // A gap: the smallest of the others, if it is no smaller than the step.
        for (size_t i = 0; i < left.size() && next == left.size(); ++i)
          if (is_smallest(left, i) && (prove_le(step, left[i].scale) || support::flip(arith_affine_overlap))) next = i;
        compact = false;
      }
      if (next == left.size()) return refuse(shown, "the terms in it overlap, so that different iterations meet");
      step = analyzer_.simplify(left[next].scale * left[next].extent);
      ordered.push_back(left[next]);
      left.erase(left.begin() + static_cast<ptrdiff_t>(next));
    }
    std::reverse(ordered.begin(), ordered.end());
    sum.digits = std::move(ordered);
    return compact;
  }

  Diagnostic refuse(const Expr& e, const std::string& why) {
    std::string names;
    for (const Var& v : free_vars(e))
      if (by_var_.count(v.get())) names += (names.empty() ? "" : ", ") + v->name;
    return {.code = code::not_affine, .message = "the index of " + names + " is not affine: " + why};
  }

  bool prove_le(const Expr& a, const Expr& b) { return analyzer_.can_prove(le(a, b)); }

 private:
  bool mentions_loops(const Expr& e) {
    const auto vars = free_vars(e);
    return std::any_of(vars.begin(), vars.end(), [&](const Var& v) { return by_var_.count(v.get()) != 0; });
  }

  bool is_smallest(const std::vector<AffineDigit>& digits, size_t i) {
    for (size_t j = 0; j < digits.size(); ++j)
      if (j != i && !prove_le(digits[i].scale, digits[j].scale)) return false;
    return true;
  }

  bool same_digit(const AffineDigit& a, const AffineDigit& b) {
    return a.source == b.source && analyzer_.can_prove_equal(a.lower, b.lower) &&
           analyzer_.can_prove_equal(a.extent, b.extent);
  }

  // Writes the digits of a known fusion, each with the same scale more, as one digit of the fusion.
  void recognize(AffineSum& sum, size_t fusion) {
    const std::vector<AffineDigit>& inner = sources_[fusion].fused.digits;
    if (inner.empty() || sum.digits.size() < inner.size()) return;
    std::vector<size_t> found;
    Expr scale;
    for (size_t k = inner.size(); k-- > 0;) {  // smallest first: its scale in the fusion is 1
      size_t at = sum.digits.size();
      for (size_t i = 0; i < sum.digits.size(); ++i)
        if (same_digit(sum.digits[i], inner[k]) &&
            (!scale || analyzer_.can_prove_equal(sum.digits[i].scale, inner[k].scale * scale)))
          at = i;
      if (at == sum.digits.size()) return;
      if (!scale) scale = sum.digits[at].scale;
      found.push_back(at);
    }
    std::sort(found.rbegin(), found.rend());
    for (const size_t at : found) sum.digits.erase(sum.digits.begin() + static_cast<ptrdiff_t>(at));
    sum.digits.push_back({fusion, int64(1), sources_[fusion].extent, scale});
  }

  Result<AffineSum> parse(const Expr& e) {
    if (e->dtype != DType::int64()) return refuse(e, "it is " + e->dtype.str() + ", not int64");
    const Sum sum = to_sum(known_, e);
    if (sum.overflow) return refuse(e, "its constants are too large");
    AffineSum result;
    Sum base{.dtype = sum.dtype, .constant = sum.constant};
    for (const Term& t : sum.terms) {
      std::vector<Expr> factors, scales;
      factors_of(t.factor, factors);
      Expr moving;
      for (const Expr& f : factors) {
        if (!mentions_loops(f))
          scales.push_back(f);
        else if (moving)
          return refuse(e, "loop variables are multiplied by each other");
        else
          moving = f;
      }
      if (!moving) {
        base.add(t.factor, t.coefficient);
        continue;
      }
      AffineDigit digit = TRY(parse_digit(moving));
      if (t.coefficient < 0) return refuse(e, "a term in it counts down");
      Expr scale = int64(t.coefficient);
      for (const Expr& f : scales) {
        if (!analyzer_.can_prove_greater_equal(f, 0)) return refuse(e, "a factor in it may be negative");
        scale = scale * f;
      }
      digit.scale = analyzer_.simplify(scale);
      result.digits.push_back(std::move(digit));
    }
    if (base.overflow) return refuse(e, "its constants are too large");
    result.base = to_expr(known_, base);
    for (const size_t fusion : cut_) recognize(result, fusion);
    return result;
  }

  // A factor: a loop variable, or digits of one, or of a fusion.
  Result<AffineDigit> parse_digit(const Expr& e) {
    if (const auto* v = e.as<VarNode>()) {
      const size_t source = by_var_.at(v);
      return AffineDigit{source, int64(1), sources_[source].extent, int64(1)};
    }
    if (const auto* div = e.as<FloorDiv>()) {
      AffineDigit digit = TRY(parse_operand(div->a, div->b));
      digit.lower = analyzer_.simplify(digit.lower * div->b);
      digit.extent = analyzer_.simplify(ceildiv(digit.extent, div->b));
      return digit;
    }
    if (const auto* mod = e.as<FloorMod>()) {
      AffineDigit digit = TRY(parse_operand(mod->a, mod->b));
      digit.extent = prove_le(digit.extent, mod->b) ? digit.extent : mod->b;
      return digit;
    }
    return refuse(e, "only sums, products with constants, quotients and remainders of loop variables are");
  }

  // The dividend of a quotient or remainder as one digit: a loop variable's, or a fusion's.
  Result<AffineDigit> parse_operand(const Expr& e, const Expr& divisor) {
    if (mentions_loops(divisor)) return refuse(e, "a divisor in it depends on a loop variable");
    if (!analyzer_.can_prove_greater_equal(divisor, 1)) return refuse(e, "a divisor in it may not be positive");
    AffineSum sum = TRY(parse(e));
    if (!is_int(sum.base, 0)) return refuse(e, "an offset is divided in it");
    if (sum.digits.size() == 1 && is_int(sum.digits[0].scale, 1)) return sum.digits[0];
    const size_t source = TRY(fuse(sum, e));
    return AffineDigit{source, int64(1), sources_[source].extent, int64(1)};
  }

  // The source that counts as `sum` does.
  Result<size_t> fuse(AffineSum sum, const Expr& shown) {
    const bool compact = TRY(order(sum, shown));
    if (!compact || !is_int(sum.digits.back().scale, 1)) return refuse(shown, "a sum with gaps is divided in it");
    for (size_t i = loops_; i < sources_.size(); ++i) {
      const auto& digits = sources_[i].fused.digits;
      bool equal = digits.size() == sum.digits.size();
      for (size_t k = 0; k < digits.size() && equal; ++k)
        equal = same_digit(digits[k], sum.digits[k]) && analyzer_.can_prove_equal(digits[k].scale, sum.digits[k].scale);
      if (equal) return i;
    }
    const Expr extent = analyzer_.simplify(sum.digits[0].scale * sum.digits[0].extent);
    sources_.push_back({.fused = std::move(sum), .extent = extent});
    return sources_.size() - 1;
  }

  Analyzer& analyzer_;
  Knowledge& known_;
  std::vector<AffineSource> sources_;
  size_t loops_ = 0;
  std::unordered_map<const VarNode*, size_t> by_var_;
  VarMap from_zero_;
  std::vector<size_t> cut_;
};

// How the digits in use tile their source: whether each part of it is used exactly once.
struct Tiling {
  bool whole = true;     // every part is used
  bool disjoint = true;  // no part is used twice
  bool even = true;      // every digit takes every value whatever the others are
};

Tiling tile(const AffineSource& source, std::vector<AffineDigit> used, Analyzer& analyzer) {
  Tiling tiling;
  Expr next = int64(1);
  while (!used.empty()) {
    size_t at = used.size();
    for (size_t i = 0; i < used.size() && at == used.size(); ++i)
      if (analyzer.can_prove_equal(used[i].lower, next)) at = i;
    if (at == used.size()) {
      // Digits further up, with some between left out; or an overlap.
      tiling.whole = false;
      for (size_t i = 0; i < used.size() && at == used.size(); ++i) {
        bool lowest = true;
        for (size_t j = 0; j < used.size(); ++j)
          lowest = lowest && (i == j || analyzer.can_prove(le(used[i].lower, used[j].lower)));
        if (lowest && analyzer.can_prove(eq(floormod(used[i].lower, next), int64(0)))) at = i;
      }
      if (at == used.size()) {
        tiling.disjoint = tiling.even = false;
        return tiling;
      }
    }
    next = analyzer.simplify(used[at].lower * used[at].extent);
    used.erase(used.begin() + static_cast<ptrdiff_t>(at));
  }
  if (!analyzer.can_prove(le(source.extent, next))) tiling.whole = false;
  tiling.even = analyzer.can_prove(eq(floormod(source.extent, next), int64(0)));
  return tiling;
}

Result<AffineMap> detect(const std::vector<Expr>& indices, const Domain& domain, const Expr& predicate, bool simplify,
                         Analyzer& analyzer) {
  const Analyzer::Scope scope(analyzer);
  Detector detector(domain, analyzer);
  AffineMap map;
  const bool understood = detector.constrain(predicate);
  map.surjective = understood;
  std::vector<std::vector<AffineDigit>> used;
  for (const Expr& e : indices) {
    AffineSum sum = TRY(detector.index(e, simplify));
    const bool compact = TRY(detector.order(sum, e));
    map.surjective = map.surjective && compact;
    map.extents.push_back(sum.digits.empty() ? int64(1)
                                             : analyzer.simplify(floordiv(sum.digits[0].scale * sum.digits[0].extent,
                                                                          sum.digits.back().scale)));
    map.indices.push_back(std::move(sum));
  }
  // A fusion in use uses the digits it is made of; sources are in order, so later fusions come first here.
  std::vector<AffineSource>& sources = detector.sources();
  used.resize(sources.size());
  for (const AffineSum& sum : map.indices)
    for (const AffineDigit& d : sum.digits) used[d.source].push_back(d);
  map.injective = true;
  for (size_t s = sources.size(); s-- > 0;) {
    const bool fusion = !sources[s].var;
    if (used[s].empty()) {
      const bool needed = !fusion && !analyzer.can_prove_equal(sources[s].extent, int64(1));
      if (needed) map.injective = false;
      continue;
    }
    const Tiling tiling = tile(sources[s], used[s], analyzer);
    if (!tiling.disjoint) {
      const std::string name = fusion ? "a fusion of loop variables" : "'" + sources[s].var->name + "'";
      return Diagnostic{.code = code::not_affine,
                        .message = "the indices are not independent: they use a part of " + name + " twice"};
    }
    map.injective = map.injective && tiling.whole;
    map.surjective = map.surjective && tiling.even;
    if (fusion)
      for (const AffineDigit& d : sources[s].fused.digits) used[d.source].push_back(d);
  }
  // A fusion that a predicate cuts counts only where the indices go by it.
  for (const size_t s : detector.cut())
    if (used[s].empty()) map.surjective = false;
  map.sources = detector.take_sources();
  return map;
}

}  // namespace

Result<AffineMap> detect_affine(const std::vector<Expr>& indices, const Domain& domain, const Expr& predicate,
                                Analyzer& analyzer) {
  // As written, fusions show as what they are; simplified, terms have met that hide a map. The better answer counts.
  auto written = detect(indices, domain, predicate, false, analyzer);
  if (written.ok() && written->bijective()) return written;
  auto simple = detect(indices, domain, predicate, true, analyzer);
  if (!simple.ok()) return written.ok() ? std::move(written) : std::move(simple);
  if (!written.ok()) return simple;
  const bool better = simple->injective + simple->surjective > written->injective + written->surjective;
  return better ? std::move(simple) : std::move(written);
}

}  // namespace lathe::arith
