// Instructions on strings, tuples, sequences and optionals, and calls of runtime kernels.
#include <cstdlib>

#include "runtime/core/error.h"
#include "runtime/core/program/interpreter.h"

namespace lathe::runtime {
namespace {

using abi::ValueKind;

// Boxed values of registers, released at the end of the scope.
struct Boxes {
  Vector<LatheValue*> values;
  ~Boxes() {
    for (LatheValue* value : values) release(value);
  }
  // `is_kept` for values that outlive the instruction in a place the memory plan does not know of.
  bool add(const Frame& frame, uint32_t reg, bool is_kept) {
    LatheValue* value = box(frame, reg);
    if (value != nullptr && is_kept) {
      LatheValue* kept = nullptr;
      if (value->kind == ValueKind::tensor && value->backend != abi::Backend::cpu)
        failed(frame, LATHE_CHECK_FAILED, "a tensor on %s cannot be kept in a value", device_of(value->backend).name);
      else
        kept = owned(frame.context.account, value);
      release(value);
      value = kept;
    }
    if (value == nullptr) return false;
    if (values.push(value)) return true;
    release(value);
    failed(frame, LATHE_OUT_OF_MEMORY, "there is no memory for a list of values");
    return false;
  }
};

// A sequence to change: the target's own when it is the source and nobody else holds it, else a copy.
LatheValue* writable_sequence(const Frame& frame, uint32_t target, uint32_t source) {
  LatheValue* from = read_object(frame, source);
  if (from == nullptr) return nullptr;
  if (target == source && from->references.load(std::memory_order_acquire) == 1) return retain(from);
  return make_members(ValueKind::sequence, from->members, from->count);
}

bool position_of(const Frame& frame, uint32_t word, int64_t count, int64_t last, int64_t* position) {
  if (word == abi::absent) {
    *position = last;
    return true;
  }
  if (!read_scalar(frame, word, position)) return false;
  const int64_t given = *position;
  if (given < 0 && given >= -count) *position = given + count;
  if (*position >= 0 && *position <= last) return true;
  failed(frame, LATHE_CHECK_FAILED, "position %lld lies outside of a sequence of %lld elements",
         static_cast<long long>(given), static_cast<long long>(count));
  return false;
}

// Room for one more; what is said where there is none.
bool grow(const Frame& frame, LatheValue* sequence) {
  if (sequence->count < sequence->capacity) return true;
  const int64_t capacity = sequence->capacity < 4 ? 8 : sequence->capacity * 2;
  if (!hold(sequence, static_cast<uint64_t>(capacity - sequence->capacity) * sizeof(LatheValue*))) return false;
  void* moved =
      std::realloc(static_cast<void*>(sequence->members), static_cast<uint64_t>(capacity) * sizeof(LatheValue*));
  if (moved == nullptr) {
    failed(frame, LATHE_OUT_OF_MEMORY, "there is no memory for a sequence of %lld elements",
           static_cast<long long>(sequence->count) + 1);
    return false;
  }
  sequence->members = static_cast<LatheValue**>(moved);
  sequence->capacity = capacity;
  return true;
}

int32_t make_from(const Frame& frame, uint32_t target, ValueKind kind, const uint32_t* registers, uint32_t count,
                  bool is_kept) {
  Boxes boxes;
  for (uint32_t i = 0; i < count; ++i)
    if (!boxes.add(frame, registers[i], is_kept)) return last_error().code;
  return write_object(frame, target, make_members(kind, boxes.values.elements, count));
}

int32_t read_member(const Frame& frame, uint32_t target, LatheValue* of, int64_t position) {
  return unbox(frame, target, retain(of->members[position]));
}

}  // namespace

int32_t call_runtime_kernel(const Frame& frame, const uint32_t* words) {
  LatheContext& context = frame.context;
  const char* name = frame.program.text(frame.program.runtime_kernels[words[0]].name);
  const uint32_t input_count = words[2];
  const uint32_t* outputs = words + 3 + input_count + 1;
  const uint32_t output_count = outputs[-1];
  Boxes inputs, results;
  for (uint32_t i = 0; i < input_count; ++i)
    if (!inputs.add(frame, words[3 + i], false)) return last_error().code;
  if (!results.values.resize(output_count))
    return failed(frame, LATHE_OUT_OF_MEMORY, "there is no memory for the results of '%s'", name);
  LatheRuntimeCall call = {&services,
                           &value_table,
                           &context.call,
                           inputs.values.elements,
                           input_count,
                           results.values.elements,
                           output_count,
                           nullptr,
                           0,
                           frame.node()};
  if (words[1] != abi::absent) {
    const abi::SliceRecord& slice = frame.program.slices[words[1]];
    call.attributes = frame.program.data.records + slice.offset;
    call.attribute_bytes = slice.bytes;
  }
  const int32_t status = context.model->runtime_kernels[words[0]](&call);
  if (status == LATHE_VALUE_FAILED && context.call.error_code.load(std::memory_order_acquire) == 0)
    return at_node(frame.node());
  if (status != 0 || context.call.error_code.load(std::memory_order_acquire) != 0)
    return context.call.report(status, frame.node(), name);
  for (uint32_t i = 0; i < output_count; ++i) {
    LatheValue*& result = results.values[i];
    if (result == nullptr)
      return failed(frame, LATHE_KERNEL_FAILED, "runtime kernel '%s' did not set its result %u", name, i);
    // A result that is an input would live longer than the memory plan thinks.
    LatheValue* kept = owned(context.account, result);
    if (kept == nullptr) return last_error().code;
    release(result);
    result = nullptr;
    if (const int32_t written = unbox(frame, outputs[i], kept)) return written;
  }
  return 0;
}

int32_t alloc_strings(const Frame& frame, const uint32_t* words) {
  int64_t shape[abi::max_rank];
  for (uint32_t i = 0; i < words[1]; ++i)
    if (!read_scalar(frame, words[2 + i], &shape[i])) return last_error().code;
  return write_object(frame, words[0], make_string_tensor(static_cast<int32_t>(words[1]), shape));
}

int32_t copy_strings(const Frame& frame, const uint32_t* words) {
  const LatheValue* from = read_object(frame, words[1]);
  LatheValue* to = from == nullptr ? nullptr : make_string_tensor(from->tensor.ndim, from->dims);
  if (to == nullptr) return last_error().code;
  for (int64_t i = 0; i < to->count; ++i) {
    if (set_string(to, i, from->strings[i].text, from->strings[i].bytes)) continue;
    release(to);
    return last_error().code;
  }
  return write_object(frame, words[0], to);
}

int32_t make_tuple(const Frame& frame, const uint32_t* words) {
  return make_from(frame, words[0], ValueKind::tuple, words + 2, words[1], false);
}

int32_t tuple_get(const Frame& frame, const uint32_t* words) {
  LatheValue* tuple = read_object(frame, words[1]);
  int64_t position = 0;
  if (tuple == nullptr || !read_scalar(frame, words[2], &position)) return last_error().code;
  if (position < 0 || position >= tuple->count)
    return failed(frame, LATHE_CHECK_FAILED, "a tuple of %lld elements has no element %lld",
                  static_cast<long long>(tuple->count), static_cast<long long>(position));
  return read_member(frame, words[0], tuple, position);
}

int32_t make_sequence(const Frame& frame, const uint32_t* words) {
  return make_from(frame, words[0], ValueKind::sequence, words + 2, words[1], true);
}

int32_t sequence_insert(const Frame& frame, const uint32_t* words) {
  const LatheValue* source = read_object(frame, words[1]);
  Boxes boxes;
  int64_t position = 0;
  if (source == nullptr || !boxes.add(frame, words[3], true) ||
      !position_of(frame, words[2], source->count, source->count, &position))
    return last_error().code;
  LatheValue* element = boxes.values[0];
  if (element->depth >= max_depth)
    return failed(frame, LATHE_LIMIT_REACHED, "tuples, sequences and optionals nest deeper than %d", max_depth);
  LatheValue* sequence = writable_sequence(frame, words[0], words[1]);
  if (sequence == nullptr) return last_error().code;
  if (!grow(frame, sequence)) {
    release(sequence);
    return last_error().code;
  }
  for (int64_t i = sequence->count++; i > position; --i) sequence->members[i] = sequence->members[i - 1];
  sequence->members[position] = retain(element);
  if (element->depth >= sequence->depth) sequence->depth = static_cast<uint16_t>(element->depth + 1);
  return write_object(frame, words[0], sequence);
}

int32_t sequence_erase(const Frame& frame, const uint32_t* words) {
  const LatheValue* source = read_object(frame, words[1]);
  int64_t position = 0;
  if (source == nullptr || !position_of(frame, words[2], source->count, source->count - 1, &position))
    return last_error().code;
  if (position < 0) return failed(frame, LATHE_CHECK_FAILED, "an empty sequence has no element to erase");
  LatheValue* sequence = writable_sequence(frame, words[0], words[1]);
  if (sequence == nullptr) return last_error().code;
  release(sequence->members[position]);
  --sequence->count;
  for (int64_t i = position; i < sequence->count; ++i) sequence->members[i] = sequence->members[i + 1];
  return write_object(frame, words[0], sequence);
}

int32_t sequence_at(const Frame& frame, const uint32_t* words) {
  LatheValue* sequence = read_object(frame, words[1]);
  int64_t position = 0;
  if (sequence == nullptr || !position_of(frame, words[2], sequence->count, sequence->count - 1, &position))
    return last_error().code;
  return read_member(frame, words[0], sequence, position);
}

int32_t sequence_length(const Frame& frame, const uint32_t* words) {
  const LatheValue* sequence = read_object(frame, words[1]);
  if (sequence == nullptr) return last_error().code;
  write_scalar(frame, words[0], sequence->count);
  return 0;
}

int32_t make_optional(const Frame& frame, const uint32_t* words) {
  return make_from(frame, words[0], ValueKind::optional, words + 1, words[1] == abi::absent ? 0 : 1, true);
}

int32_t optional_has(const Frame& frame, const uint32_t* words) {
  const LatheValue* optional = read_object(frame, words[1]);
  if (optional == nullptr) return last_error().code;
  write_scalar(frame, words[0], optional->count);
  return 0;
}

int32_t optional_get(const Frame& frame, const uint32_t* words) {
  LatheValue* optional = read_object(frame, words[1]);
  if (optional == nullptr) return last_error().code;
  if (optional->count == 0) return failed(frame, LATHE_CHECK_FAILED, "an optional without a value is read");
  return read_member(frame, words[0], optional, 0);
}

int32_t take_strings(const Frame& frame, const uint32_t* words) {
  LatheValue* outside = read_object(frame, words[1]);
  if (outside == nullptr) return last_error().code;
  return write_object(frame, words[0], with_numbers(frame.context.call.strings, frame.context.account, outside));
}

int32_t give_strings(const Frame& frame, const uint32_t* words) {
  LatheValue* inside = read_object(frame, words[1]);
  if (inside == nullptr) return last_error().code;
  return write_object(frame, words[0], with_strings(frame.context.call.strings, inside));
}

}  // namespace lathe::runtime
