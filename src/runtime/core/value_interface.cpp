// The lathe_value_* functions of abi/lathe.h, and the table of them for runtime kernels.
#include <cstring>

#include "runtime/core/call_state.h"
#include "runtime/core/error.h"
#include "runtime/core/value.h"

using namespace lathe::runtime;
using lathe::abi::ValueKind;

namespace {

bool is_kind(const LatheValue* value, ValueKind kind, const char* function) {
  if (value != nullptr && value->kind == kind) return true;
  fail(LATHE_INVALID_ARGUMENT, nullptr, "%s takes a value of kind %s, not %s", function,
       lathe::abi::value_kind_names[static_cast<int>(kind)],
       value == nullptr ? "null" : lathe::abi::value_kind_names[static_cast<int>(value->kind)]);
  return false;
}

bool has_members(const LatheValue* value) {
  return value->kind == ValueKind::tuple || value->kind == ValueKind::sequence || value->kind == ValueKind::optional;
}

bool in_range(const LatheValue* value, int64_t index) {
  if (index >= 0 && index < value->count) return true;
  fail(LATHE_INVALID_ARGUMENT, nullptr, "a value of %lld elements has no element %lld",
       static_cast<long long>(value->count), static_cast<long long>(index));
  return false;
}

}  // namespace

extern "C" {

int32_t lathe_value_kind(const LatheValue* value) {
  return value == nullptr ? LATHE_EMPTY : static_cast<int32_t>(value->kind);
}
LatheValue* lathe_value_retain(LatheValue* value) { return retain(value); }
void lathe_value_release(LatheValue* value) { release(value); }

LatheValue* lathe_value_make_tensor(DLDataType dtype, int32_t rank, const int64_t* shape) {
  return make_owned_tensor(current_account(), dtype, rank, shape);
}

LatheValue* lathe_value_from_tensor(const DLTensor* tensor) {
  if (tensor == nullptr || tensor->device.device_type != kDLCPU || tensor->ndim < 0 ||
      (tensor->ndim > 0 && tensor->shape == nullptr)) {
    fail(LATHE_INVALID_ARGUMENT, nullptr, "a value can be made of a tensor on the CPU only");
    return nullptr;
  }
  LatheValue* value = lathe_value_make_tensor(tensor->dtype, tensor->ndim, tensor->shape);
  if (value == nullptr || value->count == 0) return value;
  const bool is_whole = tensor->dtype.bits * tensor->dtype.lanes % 8 == 0;
  if (tensor->data == nullptr || (!is_whole && !is_compact(*tensor))) {
    fail(LATHE_INVALID_ARGUMENT, nullptr, "a tensor of %s%s has no data, or strides inside of bytes",
         dtype_text(tensor->dtype).text, shape_text(tensor->shape, tensor->ndim).text);
    release(value);
    return nullptr;
  }
  copy_strided(*tensor, value->tensor.data);
  return value;
}

const DLTensor* lathe_value_tensor(const LatheValue* value) {
  return value != nullptr && value->kind == ValueKind::tensor ? &value->tensor : nullptr;
}

LatheValue* lathe_value_make_scalar(int64_t scalar) {
  LatheValue* value = make_value(ValueKind::scalar);
  if (value != nullptr) value->scalar = scalar;
  return value;
}
int64_t lathe_value_scalar(const LatheValue* value) {
  return is_kind(value, ValueKind::scalar, "lathe_value_scalar") ? value->scalar : 0;
}

LatheValue* lathe_value_make_strings(int32_t rank, const int64_t* shape) { return make_string_tensor(rank, shape); }

int32_t lathe_value_strings_shape(const LatheValue* value, int32_t* rank, const int64_t** shape) {
  if (!is_kind(value, ValueKind::strings, "lathe_value_strings_shape")) return LATHE_INVALID_ARGUMENT;
  *rank = value->tensor.ndim;
  *shape = value->dims;
  return LATHE_OK;
}

const char* lathe_value_get_string(const LatheValue* value, int64_t index, uint64_t* bytes) {
  if (!is_kind(value, ValueKind::strings, "lathe_value_get_string") || !in_range(value, index)) return nullptr;
  const StringSlot& slot = value->strings[index];
  *bytes = slot.bytes;
  return slot.text == nullptr ? "" : slot.text;
}

int32_t lathe_value_set_string(LatheValue* value, int64_t index, const char* text, uint64_t bytes) {
  if (!is_kind(value, ValueKind::strings, "lathe_value_set_string") || !in_range(value, index))
    return LATHE_INVALID_ARGUMENT;
  return set_string(value, index, text, bytes) ? LATHE_OK : last_error().code;
}

LatheValue* lathe_value_make(int32_t kind, LatheValue* const* elements, int64_t count) {
  const bool is_good =
      (kind == LATHE_TUPLE || kind == LATHE_SEQUENCE || (kind == LATHE_OPTIONAL && count <= 1)) && count >= 0;
  bool has_null = false;
  for (int64_t i = 0; is_good && i < count; ++i) has_null = has_null || elements[i] == nullptr;
  if (!is_good || has_null) {
    fail(LATHE_INVALID_ARGUMENT, nullptr, "no value of kind %d can be made of %lld elements", kind,
         static_cast<long long>(count));
    return nullptr;
  }
  // An element may be an input of a runtime kernel, which lies in memory that the next instruction writes to.
  LatheValue* value = make_members(static_cast<ValueKind>(kind), elements, count);
  for (int64_t i = 0; value != nullptr && i < count; ++i) {
    LatheValue* kept = owned(current_account(), value->members[i]);
    if (kept == nullptr) {
      release(value);
      return nullptr;
    }
    release(value->members[i]);
    value->members[i] = kept;
  }
  return value;
}

int64_t lathe_value_count(const LatheValue* value) { return value == nullptr ? 0 : value->count; }

LatheValue* lathe_value_get(const LatheValue* value, int64_t index) {
  if (value == nullptr || !has_members(value)) {
    fail(LATHE_INVALID_ARGUMENT, nullptr, "only tuples, sequences and optionals have elements");
    return nullptr;
  }
  return in_range(value, index) ? retain(value->members[index]) : nullptr;
}

}  // extern "C"

namespace lathe::runtime {
namespace {

const char* text_of(void* call_state, int64_t number, uint64_t* bytes) {
  return static_cast<CallState*>(call_state)->strings.text(number, bytes);
}
int64_t number_of(void* call_state, const char* text, uint64_t bytes) {
  return static_cast<CallState*>(call_state)->strings.number_of(text, bytes);
}

}  // namespace

const LatheValueTable value_table = {
    .version = LATHE_VALUE_TABLE_VERSION,
    .size = sizeof(LatheValueTable),
    .kind = lathe_value_kind,
    .retain = lathe_value_retain,
    .release = lathe_value_release,
    .make_tensor = lathe_value_make_tensor,
    .tensor = lathe_value_tensor,
    .make_scalar = lathe_value_make_scalar,
    .scalar = lathe_value_scalar,
    .make_strings = lathe_value_make_strings,
    .strings_shape = lathe_value_strings_shape,
    .get_string = lathe_value_get_string,
    .set_string = lathe_value_set_string,
    .make = lathe_value_make,
    .count = lathe_value_count,
    .get = lathe_value_get,
    .text = text_of,
    .number_of = number_of,
};

}  // namespace lathe::runtime
