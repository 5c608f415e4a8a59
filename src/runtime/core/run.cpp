// One run: the caller's tensors and what the context keeps become parameters, the main function runs, its results
// become the caller's and what the context keeps.
#include <cstdlib>
#include <cstring>

#include "runtime/core/context.h"
#include "runtime/core/error.h"
#include "runtime/core/inputs.h"
#include "runtime/core/program/interpreter.h"
#include "runtime/core/results.h"
#include "runtime/core/states.h"

namespace lathe::runtime {
namespace {

using abi::ValueKind;

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
  if (outputs.count != context.model->output_count)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "the model has %d outputs, %d are asked for",
                context.model->output_count, outputs.count);
  const Slot* slots = context.slots.elements + program.functions[program.main].first_register;
  for (uint32_t i = 0; i < program.outputs.count; ++i) {
    context.outputs[i] = {};
    if (i >= static_cast<uint32_t>(outputs.count)) continue;  // a state's
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

// After a failure the queues are emptied too, but the first failure is the one that is said.
int32_t wait_for_devices(LatheContext& context, int32_t status) {
  for (Queue* queue : context.queues) {
    const int32_t waited = queue == nullptr ? 0 : queue->device->wait(queue);
    if (waited != 0 && status == 0) status = fail(waited, nullptr, "the work on %s failed", queue->device->name);
  }
  return status;
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
  return outputs.managed == nullptr ? 0 : give_away(context.results.elements, outputs.managed, count);
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
  if (status == 0) status = set_states_for_run(context);
  if (status == 0) status = set_outputs(context, outputs);
  context.results.count = 0;
  if (status == 0) {
    const FloatModeScope mode(context.call.float_control);
    context.steps_left = context.max_steps;
    status = context.call.begin_run();
    if (status == 0) status = wait_for_devices(context, run_function(context, program.main));
    if (status == 0) status = detach_states(context);
    if (status == 0) status = hand_over(context, outputs);
    if (status == 0) keep_states(context);
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
