#include "schedule/index_map.h"

#include <charconv>

#include "arith/affine.h"
#include "arith/polyhedral/points.h"
#include "ir/visit.h"
#include "schedule/analysis/linear.h"
#include "schedule/analysis/tree.h"
#include "schedule/codes.h"

namespace lathe::schedule {

std::vector<Expr> IndexMap::operator()(const std::vector<Expr>& indices) const {
  VarMap values;
  for (size_t i = 0; i < from.size(); ++i) values[from[i]] = indices.at(i);
  std::vector<Expr> result;
  for (const Expr& e : to) result.push_back(substitute(e, values));
  return result;
}

namespace {

// How tightly an operator binds; an operand that binds less stands in parentheses.
constexpr int as_sum = 1, as_product = 2;

std::string written(const Expr& e, const std::unordered_map<Var, std::string>& names, int around) {
  const auto both = [&](const auto* n, std::string_view symbol, int binds) {
    const std::string text =
        fmt::format("{} {} {}", written(n->a, names, binds), symbol, written(n->b, names, binds + 1));
    return binds < around ? "(" + text + ")" : text;
  };
  if (const auto* v = e.as<VarNode>()) {
    const auto it = names.find(Var(v));
    return it == names.end() ? v->name : it->second;
  }
  if (const auto value = as_int(e)) return std::to_string(*value);
  if (const auto* n = e.as<Add>()) return both(n, "+", as_sum);
  if (const auto* n = e.as<Sub>()) return both(n, "-", as_sum);
  if (const auto* n = e.as<Mul>()) return both(n, "*", as_product);
  if (const auto* n = e.as<FloorDiv>()) return both(n, "//", as_product);
  if (const auto* n = e.as<FloorMod>()) return both(n, "%", as_product);
  return "?";
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<IndexMap> map() {
    if (word() != "lambda") return problem("expected 'lambda'");
    while (!take(":")) {
      const std::string name = word();
      if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return problem("expected a name");
      if (!names_.emplace(name, var(name)).second) return problem(fmt::format("'{}' is named twice", name));
      map_.from.push_back(names_.at(name));
      if (!take(",") && !peek(":")) return problem("expected ',' or ':'");
    }
    if (!take("(")) return problem("expected '('");
    while (!take(")")) {
      map_.to.push_back(TRY(sum_of(0)));
      if (!take(",") && !peek(")")) return problem("expected ',' or ')'");
    }
    skip();
    if (at_ != text_.size()) return problem("expected the end");
    return std::move(map_);
  }

 private:
  Diagnostic problem(std::string_view what) const {
    return refuse(codes::bad_argument, fmt::format("index map '{}', column {}: {}", text_, at_ + 1, what));
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool peek(std::string_view symbol) {
    skip();
    return text_.substr(at_, symbol.size()) == symbol;
  }
  bool take(std::string_view symbol) {
    if (!peek(symbol)) return false;
    at_ += symbol.size();
    return true;
  }
  std::string word() {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  Result<Expr> sum_of(int depth) {
    if (depth > 32) return problem("parentheses are nested too deep");
    Expr left = TRY(product_of(depth));
    while (true) {
      if (take("+"))
        left = left + TRY(product_of(depth));
      else if (take("-"))
        left = left - TRY(product_of(depth));
      else
        return left;
    }
  }
  Result<Expr> product_of(int depth) {
    Expr left = TRY(operand(depth));
    while (true) {
      const bool quotient = take("//"), remainder = !quotient && take("%");
      if (!quotient && !remainder && !take("*")) return left;
      const Expr right = TRY(operand(depth));
      if (!quotient && !remainder) {
        left = left * right;
        continue;
      }
      if (as_int(right).value_or(0) <= 0) return problem("a divisor is not a positive number");
      left = quotient ? floordiv(left, right) : floormod(left, right);
    }
  }
  Result<Expr> operand(int depth) {
    if (take("(")) {
      Expr inner = TRY(sum_of(depth + 1));
      if (!take(")")) return problem("expected ')'");
      return inner;
    }
    const bool negative = take("-");
    skip();
    if (negative && (at_ == text_.size() || !std::isdigit(static_cast<unsigned char>(text_[at_])))) {
      if (depth > 32) return problem("signs are nested too deep");
      return int64(0) - TRY(operand(depth + 1));
    }
    const std::string name = word();
    if (const auto it = names_.find(name); it != names_.end()) return Expr(it->second);
    if (name.empty()) return problem("expected an operand");
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); }))
      return problem(fmt::format("'{}' is neither a variable nor a number", name));
    const std::string literal = (negative ? "-" : "") + name;  // the smallest number has no positive one
    int64_t value = 0;
    if (std::from_chars(literal.data(), literal.data() + literal.size(), value).ec != std::errc())
      return problem(fmt::format("'{}' is not a number of 64 bits", literal));
    return int64(value);
  }

  std::string_view text_;
  size_t at_ = 0;
  std::map<std::string, Var> names_;
  IndexMap map_;
};

}  // namespace

std::string IndexMap::text() const {
  std::unordered_map<Var, std::string> names;
  std::string text = "lambda ";
  for (size_t i = 0; i < from.size(); ++i) {
    names[from[i]] = fmt::format("i{}", i);
    text += (i ? ", " : "") + names[from[i]];
  }
  text += ": (";
  for (size_t i = 0; i < to.size(); ++i) text += (i ? ", " : "") + written(to[i], names, as_sum);
  return text + (to.size() == 1 ? ",)" : ")");
}

Result<IndexMap> parse_index_map(std::string_view text) { return Reader(text).map(); }

IndexMap permutation(const std::vector<int64_t>& axes) {
  IndexMap map;
  for (size_t i = 0; i < axes.size(); ++i) map.from.push_back(var(fmt::format("i{}", i)));
  for (const int64_t axis : axes) map.to.push_back(map.from.at(static_cast<size_t>(axis)));
  return map;
}

namespace {

// Two indices of the box that the map takes to the same, as "i0 = 0, i1 = 3 and i0 = 1, i1 = 0" (its text has these
// names), where there are some; the outcome says whether that could be told.
struct Meeting {
  arith::PointSearch::Outcome outcome;
  std::string indices;
};

Meeting indices_that_meet(const IndexMap& map, const std::vector<Expr>& extents) {
  VarMap first, second;
  Expr condition = boolean(true), different = boolean(false);
  for (size_t i = 0; i < extents.size(); ++i) {
    const Var a = var(map.from[i]->name), b = var(map.from[i]->name);
    first[map.from[i]] = a;
    second[map.from[i]] = b;
    different = logical_or(different, logical_not(eq(a, b)));
    for (const Var& v : {a, b}) condition = logical_and(condition, logical_and(v >= int64(0), v < extents[i]));
  }
  condition = logical_and(condition, different);
  for (const Expr& e : map.to) condition = logical_and(condition, eq(substitute(e, first), substitute(e, second)));
  const arith::PointSearch search = arith::find_point(condition);
  Meeting meeting{search.outcome, {}};
  if (search.outcome != arith::PointSearch::found) return meeting;
  for (const VarMap* at : {&first, &second})
    for (size_t i = 0; i < map.from.size(); ++i)
      meeting.indices += fmt::format("{}i{} = {}",
                                     i               ? ", "
                                     : at == &second ? " and "
                                                     : "",
                                     i, search.values.at(cast<VarNode>(at->at(map.from[i]))));
  return meeting;
}

}  // namespace

Result<Image> image_of(const IndexMap& map, const std::vector<Expr>& extents, const std::vector<Expr>& outputs,
                       OneToOne shown) {
  const auto problem = [&](std::string why) {
    return refuse(codes::bad_argument, fmt::format("index map '{}' {}", map.text(), why));
  };
  if (map.from.size() != extents.size())
    return problem(fmt::format("takes {} indices where there are {}", map.from.size(), extents.size()));
  arith::Analyzer analyzer;
  arith::Domain domain;
  Domains domains;
  for (size_t i = 0; i < extents.size(); ++i) {
    domain.emplace_back(map.from[i], Range{int64(0), extents[i]});
    domains[map.from[i]] = {int64(0), Linear(linear(extents[i] - 1)).expr()};
    analyzer.bind(map.from[i], domain.back().second);
  }
  const auto affine = arith::detect_affine(map.to, domain, Expr(), analyzer);
  const bool inverts = affine.ok() && affine->injective;
  if (!inverts && shown != OneToOne::by_inverse) {
    const Meeting meeting = indices_that_meet(map, extents);
    if (meeting.outcome == arith::PointSearch::found)
      return problem("takes different indices to the same: " + meeting.indices);
    if (meeting.outcome != arith::PointSearch::none && shown == OneToOne::by_pairs)
      return problem("could not be shown to take different indices to different ones");
  } else if (!affine.ok()) {
    return problem("is not affine: " + affine.diagnostics()[0].message);
  } else if (!affine->injective) {
    return problem("takes different indices to the same");
  }
  Image image;
  for (const Expr& e : map.to) {
    auto range = interval(e, domains);
    if (!range && shown != OneToOne::by_inverse) {  // a box that may be larger than the smallest
      const arith::ConstIntBound bound = analyzer.const_int_bound(e);
      if (bound.max_value < arith::ConstIntBound::positive_infinity)
        range = Interval{int64(bound.min_value), int64(bound.max_value)};
    }
    if (!range) return problem("has a result whose bounds could not be told");
    if (!same(range->low, int64(0))) return problem("has a result that does not start at 0");
    // Of an empty box nothing is left, also where the map leaves gaps.
    const Expr extent = analyzer.simplify(range->high + 1);
    image.extents.push_back(analyzer.can_prove(extent >= 0) ? extent : analyzer.simplify(max(extent, int64(0))));
  }
  if (!inverts) return image;
  image.whole = affine->surjective;
  for (size_t i = 0; i < map.to.size(); ++i)
    image.whole = image.whole && analyzer.can_prove_equal(image.extents[i], affine->extents[i]);
  std::unordered_map<Var, Expr> back;
  for (auto& [v, e] : TRY(arith::inverse(*affine, outputs, analyzer))) back[v] = e;
  for (const Var& v : map.from) image.preimages.push_back(back.count(v) ? back.at(v) : int64(0));  // of extent 1
  return image;
}

}  // namespace lathe::schedule
