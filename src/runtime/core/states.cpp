#include "runtime/core/states.h"

#include <cstring>

#include "runtime/core/error.h"
#include "runtime/core/inputs.h"
#include "runtime/core/results.h"

namespace lathe::runtime {
namespace {

using abi::StateRecord;

bool is_in_place(const StateRecord& state) { return state.output == abi::absent; }

// The port of a state: for what is written in place, with all elements that there is room for.
const LatheValueInfo& port_of(const LatheContext& context, uint64_t state) {
  return context.model->inputs[context.model->program.given_inputs() + state];
}

const BoundSymbol* find_symbol(const LatheContext& context, const char* name) {
  for (const BoundSymbol& at : context.symbols)
    if (at.name == name || std::strcmp(at.name, name) == 0) return &at;
  return nullptr;
}

// As in the beginning: what is not fixed has the size that inputs of this run gave it, else none.
LatheValue* make_empty(LatheContext& context, uint64_t state) {
  const LatheValueInfo& info = context.model->states[state];
  int64_t shape[abi::max_rank];
  for (int32_t axis = 0; axis < info.rank; ++axis) {
    const BoundSymbol* bound = info.symbols[axis][0] == 0 ? nullptr : find_symbol(context, info.symbols[axis]);
    shape[axis] = info.dims[axis] >= 0 ? info.dims[axis] : bound == nullptr ? 0 : bound->size;
  }
  LatheValue* value = make_owned_tensor(context.account, info.dtype, info.rank, shape);
  if (value != nullptr && value->bytes > 0) std::memset(value->tensor.data, 0, value->bytes);
  return value;
}

// The elements that count of a state, along `axis` of what there is room for, are copied between memory with that room
// and memory without.
struct Rows {
  uint64_t outer = 1;          // pieces
  uint64_t bytes, room_bytes;  // of a piece
  Rows(const LatheValueInfo& room, uint32_t axis, int64_t count) {
    uint64_t inner = room.dtype.bits / 8u * room.dtype.lanes;
    for (int32_t i = 0; i < room.rank; ++i) {
      if (static_cast<uint32_t>(i) < axis) outer *= static_cast<uint64_t>(room.dims[i]);
      if (static_cast<uint32_t>(i) > axis) inner *= static_cast<uint64_t>(room.dims[i]);
    }
    bytes = inner * static_cast<uint64_t>(count);
    room_bytes = inner * static_cast<uint64_t>(room.dims[axis]);
  }
  void gather(const void* from, void* to) const {
    for (uint64_t i = 0; i < outer && bytes > 0; ++i)
      std::memcpy(static_cast<char*>(to) + i * bytes, static_cast<const char*>(from) + i * room_bytes, bytes);
  }
  void spread(const void* from, void* to) const {
    for (uint64_t i = 0; i < outer && bytes > 0; ++i)
      std::memcpy(static_cast<char*>(to) + i * room_bytes, static_cast<const char*>(from) + i * bytes, bytes);
  }
};

// Sizes are compared with those of the states before it by `context.symbols`.
LatheValue* copy_of_given(LatheContext& context, uint64_t state, const DLTensor* given) {
  const LatheValueInfo& info = context.model->states[state];
  const StateRecord& record = context.model->program.states[state];
  int64_t count = 0;
  uint64_t bytes = 0;
  if (given == nullptr) {
    fail(LATHE_INVALID_ARGUMENT, nullptr, "the state '%s' is missing", info.name);
    return nullptr;
  }
  if (check_tensor(context, info, *given, &count, &bytes) != 0) return nullptr;
  const LatheValueInfo& port = port_of(context, state);
  if (is_in_place(record) && given->shape[record.axis] > port.dims[record.axis]) {
    fail(LATHE_INVALID_ARGUMENT, nullptr, "the state '%s' has room for %lld elements along axis %u, %lld are given",
         info.name, static_cast<long long>(port.dims[record.axis]), record.axis,
         static_cast<long long>(given->shape[record.axis]));
    return nullptr;
  }
  LatheValue* compact = make_owned_tensor(context.account, given->dtype, given->ndim, given->shape);
  if (compact == nullptr) return nullptr;
  if (count > 0) copy_strided(*given, compact->tensor.data);
  if (!is_in_place(record)) return compact;
  LatheValue* value = make_owned_tensor(context.account, port.dtype, port.rank, port.dims);
  if (value != nullptr)
    Rows(port, record.axis, given->shape[record.axis]).spread(compact->tensor.data, value->tensor.data);
  release(compact);
  return value;
}

LatheValue* copy_of_kept(LatheContext& context, uint64_t state) {
  LatheValue* kept = context.states[state];
  if (kept == nullptr) return make_empty(context, state);
  const StateRecord& record = context.model->program.states[state];
  int64_t shape[abi::max_rank];
  for (int32_t i = 0; i < kept->tensor.ndim; ++i) shape[i] = kept->dims[i];
  if (is_in_place(record)) shape[record.axis] = context.state_scalars[record.length];
  LatheValue* copy = make_owned_tensor(context.account, kept->tensor.dtype, kept->tensor.ndim, shape);
  if (copy == nullptr || copy->bytes == 0) return copy;
  if (is_in_place(record))
    Rows(port_of(context, state), record.axis, shape[record.axis]).gather(kept->tensor.data, copy->tensor.data);
  else
    std::memcpy(copy->tensor.data, kept->tensor.data, copy->bytes);
  return copy;
}

int32_t check_count(const LatheContext& context, int32_t count) {
  if (count == context.model->state_count) return 0;
  return fail(LATHE_INVALID_ARGUMENT, nullptr, "the model has %d states, %d are given or asked for",
              context.model->state_count, count);
}

// One copy of each state, in order; the caller releases those that are there, also after a failure.
template <typename Copy>
int32_t copy_each(Vector<LatheValue*>& copies, int32_t count, Copy copy_of) {
  if (!copies.reserve(static_cast<uint64_t>(count)))
    return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for the states");
  for (int32_t i = 0; i < count; ++i) {
    LatheValue* copy = copy_of(static_cast<uint64_t>(i));
    if (copy == nullptr || !copies.push(copy)) return last_error().code;
  }
  return 0;
}

// Nobody runs meanwhile.
template <typename Action>
int32_t alone(LatheContext& context, Action action) {
  if (context.is_busy.exchange(1, std::memory_order_acquire) != 0)
    return fail(LATHE_INVALID_ARGUMENT, nullptr, "the states of a context cannot be looked at or changed during a run");
  context.symbols.count = 0;
  const int32_t status = action();
  context.is_busy.store(0, std::memory_order_release);
  return status;
}

// Memory to write in stays: without elements that count it is empty.
void forget(LatheContext& context) {
  for (uint64_t i = 0; i < context.states.count; ++i) {
    if (is_in_place(context.model->program.states[i])) continue;
    release(context.states[i]);
    context.states[i] = nullptr;
  }
  for (int64_t& scalar : context.state_scalars) scalar = 0;
}

}  // namespace

int32_t set_states_for_run(LatheContext& context) {
  const abi::ProgramView& program = context.model->program;
  if (program.states.count == 0) return 0;
  const uint64_t first = program.given_inputs();
  Slot* slots = context.slots.elements + program.functions[program.main].first_register + first;
  for (uint64_t i = 0; i < program.states.count; ++i) {
    const LatheValueInfo& port = port_of(context, i);
    slots[i].is_live = true;
    if (port.kind == LATHE_SCALAR) {
      slots[i].scalar = context.state_scalars[i];
      const BoundSymbol* bound = find_symbol(context, port.name);
      if (bound != nullptr && bound->size != slots[i].scalar)
        return fail(LATHE_INVALID_ARGUMENT, nullptr, "input '%s' has size %lld for '%s', but the states hold %lld",
                    bound->input, static_cast<long long>(bound->size), port.name,
                    static_cast<long long>(slots[i].scalar));
      continue;
    }
    LatheValue*& state = context.states[i];
    if (state == nullptr)
      state = is_in_place(program.states[i]) ? make_owned_tensor(context.account, port.dtype, port.rank, port.dims)
                                             : make_empty(context, i);
    if (state == nullptr) return last_error().code;
    if (const int32_t status = check_dims(context, port, state->dims)) return status;
    if (slots[i].object == state) continue;
    release(slots[i].object);
    slots[i].object = retain(state);
  }
  return 0;
}

int32_t detach_states(LatheContext& context) {
  for (const StateRecord& state : context.model->program.states) {
    if (is_in_place(state)) continue;
    if (const int32_t status = detach_result(context, state.output)) return status;
  }
  return 0;
}

void keep_states(LatheContext& context) {
  const abi::ProgramView& program = context.model->program;
  for (uint64_t i = 0; i < program.states.count; ++i) {
    if (is_in_place(program.states[i])) continue;
    LatheValue* result = context.results[program.states[i].output];
    if (result->kind == abi::ValueKind::scalar) {
      context.state_scalars[i] = result->scalar;
      continue;
    }
    release(context.states[i]);
    context.states[i] = retain(result);
  }
}

int32_t reset_states(LatheContext& context) {
  return alone(context, [&] {
    forget(context);
    return 0;
  });
}

int32_t get_states(LatheContext& context, DLManagedTensor** states, int32_t count) {
  if (const int32_t status = check_count(context, count)) return status;
  return alone(context, [&] {
    Vector<LatheValue*> copies;
    int32_t status = copy_each(copies, count, [&](uint64_t i) { return copy_of_kept(context, i); });
    if (status == 0) status = give_away(copies.elements, states, static_cast<uint32_t>(count));
    for (LatheValue* copy : copies) release(copy);
    return status;
  });
}

int32_t set_states(LatheContext& context, const DLTensor* const* states, int32_t count) {
  if (const int32_t status = check_count(context, count)) return status;
  return alone(context, [&] {
    Vector<LatheValue*> copies;
    const int32_t status = copy_each(copies, count, [&](uint64_t i) { return copy_of_given(context, i, states[i]); });
    if (status != 0) {
      for (LatheValue* copy : copies) release(copy);
      return status;
    }
    forget(context);
    for (uint64_t i = 0; i < copies.count; ++i) {
      const StateRecord& record = context.model->program.states[i];
      release(context.states[i]);
      context.states[i] = copies[i];
      if (is_in_place(record)) context.state_scalars[record.length] = states[i]->shape[record.axis];
    }
    return 0;
  });
}

}  // namespace lathe::runtime
