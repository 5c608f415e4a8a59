// Sums of products.
#include "ops/build.h"

namespace lathe::ops::build {

namespace {

// A letter, or a dimension under an ellipsis: 256 + its distance from the right.
using Label = int;

struct Equation {
  std::vector<std::vector<Label>> operands;
  std::vector<Label> result;
};

[[noreturn]] void refuse_equation(std::string_view equation, const std::string& why) {
  throw support::DiagnosticError(
      relax::wrong(codes::wrong_attribute, "the equation '" + std::string(equation.substr(0, 80)) + "' " + why));
}

// The labels of one term; an ellipsis stands for `hidden` dimensions.
std::vector<Label> read_term(std::string_view equation, std::string_view term, size_t hidden) {
  std::vector<Label> labels;
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
  Shape shape;
  std::set<Label> kept;
  for (const Label label : e.result) {
    if (!extents.count(label)) refuse_equation(equation, "has a letter in its result that no operand has");
    if (!kept.insert(label).second) refuse_equation(equation, "has a letter twice in its result");
    shape.push_back(extents[label]);
  }
  const DType dtype = dtype_of(operands[0]), wide = relax::accumulation_dtype(dtype);
  std::map<Label, te::IterVar> summed;
  std::vector<te::IterVar> axes;
  for (const auto& [label, extent] : extents)
    if (!kept.count(label)) {
      summed[label] = te::reduce_axis(ir::int64(0), extent, "k" + std::to_string(axes.size()));
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

}  // namespace lathe::ops::build
