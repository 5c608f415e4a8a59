// Sums of products: einsum, and the convolution that undoes one.
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

Value conv_transpose(BlockBuilder& b, const Value& x, const Value& kernel, const TransposedConvolution& how) {
  const Shape &own = shape_of(x), &weights = shape_of(kernel);
  const size_t spatial = how.out.size();
  expect_equal(b, weights[0], own[1]);
  const Expr per_group = relax::simplified(ir::floordiv(own[1], ir::int64(how.groups)));
  const Expr outputs = weights[1];
  Shape shape{own[0], relax::simplified(outputs * how.groups)};
  shape.insert(shape.end(), how.out.begin(), how.out.end());
  const DType dtype = dtype_of(x), wide = relax::accumulation_dtype(dtype);
  std::vector<te::IterVar> axes{te::reduce_axis(ir::int64(0), per_group, "rc")};
  for (size_t d = 0; d < spatial; ++d)
    axes.push_back(te::reduce_axis(ir::int64(0), weights[d + 2], "k" + std::to_string(d)));
  const auto build = [&](const std::vector<Tensor>& in) {
    const Tensor sums = te::compute(
        shape,
        [&](const Indices& i) {
          const Expr group = how.groups == 1 ? ir::int64(0) : ir::floordiv(i[1], outputs);
          const Expr channel = group * per_group + axes[0]->var;
          Indices from{i[0], channel}, cell{channel, i[1] - group * outputs};
          Expr meets = ir::boolean(true);
          for (size_t d = 0; d < spatial; ++d) {
            const Expr at = i[d + 2] + how.pad_begin[d] - axes[d + 1]->var * how.dilations[d];
            const Expr stride = ir::int64(how.strides[d]), position = ir::floordiv(at, stride);
            meets = ir::logical_and(meets, ir::eq(ir::floormod(at, stride), ir::int64(0)));
            meets = ir::logical_and(meets, ir::logical_and(at >= 0, position < own[d + 2]));
            from.push_back(position);
            cell.push_back(axes[d + 1]->var);
          }
          const Expr product = ir::cast(wide, in[0](std::move(from))) * ir::cast(wide, in[1](std::move(cell)));
          return te::sum(ir::if_then_else(meets, product, ir::constant(wide, 0)), axes);
        },
        in, "conv_transpose");
    return std::vector{te::topi::cast(sums, dtype, "conv_transpose_result")};
  };
  return b.call_te("conv_transpose", {x, kernel}, build).value_or_throw();
}

}  // namespace lathe::ops::build
