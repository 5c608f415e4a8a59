// One run: the caller's tensors are checked against the signature and become parameters, the main function runs, its
// results become the caller's.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/core/context.h"
#include "runtime/core/error.h"
#include "runtime/core/program/interpreter.h"

namespace lathe::runtime {
namespace {

using abi::ValueKind;

bool same_dtype(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

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

int32_t check_dims(LatheContext& context, uint32_t index, const int64_t* shape) {
  const LatheValueInfo& info = context.model->inputs[index];
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
      if (!context.symbols.push({symbol, shape[axis], index}))
        return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for a run");
    } else if (bound->size != shape[axis]) {
      return fail(LATHE_INVALID_ARGUMENT, nullptr,
                  "input '%s' has size %lld for '%s' (axis %d of %s), but input '%s' has %lld", info.name,
                  static_cast<long long>(shape[axis]), symbol, axis, shape_text(shape, info.rank).text,
                  context.model->inputs[bound->input].name, static_cast<long long>(bound->size));
    }
  }
  return 0;
}

int32_t check_tensor(LatheContext& context, uint32_t index, const DLTensor& tensor, int64_t* count, uint64_t* bytes) {
  const LatheValueInfo& info = context.model->inputs[index];
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
  if (const int32_t status = check_dims(context, index, tensor.shape)) return status;
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

int32_t set_tensor_input(LatheContext& context, uint32_t index, const DLTensor* given, Slot& slot) {
  int64_t count = 0;
  uint64_t bytes = 0;
  if (given == nullptr)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' is missing", context.model->inputs[index].name);
  if (const int32_t status = check_tensor(context, index, *given, &count, &bytes)) return status;
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
    if (const int32_t status = check_dims(context, index, given->dims)) return status;
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

int32_t set_inputs(LatheContext& context, const RunInputs& inputs) {
  const abi::ProgramView& program = context.model->program;
  if (inputs.count < 0 || static_cast<uint64_t>(inputs.count) != program.inputs.count)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "the model takes %llu inputs, %d are given",
                static_cast<unsigned long long>(program.inputs.count), inputs.count);
  Slot* slots = context.slots.elements + program.functions[program.main].first_register;
  context.symbols.count = 0;
  for (uint32_t i = 0; i < program.inputs.count; ++i) {
    const int32_t status = inputs.tensors != nullptr ? set_tensor_input(context, i, inputs.tensors[i], slots[i])
                                                     : set_value_input(context, i, inputs.values[i], slots[i]);
    if (status != 0) return status;
  }
  return 0;
}

// ---- outputs ----

struct Range {
  const char *begin, *end;
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

Range range_of(const DLTensor& tensor) {
  int64_t count = 0;
  uint64_t bytes = 0;
  tensor_extent(tensor.dtype, tensor.ndim, tensor.shape, &count, &bytes);
  const char* begin = static_cast<const char*>(tensor.data) + tensor.byte_offset;
  return {begin, begin + bytes};
}

int32_t check_caller_output(const LatheContext& context, uint32_t index, const DLTensor* given) {
  const LatheValueInfo& info = context.model->outputs[index];
  if (given == nullptr) return fail(LATHE_INVALID_ARGUMENT, nullptr, "output '%s' is missing", info.name);
  int64_t count = 0;
  uint64_t bytes = 0;
  if (info.kind != LATHE_TENSOR || given->device.device_type != kDLCPU || given->ndim < 0 ||
      given->ndim > static_cast<int32_t>(abi::max_rank) || (given->ndim > 0 && given->shape == nullptr) ||
      !tensor_extent(given->dtype, given->ndim, given->shape, &count, &bytes) || (count > 0 && given->data == nullptr))
    return fail(LATHE_INVALID_ARGUMENT, nullptr,
                "output '%s' cannot be written to: it must be a tensor on the CPU with data", info.name);
  if (!is_compact(*given)) return fail(LATHE_INVALID_ARGUMENT, nullptr, "output '%s' must be compact", info.name);
  if (info.dtype.bits != 0 && !same_dtype(given->dtype, info.dtype))
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "output '%s' is %s, it is given as %s", info.name,
                dtype_text(info.dtype).text, dtype_text(given->dtype).text);
  return 0;
}

// Results go straight into the caller's tensors, except where those overlap an input or each other.
int32_t set_outputs(LatheContext& context, const RunOutputs& outputs) {
  const abi::ProgramView& program = context.model->program;
  if (outputs.count < 0 || static_cast<uint64_t>(outputs.count) != program.outputs.count)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "the model has %llu outputs, %d are asked for",
                static_cast<unsigned long long>(program.outputs.count), outputs.count);
  const Slot* slots = context.slots.elements + program.functions[program.main].first_register;
  for (uint32_t i = 0; i < program.outputs.count; ++i) {
    context.outputs[i] = {};
    if (outputs.managed != nullptr && context.model->outputs[i].kind != LATHE_TENSOR)
      return fail(LATHE_INVALID_ARGUMENT, nullptr, "output '%s' is of kind %s and comes through lathe_run_values only",
                  context.model->outputs[i].name, abi::value_kind_names[context.model->outputs[i].kind]);
    if (outputs.tensors == nullptr) continue;
    if (const int32_t status = check_caller_output(context, i, outputs.tensors[i])) return status;
    const DLTensor& tensor = *outputs.tensors[i];
    const Range range = range_of(tensor);
    bool is_direct = is_aligned(range.begin, tensor.dtype);
    for (uint32_t k = 0; is_direct && k < program.inputs.count; ++k)
      is_direct = slots[k].object == nullptr || slots[k].object->kind != ValueKind::tensor ||
                  !range.overlaps(range_of(slots[k].object->tensor));
    for (uint32_t k = 0; is_direct && k < i; ++k) is_direct = !range.overlaps(range_of(*outputs.tensors[k]));
    context.outputs[i] = {&tensor, is_direct};
  }
  return 0;
}

int32_t check_result(const LatheContext& context, uint32_t index, const LatheValue& value) {
  const LatheValueInfo& info = context.model->outputs[index];
  if (static_cast<int32_t>(value.kind) == info.kind &&
      (value.kind != ValueKind::tensor || info.dtype.bits == 0 || same_dtype(value.tensor.dtype, info.dtype)))
    return 0;
  return fail(LATHE_INVALID_ARTIFACT, nullptr, "output '%s' came out as %s of %s", info.name,
              abi::value_kind_names[static_cast<int>(value.kind)], dtype_text(value.tensor.dtype).text);
}

int32_t write_to_caller(const LatheContext& context, uint32_t index, const LatheValue& value) {
  const DLTensor& to = *context.outputs[index].caller;
  bool is_same = to.ndim == value.tensor.ndim && same_dtype(to.dtype, value.tensor.dtype);
  for (int32_t i = 0; is_same && i < to.ndim; ++i) is_same = to.shape[i] == value.dims[i];
  if (!is_same)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "output '%s' is given as %s%s, but the result is %s%s",
                context.model->outputs[index].name, dtype_text(to.dtype).text, shape_text(to.shape, to.ndim).text,
                dtype_text(value.tensor.dtype).text, shape_text(value.dims, value.tensor.ndim).text);
  char* memory = static_cast<char*>(to.data) + to.byte_offset;
  if (value.bytes > 0 && memory != value.tensor.data) std::memmove(memory, value.tensor.data, value.bytes);
  return 0;
}

// Makes a result safe to give away: host memory of its own that no other result shares.
int32_t detach_result(LatheContext& context, uint32_t index) {
  LatheValue*& value = context.results[index];
  if (value->kind == ValueKind::tensor && value->backend != abi::Backend::cpu) {
    LatheValue* copy = make_owned_tensor(context.account, value->tensor.dtype, value->tensor.ndim, value->dims);
    if (copy == nullptr) return last_error().code;
    Queue* queue = queue_of(context, value->backend);
    int32_t status = queue->device->copy(queue, copy->tensor.data, value->tensor.data, value->bytes);
    if (status == 0) status = queue->device->wait(queue);
    release(value);
    value = copy;
    return status == 0 ? 0 : fail(status, nullptr, "a result could not be copied from %s", queue->device->name);
  }
  bool is_shared = false;
  for (uint32_t i = 0; i < index && value->kind == ValueKind::tensor; ++i)
    is_shared = is_shared || (context.results[i]->kind == ValueKind::tensor &&
                              context.results[i]->block == value->block && value->block != nullptr);
  LatheValue* detached = nullptr;
  if (is_shared) {
    detached = make_owned_tensor(context.account, value->tensor.dtype, value->tensor.ndim, value->dims);
    if (detached != nullptr && value->bytes > 0) std::memcpy(detached->tensor.data, value->tensor.data, value->bytes);
  } else {
    detached = owned(context.account, value);
  }
  if (detached == nullptr) return last_error().code;
  release(value);
  value = detached;
  return 0;
}

// After a failure the queues are emptied too, but the first failure is the one that is said.
int32_t wait_for_devices(LatheContext& context, int32_t status) {
  for (Queue* queue : context.queues) {
    const int32_t waited = queue == nullptr ? 0 : queue->device->wait(queue);
    if (waited != 0 && status == 0) status = fail(waited, nullptr, "the work on %s failed", queue->device->name);
  }
  return status;
}

void delete_managed(DLManagedTensor* tensor) {
  release(static_cast<LatheValue*>(tensor->manager_ctx));
  std::free(tensor);
}

// All of them are made before the first is handed over, so that a failure leaves nothing set.
int32_t hand_over(LatheContext& context, const RunOutputs& outputs) {
  const uint32_t count = static_cast<uint32_t>(outputs.count);
  for (uint32_t i = 0; i < count; ++i) {
    if (const int32_t status = check_result(context, i, *context.results[i])) return status;
    const bool is_direct_tensor = outputs.tensors != nullptr && context.results[i]->backend == abi::Backend::cpu;
    if (!is_direct_tensor)
      if (const int32_t status = detach_result(context, i)) return status;
  }
  for (uint32_t i = 0; outputs.tensors != nullptr && i < count; ++i)
    if (const int32_t status = write_to_caller(context, i, *context.results[i])) return status;
  for (uint32_t i = 0; outputs.values != nullptr && i < count; ++i) outputs.values[i] = retain(context.results[i]);
  for (uint32_t i = 0; outputs.managed != nullptr && i < count; ++i) {
    auto* managed = static_cast<DLManagedTensor*>(std::calloc(1, sizeof(DLManagedTensor)));
    if (managed == nullptr) {
      for (uint32_t k = 0; k < i; ++k) {
        delete_managed(outputs.managed[k]);
        outputs.managed[k] = nullptr;
      }
      return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for the results");
    }
    managed->dl_tensor = context.results[i]->tensor;
    managed->manager_ctx = retain(context.results[i]);
    managed->deleter = delete_managed;
    outputs.managed[i] = managed;
  }
  return 0;
}

// What earlier runs needed more of goes before a limit that is lower now refuses.
int32_t check_memory_limit(LatheContext& context) {
  if (within_limit(*context.account)) [[likely]]
    return 0;
  for (uint64_t i = 0; i < context.dynamic_storages.count; ++i) set_dynamic_storage(context, i, nullptr);
  free_kept(context.account);
  if (within_limit(*context.account)) return 0;
  return fail(LATHE_LIMIT_REACHED, nullptr, "the context holds %llu bytes, more than its memory limit of %llu bytes",
              static_cast<unsigned long long>(context.account->bytes.load(std::memory_order_relaxed)),
              static_cast<unsigned long long>(context.account->limit));
}

int32_t run_alone(LatheContext& context, const RunInputs& inputs, const RunOutputs& outputs) {
  const abi::ProgramView& program = context.model->program;
  int32_t status = check_memory_limit(context);
  if (status == 0) status = set_inputs(context, inputs);
  if (status == 0) status = set_outputs(context, outputs);
  context.results.count = 0;
  if (status == 0) {
    const FloatModeScope mode(context.call.float_control);
    context.steps_left = context.max_steps;
    status = context.call.begin_run();
    if (status == 0) status = wait_for_devices(context, run_function(context, program.main));
    if (status == 0) status = hand_over(context, outputs);
    context.call.end_run();
  }
  for (LatheValue* value : context.results) release(value);
  context.results.count = 0;
  return status;
}

}  // namespace

int32_t run(LatheContext& context, const RunInputs& inputs, const RunOutputs& outputs) {
  if (context.is_busy.exchange(1, std::memory_order_acquire) != 0)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "the context is in use by another thread; give each caller its own");
  Account*& account = current_account();
  Account* before = account;
  account = context.account;
  const int32_t status = run_alone(context, inputs, outputs);
  account = before;
  context.is_busy.store(0, std::memory_order_release);
  return status;
}

}  // namespace lathe::runtime
