// Sums of products.
#include "ops/attributes.h"
#include "ops/build.h"
#include "ops/operators.h"

namespace lathe::ops::build {

namespace {

// A letter, or a dimension under an ellipsis: 256 + its distance from the right.
using Label = int;

using Labels = std::vector<Label>;

struct Equation {
  std::vector<Labels> operands;
  Labels result;
};

[[noreturn]] void refuse_equation(std::string_view equation, const std::string& why) {
  throw support::DiagnosticError(
      relax::wrong(codes::wrong_attribute, "the equation '" + std::string(equation.substr(0, 80)) + "' " + why));
}

// The labels of one term; an ellipsis stands for `hidden` dimensions.
Labels read_term(std::string_view equation, std::string_view term, size_t hidden) {
  Labels labels;
  bool has_ellipsis = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      labels.push_back(term[i]);
    } else if (term.substr(i, 3) == "..." && !has_ellipsis) {
      for (size_t k = hidden; k-- > 0;) labels.push_back(256 + static_cast<int>(k));
      has_ellipsis = true;
      i += 2;
    } else {
      refuse_equation(equation, "is not one of letters and ellipses");
    }
  }
  return labels;
}

Equation read_equation(std::string_view equation, const std::vector<Value>& operands) {
  std::string text;
  for (const char c : equation)
    if (c != ' ') text += c;
  const size_t arrow = text.find("->");
  const std::string inputs = text.substr(0, arrow);
  std::vector<std::string> terms{""};
  for (const char c : inputs) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != operands.size())
    refuse_equation(equation, "has " + std::to_string(terms.size()) + " terms for " + std::to_string(operands.size()) +
                                  " operands");
  Equation result;
  size_t most_hidden = 0;
  for (size_t k = 0; k < terms.size(); ++k) {
    const size_t rank = shape_of(operands[k]).size(), dots = terms[k].find("...") == std::string::npos ? 0 : 3;
    const size_t letters = terms[k].size() - dots;
    const size_t hidden = dots && rank >= letters ? rank - letters : 0;
    result.operands.push_back(read_term(equation, terms[k], hidden));
    if (result.operands.back().size() != rank)
      refuse_equation(equation, "does not fit an operand of " + std::to_string(rank) + " dimensions");
    most_hidden = std::max(most_hidden, hidden);
  }
  if (arrow != std::string::npos) {
    result.result = read_term(equation, text.substr(arrow + 2), most_hidden);
    return result;
  }
  std::map<Label, int> counts;
  for (const auto& labels : result.operands)
    for (const Label label : labels) ++counts[label];
  for (size_t k = most_hidden; k-- > 0;) result.result.push_back(256 + static_cast<int>(k));
  for (const auto& [label, count] : counts)
    if (label < 256 && count == 1) result.result.push_back(label);
  return result;
}

bool has(const Labels& labels, Label label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

// ---- a matrix product ----

// What a label of two operands is to their product: kept by both, by one alone, or summed.
struct Roles {
  Labels batch, left, right, summed;
};

// The roles where each operand has each of its labels once, both the same extents, and neither sums by itself: nothing
// where the equation is no product of matrices.
std::optional<Roles> roles_of(const Equation& e, const std::vector<Value>& operands) {
  Roles roles;
  std::map<Label, Expr> first;
  for (size_t d = 0; d < e.operands[0].size(); ++d)
    if (!first.try_emplace(e.operands[0][d], shape_of(operands[0])[d]).second) return std::nullopt;
  Labels met;
  for (size_t d = 0; d < e.operands[1].size(); ++d) {
    const Label label = e.operands[1][d];
    if (has(met, label)) return std::nullopt;
    met.push_back(label);
    const auto other = first.find(label);
    if (other == first.end()) continue;
    if (!ir::structural_equal(other->second, shape_of(operands[1])[d])) return std::nullopt;
    if (!has(e.result, label)) roles.summed.push_back(label);
  }
  for (const Label label : e.result) {
    const bool of_left = first.count(label) > 0, of_right = has(met, label);
    (of_left && of_right ? roles.batch : of_left ? roles.left : roles.right).push_back(label);
  }
  const size_t once = first.size() + met.size() - roles.summed.size() - roles.batch.size();
  const size_t named = roles.batch.size() + roles.left.size() + roles.right.size() + roles.summed.size();
  if (once != named || roles.summed.empty()) return std::nullopt;
  return roles;
}

Labels joined(std::initializer_list<Labels> parts) {
  Labels all;
  for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Axes places(const Labels& labels, const Labels& among) {
  Axes axes;
  for (const Label label : labels) axes.push_back(std::find(among.begin(), among.end(), label) - among.begin());
  return axes;
}

// A result [outer…, rows…, columns…] of which one operand has the rows, and the other all else.
struct Outer {
  size_t of_rows;  // the operand's number
  Labels outer, rows, columns;
};
std::optional<Outer> outer_of(const Equation& e, const Roles& roles) {
  if (!roles.batch.empty() || e.result.empty()) return std::nullopt;
  const bool right_is_first = has(roles.right, e.result[0]);
  const Labels& others = right_is_first ? roles.left : roles.right;
  Outer found{right_is_first ? size_t{0} : size_t{1}, {}, {}, {}};
  for (const Label label : e.result) {
    if (has(others, label))
      found.rows.push_back(label);
    else
      (found.rows.empty() ? found.outer : found.columns).push_back(label);
    if (!found.columns.empty() && has(others, label)) return std::nullopt;  // rows on both sides of them
  }
  return found.rows.empty() || found.columns.empty() ? std::nullopt : std::optional(found);
}

// The rows times each of the other operand's matrices: nothing is turned behind it.
Value product_with_each(BlockBuilder& b, const std::vector<Value>& operands, const Equation& e, const Roles& roles,
                        const Outer& found) {
  const size_t matrices = 1 - found.of_rows;
  const auto extent = [&](size_t operand, const Labels& labels) {
    Shape all;
    for (const int64_t axis : places(labels, e.operands[operand]))
      all.push_back(shape_of(operands[operand])[static_cast<size_t>(axis)]);
    return all;
  };
  const auto one = [&](size_t operand, const Labels& labels) {
    return relax::simplified(ir::product(extent(operand, labels)));
  };
  const auto turned = [&](size_t operand, const Labels& labels) {
    return permuted(b, operands[operand], places(labels, e.operands[operand]));
  };
  const Expr terms = one(found.of_rows, roles.summed);
  const Value rows = turned(found.of_rows, joined({found.rows, roles.summed})),
              each = turned(matrices, joined({found.outer, roles.summed, found.columns}));
  const Value sums =
      b.call(ops::matmul, {reshape(b, rows, {one(found.of_rows, found.rows), terms}),
                           reshape(b, each, {one(matrices, found.outer), terms, one(matrices, found.columns)})})
          .value_or_throw();
  Shape shape = extent(matrices, found.outer);
  for (const auto& [operand, labels] : {std::pair{found.of_rows, found.rows}, std::pair{matrices, found.columns}})
    for (const Expr& each_extent : extent(operand, labels)) shape.push_back(each_extent);
  return reshape(b, sums, shape);
}

// [batch…, left…, summed] times [batch…, summed, right]: with a batch the labels of the left are one axis, too.
Value product(BlockBuilder& b, std::vector<Value> operands, Equation e, Roles roles) {
  if (const auto outer = outer_of(e, roles)) return product_with_each(b, operands, e, roles, *outer);
  const auto kept = std::find_if(e.result.begin(), e.result.end(), [&](Label l) { return !has(roles.batch, l); });
  if (kept != e.result.end() && has(roles.right, *kept)) {  // the result has it so without a transposition
    std::swap(operands[0], operands[1]);
    std::swap(e.operands[0], e.operands[1]);
    std::swap(roles.left, roles.right);
  }
  // In the order of what only the run knows: a constant is turned when the model is compiled.
  const Labels& order = e.operands[operands[0].is<relax::Constant>() ? 1 : 0];
  Labels summed;
  std::copy_if(order.begin(), order.end(), std::back_inserter(summed), [&](Label l) { return has(roles.summed, l); });
  std::map<Label, Expr> extents;
  for (size_t k = 0; k < 2; ++k)
    for (size_t d = 0; d < e.operands[k].size(); ++d) extents[e.operands[k][d]] = shape_of(operands[k])[d];
  const auto shape = [&](const Labels& labels) {
    Shape all;
    for (const Label label : labels) all.push_back(extents.at(label));
    return all;
  };
  const auto with = [](Shape a, const Shape& more) {
    a.insert(a.end(), more.begin(), more.end());
    return a;
  };
  const auto one = [&](const Labels& labels) { return Shape{relax::simplified(ir::product(shape(labels)))}; };
  const bool keeps_left = roles.batch.empty() && !roles.left.empty();
  const Shape batch = shape(roles.batch), rows = keeps_left ? shape(roles.left) : one(roles.left);
  const Value left = permuted(b, operands[0], places(joined({roles.batch, roles.left, summed}), e.operands[0]));
  const Value right = permuted(b, operands[1], places(joined({roles.batch, summed, roles.right}), e.operands[1]));
  const Value sums = b.call(ops::matmul, {reshape(b, left, with(with(batch, rows), one(summed))),
                                          reshape(b, right, with(with(batch, one(summed)), one(roles.right)))})
                         .value_or_throw();
  const Labels made = joined({roles.batch, roles.left, roles.right});
  return permuted(b, reshape(b, sums, shape(made)), places(e.result, made));
}

// ---- any sum ----

Value sum_of_products(BlockBuilder& b, const std::vector<Value>& operands, const Equation& e,
                      const std::map<Label, Expr>& extents) {
  const DType dtype = dtype_of(operands[0]), wide = relax::accumulation_dtype(dtype);
  Shape shape;
  for (const Label label : e.result) shape.push_back(extents.at(label));
  std::map<Label, te::IterVar> summed;
  std::vector<te::IterVar> axes;
  std::set<Label> own;
  for (const Labels& labels : e.operands) own.insert(labels.begin(), labels.end());
  for (const Label label : own)
    if (!has(e.result, label)) {
      summed[label] = te::reduce_axis(ir::int64(0), extents.at(label), "k" + std::to_string(axes.size()));
      axes.push_back(summed[label]);
    }
  const auto build = [&](const std::vector<Tensor>& in) {
    const Tensor sums = te::compute(
        shape,
        [&](const Indices& i) {
          std::map<Label, Expr> at;
          for (size_t d = 0; d < e.result.size(); ++d) at[e.result[d]] = i[d];
          for (const auto& [label, axis] : summed) at[label] = axis->var;
          Expr product;
          for (size_t k = 0; k < in.size(); ++k) {
            Indices cell;
            for (size_t d = 0; d < e.operands[k].size(); ++d) {
              const Label label = e.operands[k][d];
              cell.push_back(te::topi::broadcast_index(in[k].shape()[d], extents.at(label), at.at(label)));
            }
            const Expr factor = ir::cast(wide, in[k](std::move(cell)));
            product = product ? product * factor : factor;
          }
          return axes.empty() ? product : te::sum(product, axes);
        },
        in, "einsum");
    return std::vector{te::topi::cast(sums, dtype, "einsum_result")};
  };
  return b.call_te("einsum", operands, build).value_or_throw();
}

// ---- several operands, two by two ----

Value of_one_or_two(BlockBuilder& b, const std::vector<Value>& operands, const Equation& e,
                    const std::map<Label, Expr>& extents) {
  if (operands.size() == 2)
    if (const auto roles = roles_of(e, operands)) return product(b, operands, e, *roles);
  return sum_of_products(b, operands, e, extents);
}

// How many elements are multiplied with each other; an extent that only the run knows counts as 64.
double work_of(const Labels& labels, const std::map<Label, Expr>& extents) {
  double work = 1;
  for (const Label label : std::set<Label>(labels.begin(), labels.end()))
    work *= static_cast<double>(ir::as_int(extents.at(label)).value_or(64));
  return work;
}

// Two that share a label go before two that do not, and of these those that take least, keeping what the others or the
// result have.
Value by_pairs(BlockBuilder& b, std::vector<Value> operands, Equation e, const std::map<Label, Expr>& extents) {
  while (operands.size() > 2) {
    std::tuple<bool, double, size_t, size_t> least{true, std::numeric_limits<double>::infinity(), 0, 1};
    for (size_t i = 0; i < operands.size(); ++i)
      for (size_t j = i + 1; j < operands.size(); ++j) {
        const bool apart = std::none_of(e.operands[i].begin(), e.operands[i].end(),
                                        [&](Label label) { return has(e.operands[j], label); });
        least = std::min(least, {apart, work_of(joined({e.operands[i], e.operands[j]}), extents), i, j});
      }
    const auto [apart, work, i, j] = least;
    Equation both{{e.operands[i], e.operands[j]}, {}};
    Labels wanted = e.result;
    for (size_t k = 0; k < operands.size(); ++k)
      if (k != i && k != j) wanted = joined({wanted, e.operands[k]});
    for (const Label label : joined({e.operands[i], e.operands[j]}))
      if (has(wanted, label) && !has(both.result, label)) both.result.push_back(label);
    operands[i] = of_one_or_two(b, {operands[i], operands[j]}, both, extents);
    e.operands[i] = both.result;
    operands.erase(operands.begin() + static_cast<ptrdiff_t>(j));
    e.operands.erase(e.operands.begin() + static_cast<ptrdiff_t>(j));
  }
  return of_one_or_two(b, operands, e, extents);
}

}  // namespace

Value einsum(BlockBuilder& b, const std::vector<Value>& operands, std::string_view equation) {
  const Equation e = read_equation(equation, operands);
  std::map<Label, Expr> extents;
  for (size_t k = 0; k < operands.size(); ++k)
    for (size_t d = 0; d < e.operands[k].size(); ++d) {
      const Label label = e.operands[k][d];
      const Expr& own = shape_of(operands[k])[d];
      const auto [it, fresh] = extents.try_emplace(label, own);
      if (fresh || ir::is_int(own, 1)) continue;
      if (ir::is_int(it->second, 1))
        it->second = own;
      else
        expect_equal(b, own, it->second);
    }
  std::set<Label> kept;
  for (const Label label : e.result) {
    if (!extents.count(label)) refuse_equation(equation, "has a letter in its result that no operand has");
    if (!kept.insert(label).second) refuse_equation(equation, "has a letter twice in its result");
  }
  const DType dtype = dtype_of(operands[0]);
  // A narrow type is rounded once, an integer as its sum wraps.
  const bool is_wide = dtype.is_floating() && relax::accumulation_dtype(dtype) == dtype;
  return is_wide ? by_pairs(b, operands, e, extents) : sum_of_products(b, operands, e, extents);
}

}  // namespace lathe::ops::build
