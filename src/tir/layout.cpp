#include "tir/layout.h"

#include <cctype>
#include <limits>

#include "arith/analyzer.h"
#include "tir/codes.h"

namespace lathe::tir {

namespace {

using ir::Expr;
using support::Diagnostic;
using support::Result;

constexpr int64_t most_factor = std::numeric_limits<int32_t>::max();

bool is_primal(char axis) { return axis >= 'A' && axis <= 'Z'; }
bool is_subordinate(char axis) { return axis >= 'a' && axis <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
char primal_of(char axis) { return static_cast<char>(std::toupper(static_cast<unsigned char>(axis))); }
char subordinate_of(char axis) { return static_cast<char>(std::tolower(static_cast<unsigned char>(axis))); }

Diagnostic wrong_layout(std::string message) {
  return Diagnostic{.code = codes::layout, .place = {}, .message = std::move(message), .notes = {}, .help = {}};
}

support::Status expect_one_an_axis(const Layout& layout, const std::vector<Expr>& given, std::string_view what) {
  if (given.size() != layout.axes.size())
    return wrong_layout(fmt::format("layout '{}' has {} axes, and {} {} are given", layout.name(), layout.axes.size(),
                                    given.size(), what));
  for (size_t i = 0; i < given.size(); ++i)
    if (!given[i]->dtype.is_integer() || given[i]->dtype.bits < 32)  // else a factor may not fit
      return wrong_layout(fmt::format("for axis '{}' of layout '{}' an integer of 32 bits or more is expected, not {}",
                                      layout.axes[i].name, layout.name(), given[i]->dtype.str()));
  return support::success();
}

// What `given` has for the axis of that letter.
const Expr& at(const Layout& layout, const std::vector<Expr>& given, char axis) {
  return given[static_cast<size_t>(layout.index_of(axis))];
}

}  // namespace

std::string Layout::name() const {
  std::string text;
  for (const LayoutAxis& axis : axes) {
    if (axis.factor > 0) text += std::to_string(axis.factor);
    text += axis.name;
  }
  return text;
}

int64_t Layout::index_of(char axis) const {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == axis) return static_cast<int64_t>(i);
  return -1;
}

int64_t Layout::factor_of(char axis) const {
  const int64_t index = index_of(subordinate_of(axis));
  return index < 0 ? -1 : axes[static_cast<size_t>(index)].factor;
}

Result<Layout> parse_layout(std::string_view text) {
  Layout layout;
  std::vector<size_t> starts;
  size_t i = 0, start = 0;  // of the axis being read, with its factor
  const auto problem = [&](size_t offset, std::string_view what) {
    return wrong_layout(fmt::format("layout '{}', column {}: {}", text, offset + 1, what));
  };
  while (i < text.size()) {
    start = i;
    int64_t factor = 0;
    for (; i < text.size() && is_digit(text[i]); ++i) {
      factor = factor * 10 + (text[i] - '0');
      if (factor > most_factor) return problem(start, fmt::format("a factor is more than {}", most_factor));
    }
    const std::string_view digits = text.substr(start, i - start);
    if (i == text.size()) return problem(start, fmt::format("the factor {} has no axis after it", digits));
    const char axis = text[i++];
    if (!is_primal(axis) && !is_subordinate(axis))
      return problem(i - 1, fmt::format("'{}' is neither a letter nor a digit", axis));
    if (is_primal(axis) && !digits.empty())
      return problem(start, fmt::format("the primal axis '{}' takes no factor", axis));
    if (is_subordinate(axis) && digits.empty())
      return problem(start, fmt::format("the subordinate axis '{}' has no factor before it", axis));
    if (is_subordinate(axis) && factor == 0) return problem(start, fmt::format("the factor of '{}' is 0", axis));
    if (layout.index_of(axis) >= 0) return problem(start, fmt::format("the axis '{}' is there already", axis));
    layout.axes.push_back({axis, factor});
    starts.push_back(start);
  }
  for (size_t k = 0; k < starts.size(); ++k) {
    const char axis = layout.axes[k].name;
    if (is_subordinate(axis) && layout.index_of(primal_of(axis)) < 0)
      return problem(starts[k],
                     fmt::format("the subordinate axis '{}' has no primal axis '{}'", axis, primal_of(axis)));
  }
  return layout;
}

support::Status convertible(const Layout& from, const Layout& to) {
  for (const auto& [has, lacks] : {std::pair{&from, &to}, std::pair{&to, &from}})
    for (const LayoutAxis& axis : has->axes)
      if (is_primal(axis.name) && lacks->index_of(axis.name) < 0)
        return wrong_layout(fmt::format("cannot change layout '{}' into '{}': '{}' has no axis '{}'", from.name(),
                                        to.name(), lacks->name(), axis.name));
  return support::success();
}

Result<std::vector<Expr>> convert_indices(const Layout& from, const Layout& to, const std::vector<Expr>& indices) {
  TRY(expect_one_an_axis(from, indices, "indices"));
  arith::Analyzer analyzer;
  for (size_t i = 0; i < indices.size(); ++i)
    if (const auto* v = indices[i].as<ir::VarNode>(); v && from.axes[i].factor > 0)
      analyzer.bind(ir::Var(v), ir::Range{constant(v->dtype, 0), constant(v->dtype, from.axes[i].factor)});
  std::vector<Expr> result;
  for (const LayoutAxis& axis : to.axes) {
    const char primal = primal_of(axis.name);
    const int64_t factor = to.factor_of(primal), before = from.factor_of(primal);
    Expr index;
    if (factor == before) {
      index = at(from, indices, axis.name);
    } else {
      index = at(from, indices, primal);
      if (before > 0) index = index * before + at(from, indices, subordinate_of(primal));
      if (factor > 0)
        index = axis.factor > 0 ? floormod(index, constant(index->dtype, factor))
                                : floordiv(index, constant(index->dtype, factor));
    }
    result.push_back(analyzer.simplify(index));
  }
  return result;
}

Result<std::vector<Expr>> convert_shape(const Layout& from, const Layout& to, const std::vector<Expr>& shape) {
  TRY(expect_one_an_axis(from, shape, "extents"));
  for (size_t i = 0; i < shape.size(); ++i) {
    const LayoutAxis& axis = from.axes[i];
    const auto given = ir::as_int(shape[i]);
    if (axis.factor > 0 && given && *given != axis.factor)
      return wrong_layout(fmt::format("axis '{}' of layout '{}' has extent {}, and {} is given", axis.name, from.name(),
                                      axis.factor, *given));
  }
  arith::Analyzer analyzer;
  std::vector<Expr> result;
  for (const LayoutAxis& axis : to.axes) {
    const char primal = primal_of(axis.name);
    const int64_t factor = to.factor_of(primal), before = from.factor_of(primal);
    Expr extent = at(from, shape, primal);
    if (axis.factor > 0) {
      extent = constant(extent->dtype, axis.factor);
    } else if (factor != before) {
      if (before > 0) extent = extent * before;
      if (factor > 0) extent = ceildiv(extent, constant(extent->dtype, factor));
    }
    result.push_back(analyzer.simplify(extent));
  }
  return result;
}

}  // namespace lathe::tir
