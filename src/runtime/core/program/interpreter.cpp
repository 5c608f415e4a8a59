#include "runtime/core/program/interpreter.h"

#include <cstdarg>
#include <cstdio>

#include "runtime/core/error.h"
#include "runtime/core/program/compiled_functions.h"

namespace lathe::runtime {

using abi::Opcode;
using abi::ValueKind;

int32_t failed(const Frame& frame, int32_t code, const char* format, ...) {
  char message[1024];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  return fail(code, frame.node(), "%s", message);
}

LatheValue* read_object(const Frame& frame, uint32_t reg) {
  const Slot& slot = frame.slots[reg];
  if (slot.is_live && slot.object != nullptr) return slot.object;
  failed(frame, LATHE_INVALID_ARTIFACT, "register %u is read by %s before it has a value", reg,
         instruction_name(frame.program, *frame.at));
  return nullptr;
}

bool read_scalar(const Frame& frame, uint32_t word, int64_t* scalar) {
  if ((word & abi::immediate_bit) != 0) {
    *scalar = frame.program.integers[word & ~abi::immediate_bit];
    return true;
  }
  if (!frame.slots[word].is_live) {
    failed(frame, LATHE_INVALID_ARTIFACT, "register %u is read by %s before it has a value", word,
           instruction_name(frame.program, *frame.at));
    return false;
  }
  *scalar = frame.slots[word].scalar;
  return true;
}

int32_t write_object(const Frame& frame, uint32_t reg, LatheValue* value) {
  if (value == nullptr) return last_error().code;
  const abi::RegisterRecord& declared = frame.reg(reg);
  const bool is_tensor = value->kind == ValueKind::tensor;
  const DLDataType have = value->tensor.dtype, want = declared.dtype;
  const bool is_same_type =
      !is_tensor || want.bits == 0 || (have.code == want.code && have.bits == want.bits && have.lanes == want.lanes);
  if (value->kind != declared.kind || !is_same_type ||
      (is_tensor && declared.rank >= 0 && declared.rank != value->tensor.ndim)) {
    const int32_t status =
        is_tensor && declared.kind == ValueKind::tensor
            ? failed(frame, LATHE_CHECK_FAILED, "a tensor of %s and rank %d came where %s and rank %d was expected",
                     dtype_text(have).text, value->tensor.ndim, dtype_text(want).text, declared.rank)
            : failed(frame, LATHE_CHECK_FAILED, "a value of kind %s came where kind %s was expected",
                     abi::value_kind_names[static_cast<int>(value->kind)],
                     abi::value_kind_names[static_cast<int>(declared.kind)]);
    release(value);
    return status;
  }
  Slot& slot = frame.slots[reg];
  LatheValue* before = slot.object;
  slot.object = value;
  slot.is_live = true;
  release(before);
  return 0;
}

void write_scalar(const Frame& frame, uint32_t reg, int64_t scalar) {
  frame.slots[reg].scalar = scalar;
  frame.slots[reg].is_live = true;
}

LatheValue* box(const Frame& frame, uint32_t reg) {
  if (frame.reg(reg).kind != ValueKind::scalar) return retain(read_object(frame, reg));
  int64_t scalar = 0;
  if (!read_scalar(frame, reg, &scalar)) return nullptr;
  LatheValue* value = make_value(ValueKind::scalar);
  if (value != nullptr) value->scalar = scalar;
  return value;
}

int32_t unbox(const Frame& frame, uint32_t reg, LatheValue* value) {
  if (value == nullptr) return last_error().code;
  if (frame.reg(reg).kind != ValueKind::scalar || value->kind != ValueKind::scalar)
    return write_object(frame, reg, value);
  write_scalar(frame, reg, value->scalar);
  release(value);
  return 0;
}

namespace {

int64_t wrapped(uint64_t value) { return static_cast<int64_t>(value); }

// Both operands may be anything; the one division that does not fit wraps.
bool divide(Opcode opcode, int64_t a, int64_t b, int64_t* result) {
  if (b == 0) return false;
  int64_t quotient = b == -1 ? wrapped(0 - static_cast<uint64_t>(a)) : a / b;
  const int64_t rest = b == -1 ? 0 : a % b;
  const bool is_rounded_up = rest != 0 && (rest < 0) != (b < 0);
  if (is_rounded_up) --quotient;
  *result = opcode == Opcode::scalar_floor_divide ? quotient : is_rounded_up ? rest + b : rest;
  return true;
}

int32_t binary(const Frame& frame, const uint32_t* words) {
  int64_t a = 0, b = 0, result = 0;
  if (!read_scalar(frame, words[1], &a) || !read_scalar(frame, words[2], &b)) return last_error().code;
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (frame.at->opcode) {
    case Opcode::scalar_add:
      result = wrapped(ua + ub);
      break;
    case Opcode::scalar_subtract:
      result = wrapped(ua - ub);
      break;
    case Opcode::scalar_multiply:
      result = wrapped(ua * ub);
      break;
    case Opcode::scalar_floor_divide:
    case Opcode::scalar_floor_modulo:
      if (!divide(frame.at->opcode, a, b, &result))
        return failed(frame, LATHE_CHECK_FAILED, "%lld is divided by zero in the computation of a shape",
                      static_cast<long long>(a));
      break;
    case Opcode::scalar_minimum:
      result = a < b ? a : b;
      break;
    case Opcode::scalar_maximum:
      result = a > b ? a : b;
      break;
    case Opcode::scalar_equal:
      result = a == b;
      break;
    case Opcode::scalar_not_equal:
      result = a != b;
      break;
    case Opcode::scalar_less:
      result = a < b;
      break;
    case Opcode::scalar_less_equal:
      result = a <= b;
      break;
    case Opcode::scalar_and:
      result = a != 0 && b != 0;
      break;
    case Opcode::scalar_or:
      result = a != 0 || b != 0;
      break;
    default:
      __builtin_unreachable();
  }
  write_scalar(frame, words[0], result);
  return 0;
}

int32_t select(const Frame& frame, const uint32_t* words) {
  int64_t condition = 0, value = 0;
  if (!read_scalar(frame, words[1], &condition) || !read_scalar(frame, words[condition != 0 ? 2 : 3], &value))
    return last_error().code;
  write_scalar(frame, words[0], value);
  return 0;
}

int32_t move(const Frame& frame, const uint32_t* words) {
  if (frame.reg(words[0]).kind != ValueKind::scalar)
    return write_object(frame, words[0], retain(read_object(frame, words[1])));
  int64_t scalar = 0;
  if (!read_scalar(frame, words[1], &scalar)) return last_error().code;
  write_scalar(frame, words[0], scalar);
  return 0;
}

// A killed register keeps an object that holds nothing of others, for its next value.
void kill(Slot& slot) {
  slot.is_live = false;
  LatheValue* object = slot.object;
  if (object == nullptr) return;
  if (object->kind == ValueKind::tensor && object->block == nullptr &&
      object->references.load(std::memory_order_acquire) == 1)
    return;
  release(object);
  slot.object = nullptr;
}

void kill_all(Slot* slots, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) kill(slots[i]);
}

int32_t assert_true(const Frame& frame, const uint32_t* words) {
  int64_t condition = 0;
  if (!read_scalar(frame, words[0], &condition)) return last_error().code;
  return condition != 0 ? 0 : failed(frame, LATHE_CHECK_FAILED, "%s", frame.program.text(words[1]));
}

int32_t assert_numbers(const Frame& frame, const uint32_t* words) {
  int64_t condition = 0;
  if (!read_scalar(frame, words[0], &condition)) return last_error().code;
  if (condition != 0) return 0;
  char message[1024];
  size_t used = 0;
  uint32_t number = 0;
  for (const char* at = frame.program.text(words[1]); *at != 0 && used + 24 < sizeof(message); ++at) {
    int64_t value = 0;
    if (*at != '%' || number == words[2])
      message[used++] = *at;
    else if (read_scalar(frame, words[3 + number++], &value))
      used += static_cast<size_t>(std::snprintf(message + used, 24, "%lld", static_cast<long long>(value)));
    else
      return last_error().code;
  }
  message[used] = 0;
  return failed(frame, LATHE_CHECK_FAILED, "%s", message);
}

// The results of a callee are on top of context.results.
int32_t call_function(const Frame& frame, const uint32_t* words) {
  const abi::FunctionRecord& callee = frame.program.functions[words[0]];
  Slot* slots = frame.context.slots.elements + callee.first_register;
  const uint32_t* arguments = words + 2;
  const uint32_t* targets = arguments + words[1] + 1;
  const Frame inner = {frame.context, frame.program, callee, slots, frame.at};
  for (uint32_t i = 0; i < callee.parameter_count; ++i) {
    const int32_t status = unbox(inner, i, box(frame, arguments[i]));
    if (status == 0) continue;
    kill_all(slots, i);  // what was handed over already
    return status;
  }
  const uint64_t base = frame.context.results.count;
  if (const int32_t status = run_function(frame.context, words[0])) return status;
  Vector<LatheValue*>& results = frame.context.results;
  int32_t status = 0;
  for (uint32_t i = 0; i < callee.result_count; ++i) {
    LatheValue* value = results[base + i];
    if (status == 0)
      status = unbox(frame, targets[i], value);
    else
      release(value);
  }
  results.count = base;
  return status;
}

int32_t return_values(const Frame& frame, const uint32_t* words) {
  Vector<LatheValue*>& results = frame.context.results;
  const uint64_t base = results.count;
  int32_t status = 0;
  for (uint32_t i = 0; status == 0 && i < words[0]; ++i) {
    LatheValue* value = box(frame, words[1 + i]);
    if (value == nullptr)
      status = last_error().code;
    else if (!results.push(value)) {
      release(value);
      status = failed(frame, LATHE_OUT_OF_MEMORY, "there is no memory for the results");
    }
  }
  if (status == 0) return 0;
  while (results.count > base) release(results[--results.count]);
  return status;
}

}  // namespace

int32_t execute(const Frame& frame, const uint32_t* words) {
  switch (frame.at->opcode) {
    case Opcode::alloc_tensor:
      return alloc_tensor(frame, words);
    case Opcode::reserve_storage:
      return reserve_storage(frame, words);
    case Opcode::load_constant:
      return load_constant(frame, words);
    case Opcode::view:
      return view(frame, words);
    case Opcode::copy:
      return copy(frame, words);
    case Opcode::match_shape:
      return match_shape(frame, words);
    case Opcode::assert_true:
      return assert_true(frame, words);
    case Opcode::assert_numbers:
      return assert_numbers(frame, words);
    case Opcode::call_kernel:
      return call_kernel(frame, words);
    case Opcode::call_runtime_kernel:
      return call_runtime_kernel(frame, words);
    case Opcode::call_function:
      return call_function(frame, words);
    case Opcode::scalar_set: {
      int64_t scalar = 0;
      if (!read_scalar(frame, words[1], &scalar)) return last_error().code;
      write_scalar(frame, words[0], scalar);
      return 0;
    }
    case Opcode::scalar_add:
    case Opcode::scalar_subtract:
    case Opcode::scalar_multiply:
    case Opcode::scalar_floor_divide:
    case Opcode::scalar_floor_modulo:
    case Opcode::scalar_minimum:
    case Opcode::scalar_maximum:
    case Opcode::scalar_equal:
    case Opcode::scalar_not_equal:
    case Opcode::scalar_less:
    case Opcode::scalar_less_equal:
    case Opcode::scalar_and:
    case Opcode::scalar_or:
      return binary(frame, words);
    case Opcode::scalar_select:
      return select(frame, words);
    case Opcode::read_dim:
      return read_dim(frame, words);
    case Opcode::read_rank:
      return read_rank(frame, words);
    case Opcode::load_scalar:
      return load_scalar(frame, words);
    case Opcode::store_scalar:
      return store_scalar(frame, words);
    case Opcode::alloc_strings:
      return alloc_strings(frame, words);
    case Opcode::copy_strings:
      return copy_strings(frame, words);
    case Opcode::make_tuple:
      return make_tuple(frame, words);
    case Opcode::tuple_get:
      return tuple_get(frame, words);
    case Opcode::make_sequence:
      return make_sequence(frame, words);
    case Opcode::sequence_insert:
      return sequence_insert(frame, words);
    case Opcode::sequence_erase:
      return sequence_erase(frame, words);
    case Opcode::sequence_at:
      return sequence_at(frame, words);
    case Opcode::sequence_length:
      return sequence_length(frame, words);
    case Opcode::make_optional:
      return make_optional(frame, words);
    case Opcode::optional_has:
      return optional_has(frame, words);
    case Opcode::optional_get:
      return optional_get(frame, words);
    case Opcode::take_strings:
      return take_strings(frame, words);
    case Opcode::give_strings:
      return give_strings(frame, words);
    case Opcode::move:
      return move(frame, words);
    case Opcode::kill:
      kill(frame.slots[words[0]]);
      return 0;
    case Opcode::return_values:
      return return_values(frame, words);
    case Opcode::jump:
    case Opcode::branch:
    case Opcode::loop_begin:
    case Opcode::loop_next:
      break;
  }
  __builtin_unreachable();
}

namespace {

// The instruction that follows `next`, for those that choose it.
int32_t jump_target(const Frame& frame, const uint32_t* words, uint32_t* next) {
  int64_t a = 0, b = 0;
  switch (frame.at->opcode) {
    case Opcode::jump:
      *next = words[0];
      return 0;
    case Opcode::branch:
      if (!read_scalar(frame, words[0], &a)) return last_error().code;
      *next = a != 0 ? words[1] : words[2];
      return 0;
    case Opcode::loop_begin:
      if (!read_scalar(frame, words[1], &a) || !read_scalar(frame, words[2], &b)) return last_error().code;
      write_scalar(frame, words[0], a);
      if (a >= b) *next = words[3];
      return 0;
    case Opcode::loop_next:
      if (!read_scalar(frame, words[0], &a) || !read_scalar(frame, words[1], &b)) return last_error().code;
      write_scalar(frame, words[0], wrapped(static_cast<uint64_t>(a) + 1));
      if (frame.slots[words[0]].scalar < b && a != INT64_MAX) *next = words[2];
      return 0;
    default:
      return 0;
  }
}

bool chooses_next(Opcode opcode) {
  return opcode == Opcode::jump || opcode == Opcode::branch || opcode == Opcode::loop_begin ||
         opcode == Opcode::loop_next;
}

int32_t interpret(LatheContext& context, const abi::FunctionRecord& function) {
  const abi::ProgramView& program = context.model->program;
  Frame frame = {context, program, function, context.slots.elements + function.first_register, nullptr};
  const abi::InstructionRecord* instructions = program.instructions.records + function.first_instruction;
  const bool is_profiled = context.profiler.is_enabled;
  int32_t status = 0;
  for (uint32_t next = 0;;) {
    frame.at = instructions + next++;
    const uint32_t* words = program.operands.records + frame.at->first_operand;
    if (context.max_steps != 0 && context.steps_left-- == 0) {
      status = failed(frame, LATHE_LIMIT_REACHED, "the run passed its limit of %llu steps",
                      static_cast<unsigned long long>(context.max_steps));
      break;
    }
    if (context.call.is_stopped()) [[unlikely]] {
      status = context.call.report(services.stop(&context.call), frame.node(), "");
      break;
    }
    if (chooses_next(frame.at->opcode)) {
      status = jump_target(frame, words, &next);
    } else if (is_profiled) {
      const int64_t start = monotonic_nanoseconds();
      status = execute(frame, words);
      context.profiler.add_instruction(function.first_instruction + uint64_t{next} - 1,
                                       monotonic_nanoseconds() - start);
    } else {
      status = execute(frame, words);
    }
    if (status != 0 || frame.at->opcode == Opcode::return_values) break;
  }
  if (status != 0) at_node(frame.node());
  return status;
}

}  // namespace

int32_t run_function(LatheContext& context, uint32_t index) {
  const abi::FunctionRecord& function = context.model->program.functions[index];
  Slot* slots = context.slots.elements + function.first_register;
  kill_all(slots + function.parameter_count, function.register_count - function.parameter_count);
  const bool is_counted = context.max_steps != 0 || context.profiler.is_enabled;
  const LatheProgramFunction code =
      is_counted || context.model->functions == nullptr ? nullptr : context.model->functions[index];
  const int32_t status = code != nullptr ? run_compiled(context, function, code) : interpret(context, function);
  kill_all(slots, function.register_count);
  return status;
}

}  // namespace lathe::runtime
