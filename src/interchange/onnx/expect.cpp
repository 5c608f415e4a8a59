// What a node's inputs must be when the model runs: the checks, and what they say. What is known now is checked now.
#include "arith/analyzer.h"
#include "interchange/onnx/codes.h"
#include "interchange/onnx/integers.h"
#include "interchange/onnx/read/names.h"
#include "ops/build.h"

namespace lathe::onnx {

namespace build = ops::build;
using relax::Message;

namespace {

constexpr size_t most_operands = 8;    // that a message tells of
constexpr size_t most_conditions = 8;  // on known integers one by one; on more, as a tensor

bool holds(const ir::Expr& condition) { return ir::is_int(arith::Analyzer().simplify(condition), 1); }

ir::Expr at_place(const Integers& cycle, const ir::Expr& position) {
  ir::Expr result = cycle.back();
  const ir::Expr place = ir::floormod(position, ir::int64(static_cast<int64_t>(cycle.size())));
  for (size_t k = cycle.size() - 1; k-- > 0;)
    result = ir::select(ir::eq(place, ir::int64(static_cast<int64_t>(k))), cycle[k], result);
  return result;
}

// " at [2, 0]"
Message at_indices(const ir::Expr& position, const Shape& shape) {
  if (shape.empty()) return {};
  Shape indices(shape.size());
  ir::Expr rest = position;
  for (size_t d = shape.size(); d-- > 0;) {
    const ir::Expr extent = ir::max(shape[d], ir::int64(1));
    indices[d] = d > 0 ? ir::floormod(rest, extent) : rest;
    rest = ir::floordiv(rest, extent);
  }
  return Message() << " at " << indices;
}

}  // namespace

std::string NodeImport::name_of(size_t i) const {
  return input_names_ && i < input_names_->size() ? in_quotes((*input_names_)[i]) : "the input " + std::to_string(i);
}

Message NodeImport::operands() const {
  Message message;
  for (size_t i = 0; i < std::min(inputs_.size(), most_operands); ++i) {
    if (!inputs_[i]) continue;
    const GraphValue& value = *inputs_[i];
    message << "; " << name_of(i) << ", " << value.given_by << ", is ";
    const auto* info = relax::as_tensor(value.tensor);
    if (info && info->shape)
      message << info->dtype.str() << *info->shape;
    else if (value.integers)
      message << value.dtype.str() << " of " << std::to_string(value.integers->size()) << " elements";
    else
      message << "no tensor";
  }
  return message;
}

void NodeImport::expect(const ir::Expr& condition, const Message& message) {
  const ir::Expr simple = arith::Analyzer().simplify(condition);
  if (ir::is_int(simple, 1)) return;
  if (ir::is_int(simple, 0)) fail(codes::wrong_node, message.text());
  build::expect(builder_, simple, Message() << message << operands());
}

void NodeImport::expect_elements(size_t i, const Integers& low, const Integers& high, const Message& takes,
                                 std::optional<int64_t> besides) {
  const auto message = [&](const ir::Expr& position, const ir::Expr& value) {
    return Message() << name_of(i) << " holds " << value << at_indices(position, shape(i)) << ", but " << takes
                     << " in [" << at_place(low, position) << ", " << at_place(high, position) << ")";
  };
  const auto expect_one = [&](const ir::Expr& position, const ir::Expr& value) {
    const ir::Expr least = at_place(low, position), end = at_place(high, position);
    const bool is_high = holds(value >= least), is_low = holds(value < end);
    if (is_high && is_low) return;
    expect(is_high  ? value < end
           : is_low ? value >= least
                    : ir::logical_and(value >= least, value < end),
           message(position, value));
  };
  if (const auto* constant = input(i).as<relax::Constant>()) {
    // The least and the largest that one bound is for.
    const ir::TensorDataNode& data = *constant->data;
    const size_t cycle = std::max(low.size(), high.size());
    for (size_t first = 0; first < cycle; ++first) {
      std::optional<int64_t> least, largest;
      const auto step = static_cast<int64_t>(cycle);
      for (auto k = static_cast<int64_t>(first); k < data.elements(); k += step) {
        const int64_t value = ir::int_at(data, k);
        if (value == besides) continue;
        if (!least || value < ir::int_at(data, *least)) least = k;
        if (!largest || value > ir::int_at(data, *largest)) largest = k;
      }
      for (const auto& k : {least, largest})
        if (k) expect_one(ir::int64(*k), ir::int64(ir::int_at(data, *k)));
    }
    return;
  }
  if (const Integers* all = known(i); all && all->size() <= most_conditions && !besides) {
    for (size_t k = 0; k < all->size(); ++k) expect_one(ir::int64(static_cast<int64_t>(k)), (*all)[k]);
    return;
  }
  const build::Finding found =
      build::find_element(builder_, input(i), [&](const ir::Expr& element, const ir::Expr& position) {
        const ir::Expr value = ir::cast(DType::int64(), element);
        const ir::Expr is_outside = ir::logical_or(value < at_place(low, position), value >= at_place(high, position));
        return besides ? ir::logical_and(is_outside, ir::ne(value, ir::int64(*besides))) : is_outside;
      });
  expect(found.position < 0, message(found.position, found.value));
}

void NodeImport::expect_indices(size_t i, const Integers& extents, std::string_view what) {
  Integers low;
  for (const ir::Expr& extent : extents) low.push_back(relax::simplified(ir::int64(0) - extent));
  expect_elements(i, low, extents, Message() << "indices into " << what << " of " << name_of(0) << " are");
}

void NodeImport::expect_at_least(size_t i, const Integers& values, int64_t least, std::string_view takes) {
  for (size_t k = 0; k < values.size(); ++k) {
    Message message = Message() << name_of(i) << " holds " << values[k];
    if (rank(i) > 0) message << " at [" << std::to_string(k) << "]";
    if (!bounds().at_least(values[k], least)) expect(values[k] >= ir::int64(least), message << ", but " << takes);
  }
}

void NodeImport::expect_axes(size_t i, const Integers& axes, int64_t rank, const ir::Expr& count) {
  if (constants_of(axes)) return;  // they are compared when compiling
  const auto own = [&](size_t k) { return ir::select(axes[k] < 0, axes[k] + rank, axes[k]); };
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto place = ir::int64(static_cast<int64_t>(k));
    ir::Expr is_one = ir::logical_and(axes[k] >= -rank, axes[k] < rank), is_new = ir::boolean(true);
    for (size_t before = 0; before < k; ++before) is_new = ir::logical_and(is_new, ir::ne(own(before), own(k)));
    if (count) {
      is_one = ir::logical_or(is_one, place >= count);
      is_new = ir::logical_or(is_new, place >= count);
    }
    const Message names = Message() << name_of(i) << " holds " << axes[k] << " at [" << place << "], ";
    const std::string bounds = "[-" + std::to_string(rank) + ", " + std::to_string(rank) + ")";
    expect(is_one, Message() << names << "but there are axes in " << bounds);
    expect(is_new, Message() << names << "but one before it is the same axis");
  }
}

void NodeImport::expect_no_zero(size_t i, std::string_view why) {
  const auto message = [&](const ir::Expr& position) {
    return Message() << name_of(i) << " is 0" << at_indices(position, shape(i)) << ", " << why;
  };
  if (const auto* constant = input(i).as<relax::Constant>()) {
    const bool is_real = constant->data->dtype.is_floating();
    for (int64_t k = 0; k < constant->data->elements(); ++k)
      if (is_real ? ir::float_at(*constant->data, k) == 0 : ir::int_at(*constant->data, k) == 0)
        fail(codes::wrong_node, message(ir::int64(k)).text());
    return;
  }
  if (const Integers* all = known(i); all && all->size() <= most_conditions) {
    for (size_t k = 0; k < all->size(); ++k)
      expect(ir::ne((*all)[k], ir::int64(0)), message(ir::int64(static_cast<int64_t>(k))));
    return;
  }
  const build::Finding found = build::find_element(builder_, input(i), [](const ir::Expr& element, const ir::Expr&) {
    return ir::eq(element, ir::constant(element->dtype, 0));
  });
  expect(found.position < 0, message(found.position));
}

}  // namespace lathe::onnx
