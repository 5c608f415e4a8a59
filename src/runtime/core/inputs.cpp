#include "runtime/core/inputs.h"

#include <cstdio>
#include <cstring>

#include "runtime/core/error.h"

namespace lathe::runtime {
namespace {

using abi::ValueKind;

// "[N, 3]" as the signature says it.
ShapeText promised_shape(const LatheValueInfo& info) {
  ShapeText out;
  size_t used = static_cast<size_t>(std::snprintf(out.text, sizeof(out.text), "["));
  for (int32_t i = 0; i < info.rank && used < sizeof(out.text) - 64; ++i) {
    const char* comma = i > 0 ? ", " : "";
    const int step =
        info.dims[i] >= 0
            ? std::snprintf(out.text + used, 32, "%s%lld", comma, static_cast<long long>(info.dims[i]))
            : std::snprintf(out.text + used, 48, "%s%.40s", comma, info.symbols[i][0] != 0 ? info.symbols[i] : "?");
    used += static_cast<size_t>(step < 47 ? step : 47);
  }
  std::snprintf(out.text + used, sizeof(out.text) - used, "]");
  return out;
}

}  // namespace

bool same_dtype(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

int32_t check_dims(LatheContext& context, const LatheValueInfo& info, const int64_t* shape) {
  for (int32_t axis = 0; axis < info.rank; ++axis) {
    if (info.dims[axis] >= 0 && info.dims[axis] != shape[axis])
      return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' must have the shape %s, it has %s", info.name,
                  promised_shape(info).text, shape_text(shape, info.rank).text);
    const char* symbol = info.symbols[axis];
    if (info.dims[axis] >= 0 || symbol[0] == 0) continue;
    const BoundSymbol* bound = nullptr;
    for (const BoundSymbol& at : context.symbols)
      if (at.name == symbol || std::strcmp(at.name, symbol) == 0) bound = &at;
    if (bound == nullptr) {
      if (!context.symbols.push({symbol, shape[axis], info.name}))
        return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for a run");
    } else if (bound->size != shape[axis]) {
      return fail(LATHE_INVALID_ARGUMENT, nullptr,
                  "input '%s' has size %lld for '%s' (axis %d of %s), but input '%s' has %lld", info.name,
                  static_cast<long long>(shape[axis]), symbol, axis, shape_text(shape, info.rank).text, bound->input,
                  static_cast<long long>(bound->size));
    }
  }
  return 0;
}

int32_t check_tensor(LatheContext& context, const LatheValueInfo& info, const DLTensor& tensor, int64_t* count,
                     uint64_t* bytes) {
  if (info.kind != LATHE_TENSOR)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' is of kind %s, not a tensor", info.name,
                abi::value_kind_names[info.kind]);
  if (tensor.device.device_type != kDLCPU)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' lies on device type %d, it must be on the CPU", info.name,
                static_cast<int>(tensor.device.device_type));
  if (info.dtype.bits != 0 && !same_dtype(tensor.dtype, info.dtype))
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' must be %s, it is %s", info.name,
                dtype_text(info.dtype).text, dtype_text(tensor.dtype).text);
  if (tensor.ndim < 0 || tensor.ndim > static_cast<int32_t>(abi::max_rank) ||
      (tensor.ndim > 0 && tensor.shape == nullptr) || (info.rank >= 0 && tensor.ndim != info.rank))
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' must have the shape %s, it has rank %d", info.name,
                info.rank >= 0 ? promised_shape(info).text : "of any rank", tensor.ndim);
  if (const int32_t status = check_dims(context, info, tensor.shape)) return status;
  if (!tensor_extent(tensor.dtype, tensor.ndim, tensor.shape, count, bytes))
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' cannot have the shape %s", info.name,
                shape_text(tensor.shape, tensor.ndim).text);
  if (*count > 0 && tensor.data == nullptr)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' has no data", info.name);
  const unsigned bits = static_cast<unsigned>(tensor.dtype.bits) * tensor.dtype.lanes;
  if (bits % 8 != 0 && !is_compact(tensor))
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' of %s must be compact", info.name,
                dtype_text(tensor.dtype).text);
  return 0;
}

bool is_aligned(const void* data, DLDataType dtype) {
  uint64_t bytes = dtype.bits / 8u;
  if (bytes == 0 || (bytes & (bytes - 1)) != 0) bytes = 1;
  return reinterpret_cast<uintptr_t>(data) % (bytes > 8 ? 8 : bytes) == 0;
}

namespace {

int32_t set_tensor_input(LatheContext& context, uint32_t index, const DLTensor* given, Slot& slot) {
  int64_t count = 0;
  uint64_t bytes = 0;
  if (given == nullptr)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' is missing", context.model->inputs[index].name);
  if (const int32_t status = check_tensor(context, context.model->inputs[index], *given, &count, &bytes)) return status;
  char* data = static_cast<char*>(given->data) + given->byte_offset;
  LatheValue* value = nullptr;
  if (count > 0 && (!is_compact(*given) || !is_aligned(data, given->dtype))) {
    value = make_owned_tensor(context.account, given->dtype, given->ndim, given->shape);
    if (value == nullptr) return last_error().code;
    copy_strided(*given, value->tensor.data);
  } else {
    LatheValue* old = slot.object;
    const bool is_reusable = old != nullptr && old->kind == ValueKind::tensor && old->block == nullptr &&
                             old->rank_capacity >= given->ndim && old->references.load(std::memory_order_acquire) == 1;
    value = is_reusable ? old : make_value(ValueKind::tensor, static_cast<uint16_t>(given->ndim < 6 ? 6 : given->ndim));
    if (value == nullptr) return last_error().code;
    value->backend = abi::Backend::cpu;
    value->is_constant = true;
    value->filled_by = nullptr;
    value->count = count;
    value->bytes = bytes;
    value->tensor.data = count > 0 ? data : empty_memory;
    value->tensor.device = {kDLCPU, 0};
    value->tensor.dtype = given->dtype;
    value->tensor.ndim = given->ndim;
    for (int32_t i = 0; i < given->ndim; ++i) value->dims[i] = given->shape[i];
  }
  if (value != slot.object) {
    release(slot.object);
    slot.object = value;
  }
  slot.is_live = true;
  return 0;
}

int32_t set_value_input(LatheContext& context, uint32_t index, LatheValue* given, Slot& slot) {
  const LatheValueInfo& info = context.model->inputs[index];
  if (given == nullptr) return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' is missing", info.name);
  if (static_cast<int32_t>(given->kind) != info.kind)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' is of kind %s, it is given as %s", info.name,
                abi::value_kind_names[info.kind], abi::value_kind_names[static_cast<int>(given->kind)]);
  if (given->kind == ValueKind::tensor) return set_tensor_input(context, index, &given->tensor, slot);
  if (given->kind == ValueKind::strings && info.rank >= 0) {
    if (given->tensor.ndim != info.rank)
      return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' must have the shape %s, it has rank %d", info.name,
                  promised_shape(info).text, given->tensor.ndim);
    if (const int32_t status = check_dims(context, info, given->dims)) return status;
  }
  if (given->kind == ValueKind::scalar) {
    slot.scalar = given->scalar;
  } else {
    release(slot.object);
    slot.object = retain(given);
  }
  slot.is_live = true;
  return 0;
}

}  // namespace

int32_t set_inputs(LatheContext& context, const RunInputs& inputs) {
  const abi::ProgramView& program = context.model->program;
  if (inputs.count != context.model->input_count)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "the model takes %d inputs, %d are given", context.model->input_count,
                inputs.count);
  Slot* slots = context.slots.elements + program.functions[program.main].first_register;
  context.symbols.count = 0;
  for (uint32_t i = 0; i < static_cast<uint32_t>(inputs.count); ++i) {
    const int32_t status = inputs.tensors != nullptr ? set_tensor_input(context, i, inputs.tensors[i], slots[i])
                                                     : set_value_input(context, i, inputs.values[i], slots[i]);
    if (status != 0) return status;
  }
  return 0;
}

}  // namespace lathe::runtime
