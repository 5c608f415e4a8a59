#include "runtime/core/results.h"

#include <cstdlib>
#include <cstring>

#include "runtime/core/error.h"

namespace lathe::runtime {

using abi::ValueKind;

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

namespace {

void delete_managed(DLManagedTensor* tensor) {
  release(static_cast<LatheValue*>(tensor->manager_ctx));
  std::free(tensor);
}

}  // namespace

int32_t give_away(LatheValue* const* values, DLManagedTensor** to, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    auto* managed = static_cast<DLManagedTensor*>(std::calloc(1, sizeof(DLManagedTensor)));
    if (managed == nullptr) {
      for (uint32_t k = 0; k < i; ++k) {
        delete_managed(to[k]);
        to[k] = nullptr;
      }
      return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for the results");
    }
    managed->dl_tensor = values[i]->tensor;
    managed->manager_ctx = retain(values[i]);
    managed->deleter = delete_managed;
    to[i] = managed;
  }
  return 0;
}

}  // namespace lathe::runtime
