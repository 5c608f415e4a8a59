// Calls of functions that the user registered: tensors are lent with their memory, numbers and texts are copied.
#include <deque>

#include "ir/formats/dlpack_type.h"
#include "tir/analysis/calls.h"
#include "tir/codes.h"
#include "tir/interpret/machine.h"

namespace lathe::tir::interpreter {

// A tensor that a call is given, and where its elements lie.
struct Machine::Lent {
  Memory* memory = nullptr;
  int64_t first = 0, bits = 0;  // of the first element, of each
  std::vector<int64_t> shape, strides;
  DLTensor tensor{};
};

void Machine::lend(const Call& array, Lent& lent) {
  const PassedArray parts = *passed_array(array);
  Buffer buffer = parts.element->buffer;
  std::vector<int64_t> at;
  for (const Expr& index : parts.element->indices) at.push_back(evaluate_int(index));
  size_t kept = 0;  // dimensions of the memory before those of a view
  if (const auto view = aliases_.find(buffer.get()); view != aliases_.end()) {
    kept = view->second.corner.size() - at.size();
    std::vector<int64_t> moved = view->second.corner;
    for (size_t d = 0; d < at.size(); ++d) moved[kept + d] += at[d];
    at = std::move(moved);
    buffer = view->second.source;
  }
  const Pointer base = memory_of(buffer);
  std::vector<int64_t> strides(at.size());
  int64_t offset = buffer->elem_offset ? evaluate_int(buffer->elem_offset) : 0, compact = 1;
  for (size_t d = at.size(); d-- > 0;) {
    strides[d] = buffer->strides.empty() ? compact : evaluate_int(buffer->strides[d]);
    compact *= evaluate_int(buffer->shape[d]);
    offset += at[d] * strides[d];
  }
  for (const Expr& extent : parts.shape) lent.shape.push_back(evaluate_int(extent));
  for (const Expr& stride : parts.strides) lent.strides.push_back(evaluate_int(stride));
  // A view says nothing of how its rows lie: the memory does.
  if (lent.strides.empty() && aliases_.count(parts.element->buffer.get()))
    lent.strides.assign(strides.begin() + static_cast<ptrdiff_t>(kept), strides.end());
  lent.memory = base.memory;
  lent.bits = buffer->dtype.storage_bits() * buffer->dtype.lanes;
  lent.first = base.bit + offset * lent.bits;
  int64_t last = lent.first, count = 1, step = 1;
  for (size_t d = lent.shape.size(); d-- > 0;) {
    last += (lent.shape[d] - 1) * (lent.strides.empty() ? step : lent.strides[d]) * lent.bits;
    step *= lent.shape[d];
    count *= lent.shape[d];
  }
  if (count > 0 && (lent.first < 0 || last < lent.first || last + lent.bits > base.memory->size * 8))
    fail(codes::out_of_bounds, fmt::format("a tensor over '{}' reaches past its end", buffer->name));
  if (lent.first % 8 != 0)
    fail(codes::not_interpretable, fmt::format("a tensor over '{}' begins inside a byte", buffer->name));
  lent.tensor = {.data = base.memory->bytes + lent.first / 8,
                 .device = {kDLCPU, 0},
                 .ndim = static_cast<int32_t>(lent.shape.size()),
                 .dtype = ir::dlpack_type(buffer->dtype),
                 .shape = lent.shape.data(),
                 .strides = lent.strides.empty() ? nullptr : lent.strides.data()};
}

// What the function has written is not known: all of it counts as a value.
void Machine::take_back(const Lent& lent) {
  std::vector<int64_t> at(lent.shape.size(), 0);
  if (std::find(lent.shape.begin(), lent.shape.end(), 0) != lent.shape.end()) return;
  for (size_t d = 0; d != SIZE_MAX;) {
    int64_t element = 0, compact = 1;
    for (size_t k = at.size(); k-- > 0; compact *= lent.shape[k])
      element += at[k] * (lent.strides.empty() ? compact : lent.strides[k]);
    lent.memory->mark_written(lent.first + element * lent.bits, lent.bits);
    d = at.size() - 1;
    while (d != SIZE_MAX && ++at[d] == lent.shape[d]) at[d--] = 0;
  }
}

Value Machine::call_registered(const Call& call) {
  if (const std::string wrong = wrong_registered_call(call); !wrong.empty()) fail(codes::wrong_call, wrong);
  std::vector<LathePassed> passed;
  std::deque<Lent> lent;
  for (size_t i = 1; i < call.args.size(); ++i) {
    const Expr& arg = call.args[i];
    LathePassed& value = passed.emplace_back();
    if (const auto* text = arg.as<StringImm>()) {
      value.kind = LATHE_PASSED_TEXT;
      value.of.text = text->value.c_str();
    } else if (arg->dtype.is_handle()) {
      lend(*arg.as<Call>(), lent.emplace_back());
      value.kind = LATHE_PASSED_TENSOR;
      value.of.tensor = &lent.back().tensor;
    } else if (const Scalar number = evaluate(arg).first; arg->dtype.is_floating()) {
      value.kind = LATHE_PASSED_REAL;
      value.of.real = number.f;
    } else {
      value.kind = LATHE_PASSED_INTEGER;
      value.of.integer = number.i;
    }
  }
  LathePassed result{};
  result.kind = call.dtype.is_floating()                          ? LATHE_PASSED_REAL
                : call.dtype.is_integer() || call.dtype.is_bool() ? LATHE_PASSED_INTEGER
                                                                  : LATHE_PASSED_NOTHING;
  tir::call_registered(options_.context, call.args[0].as<StringImm>()->value, passed, result);
  for (const Lent& each : lent) take_back(each);
  if (result.kind == LATHE_PASSED_REAL) return Value(call.dtype, {0, rounded(call.dtype, result.of.real)});
  const int64_t whole = result.kind == LATHE_PASSED_INTEGER ? result.of.integer : 0;
  return Value(call.dtype, {call.dtype.is_bool() ? whole != 0 : wrap_integer(whole, call.dtype), 0});
}

}  // namespace lathe::tir::interpreter
