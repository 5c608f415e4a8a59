// Instructions on tensors, and calls of compiled kernels.
#include <cstring>

#include "runtime/core/error.h"
#include "runtime/core/program/interpreter.h"

namespace lathe::runtime {
namespace {

using abi::StorageKind;
using abi::ValueKind;

struct Shape {
  int64_t dims[abi::max_rank];
  int32_t rank;
  int64_t count;
  uint64_t bytes;
};

bool read_shape(const Frame& frame, DLDataType dtype, uint32_t rank, const uint32_t* words, Shape* shape) {
  shape->rank = static_cast<int32_t>(rank);
  for (uint32_t i = 0; i < rank; ++i)
    if (!read_scalar(frame, words[i], &shape->dims[i])) return false;
  if (tensor_extent(dtype, shape->rank, shape->dims, &shape->count, &shape->bytes)) return true;
  failed(frame, LATHE_CHECK_FAILED, "a tensor cannot have the shape %s", shape_text(shape->dims, shape->rank).text);
  return false;
}

// The register's old object when nobody else holds it, else a new one. Its block is released in either case.
LatheValue* take_object(const Frame& frame, uint32_t reg, int32_t rank) {
  Slot& slot = frame.slots[reg];
  LatheValue* object = slot.object;
  slot.is_live = false;
  if (object != nullptr && object->kind == ValueKind::tensor && object->rank_capacity >= rank &&
      object->references.load(std::memory_order_acquire) == 1) {
    release(object->block);
    object->block = nullptr;
    return object;
  }
  LatheValue* made = make_value(ValueKind::tensor, static_cast<uint16_t>(rank < 6 ? 6 : rank));
  if (made == nullptr) return nullptr;
  release(object);
  slot.object = made;
  return made;
}

void fill(const Frame& frame, uint32_t reg, LatheValue* object, const Shape& shape, void* data, abi::Backend backend,
          Block* block) {
  object->backend = backend;
  object->is_constant = false;
  object->filled_by = nullptr;
  object->count = shape.count;
  object->bytes = shape.bytes;
  object->block = block;
  object->tensor.data = data;
  object->tensor.device = {device_of(backend).type, 0};
  object->tensor.ndim = shape.rank;
  object->tensor.dtype = frame.reg(reg).dtype;
  for (int32_t i = 0; i < shape.rank; ++i) object->dims[i] = shape.dims[i];
  frame.slots[reg].is_live = true;
}

// The fast path of static shapes: a register that this very instruction has filled in an earlier run, and nothing
// since, has its value already.
bool is_filled_already(const Frame& frame, uint32_t reg) {
  Slot& slot = frame.slots[reg];
  if (slot.object == nullptr || slot.object->filled_by != frame.at ||
      slot.object->references.load(std::memory_order_acquire) != 1)
    return false;
  slot.is_live = true;
  return true;
}

// A planned tensor of fixed dims is the same in every run.
bool is_always_the_same(const Frame& frame, const uint32_t* words) {
  if (words[1] == abi::absent || frame.program.storages[words[1]].kind != StorageKind::planned) return false;
  for (uint32_t i = 0; i < words[2]; ++i)
    if ((words[3 + i] & abi::immediate_bit) == 0) return false;
  return true;
}

struct Memory {
  void* data;
  Block* block;  // a reference for the tensor, or null
};

int32_t output_memory(const Frame& frame, uint32_t reg, uint32_t output, const Shape& shape, Memory* memory) {
  LatheContext& context = frame.context;
  const OutputTarget& target = context.outputs[output];
  if (target.is_direct) {
    const DLTensor& caller = *target.caller;
    bool is_same =
        caller.ndim == shape.rank && std::memcmp(&caller.dtype, &frame.reg(reg).dtype, sizeof(DLDataType)) == 0;
    for (int32_t i = 0; is_same && i < shape.rank; ++i) is_same = caller.shape[i] == shape.dims[i];
    if (!is_same)
      return failed(frame, LATHE_INVALID_ARGUMENT, "output '%s' is given as %s%s, but the result is %s%s",
                    context.model->outputs[output].name, dtype_text(caller.dtype).text,
                    shape_text(caller.shape, caller.ndim).text, dtype_text(frame.reg(reg).dtype).text,
                    shape_text(shape.dims, shape.rank).text);
    *memory = {shape.count == 0 ? empty_memory : static_cast<char*>(caller.data) + caller.byte_offset, nullptr};
    return 0;
  }
  Block* block = make_block(context.account, shape.bytes, 64);
  if (block == nullptr) return last_error().code;
  *memory = {block->memory, block};
  return 0;
}

int32_t storage_memory(const Frame& frame, uint32_t reg, uint32_t index, const Shape& shape, Memory* memory) {
  const abi::StorageRecord& storage = frame.program.storages[index];
  uint64_t capacity = 0;
  switch (storage.kind) {
    case StorageKind::output:
      return output_memory(frame, reg, storage.index, shape, memory);
    case StorageKind::planned:
      capacity = storage.bytes;
      *memory = {static_cast<char*>(frame.context.arenas[storage.index]) + storage.offset, nullptr};
      break;
    case StorageKind::dynamic: {
      Block* block = frame.context.dynamic_storages[index];
      if (block == nullptr)
        return failed(frame, LATHE_INVALID_ARTIFACT, "storage %u is used before it has a size", index);
      capacity = block->bytes;
      // The tensor keeps the block, so that growing the storage leaves no tensor without memory.
      *memory = {block->memory, block};
      break;
    }
  }
  if (shape.bytes > capacity)
    return failed(frame, LATHE_CHECK_FAILED, "a tensor of shape %s needs %llu bytes, but its storage has %llu",
                  shape_text(shape.dims, shape.rank).text, static_cast<unsigned long long>(shape.bytes),
                  static_cast<unsigned long long>(capacity));
  retain(memory->block);
  return 0;
}

bool same_shape(const LatheValue& a, const LatheValue& b) {
  if (a.tensor.ndim != b.tensor.ndim) return false;
  for (int32_t i = 0; i < a.tensor.ndim; ++i)
    if (a.dims[i] != b.dims[i]) return false;
  return true;
}

// An integer or bool element of the host; null where the tensor has none such.
char* scalar_address(const Frame& frame, LatheValue* tensor, uint32_t position_word) {
  int64_t position = 0;
  if (!read_scalar(frame, position_word, &position)) return nullptr;
  const DLDataType dtype = tensor->tensor.dtype;
  if (!abi::holds_scalars(dtype) || tensor->backend != abi::Backend::cpu) {
    failed(frame, LATHE_CHECK_FAILED, "a tensor of %s on %s has no elements to compute shapes with",
           dtype_text(dtype).text, device_of(tensor->backend).name);
    return nullptr;
  }
  if (position < 0 || position >= tensor->count) {
    failed(frame, LATHE_CHECK_FAILED, "position %lld lies outside of a tensor of shape %s",
           static_cast<long long>(position), shape_text(tensor->dims, tensor->tensor.ndim).text);
    return nullptr;
  }
  return static_cast<char*>(tensor->tensor.data) + position * (dtype.bits / 8);
}

}  // namespace

int32_t lend_tensor(const Frame& frame, uint32_t reg, void* data, const int64_t* dims, int32_t rank, bool is_constant) {
  Shape shape;
  shape.rank = rank;
  for (int32_t i = 0; i < rank; ++i) shape.dims[i] = dims[i];
  tensor_extent(frame.reg(reg).dtype, rank, dims, &shape.count, &shape.bytes);
  LatheValue* object = take_object(frame, reg, rank);
  if (object == nullptr) return last_error().code;
  fill(frame, reg, object, shape, shape.count == 0 ? empty_memory : data, abi::Backend::cpu, nullptr);
  object->is_constant = is_constant;
  return 0;
}

int32_t alloc_tensor(const Frame& frame, const uint32_t* words) {
  if (is_filled_already(frame, words[0])) return 0;
  Shape shape;
  if (!read_shape(frame, frame.reg(words[0]).dtype, words[2], words + 3, &shape)) return last_error().code;
  Memory memory = {};
  abi::Backend backend = abi::Backend::cpu;
  if (words[1] == abi::absent) {
    memory.block = make_block(frame.context.account, shape.bytes, 64);
    if (memory.block == nullptr) return last_error().code;
    memory.data = memory.block->memory;
  } else {
    backend = frame.program.storages[words[1]].device;
    if (const int32_t status = storage_memory(frame, words[0], words[1], shape, &memory)) return status;
  }
  LatheValue* object = take_object(frame, words[0], shape.rank);
  if (object == nullptr) {
    release(memory.block);
    return last_error().code;
  }
  // Kernels write elements: what the last byte has beyond them is 0, whatever was in the memory.
  const DLDataType dtype = frame.reg(words[0]).dtype;
  if (shape.bytes > 0 && static_cast<unsigned>(dtype.bits) * dtype.lanes % 8 != 0 && backend == abi::Backend::cpu)
    static_cast<char*>(memory.data)[shape.bytes - 1] = 0;
  fill(frame, words[0], object, shape, memory.data, backend, memory.block);
  if (is_always_the_same(frame, words)) object->filled_by = frame.at;
  return 0;
}

int32_t reserve_storage(const Frame& frame, const uint32_t* words) {
  int64_t bytes = 0;
  if (!read_scalar(frame, words[1], &bytes)) return last_error().code;
  const abi::StorageRecord& storage = frame.program.storages[words[0]];
  if (bytes < 0 || storage.device != abi::Backend::cpu)
    return failed(frame, LATHE_CHECK_FAILED, "a storage of dynamic size on %s cannot have %lld bytes",
                  device_of(storage.device).name, static_cast<long long>(bytes));
  const Block* had = frame.context.dynamic_storages[words[0]];
  if (had != nullptr && had->bytes >= static_cast<uint64_t>(bytes)) return 0;
  set_dynamic_storage(frame.context, words[0], nullptr);
  Block* block = make_block(frame.context.account, static_cast<uint64_t>(bytes), storage.alignment);
  if (block == nullptr) return last_error().code;
  block->is_storage = true;
  set_dynamic_storage(frame.context, words[0], block);
  return 0;
}

int32_t load_constant(const Frame& frame, const uint32_t* words) {
  if (is_filled_already(frame, words[0])) return 0;
  const LatheModel& model = *frame.context.model;
  const abi::ConstantRecord& constant = frame.program.constants[words[1]];
  if (constant.kind == ValueKind::strings) return write_object(frame, words[0], retain(model.strings[words[1]]));
  Shape shape;
  shape.rank = constant.rank;
  for (uint32_t i = 0; i < constant.rank; ++i)
    shape.dims[i] = frame.program.dims[constant.first_dim + uint64_t{i}].size;
  tensor_extent(constant.dtype, shape.rank, shape.dims, &shape.count, &shape.bytes);
  const char* section = constant.section == abi::ConstantSection::weights ? model.weights : frame.program.data.records;
  LatheValue* object = take_object(frame, words[0], shape.rank);
  if (object == nullptr) return last_error().code;
  // Kernels do not write to their inputs; a program that lets them write here faults on read-only memory.
  void* data = shape.count == 0 ? empty_memory : const_cast<char*>(section) + constant.offset;
  fill(frame, words[0], object, shape, data, abi::Backend::cpu, nullptr);
  object->tensor.dtype = constant.dtype;
  object->is_constant = true;
  object->filled_by = frame.at;
  return 0;
}

int32_t view(const Frame& frame, const uint32_t* words) {
  LatheValue* source = read_object(frame, words[1]);
  int64_t first = 0;
  Shape shape;
  const DLDataType dtype = frame.reg(words[0]).dtype;
  if (source == nullptr || !read_scalar(frame, words[2], &first) ||
      !read_shape(frame, dtype, words[3], words + 4, &shape))
    return last_error().code;
  const uint64_t bits = static_cast<uint64_t>(dtype.bits) * dtype.lanes;
  const bool is_inside = first >= 0 && static_cast<uint64_t>(first) <= (uint64_t{1} << 60) / bits &&
                         static_cast<uint64_t>(first) * bits % 8 == 0 &&
                         static_cast<uint64_t>(first) * bits / 8 <= source->bytes &&
                         shape.bytes <= source->bytes - static_cast<uint64_t>(first) * bits / 8;
  if (!is_inside)
    return failed(frame, LATHE_CHECK_FAILED,
                  "a view of shape %s from element %lld on does not fit into a tensor of shape %s",
                  shape_text(shape.dims, shape.rank).text, static_cast<long long>(first),
                  shape_text(source->dims, source->tensor.ndim).text);
  void* data = static_cast<char*>(source->tensor.data) + static_cast<uint64_t>(first) * bits / 8;
  Block* block = source->block;
  const abi::Backend backend = source->backend;
  const bool is_constant = source->is_constant;
  retain(block);  // before the target's object, which may be the source, lets go of it
  LatheValue* object = take_object(frame, words[0], shape.rank);
  if (object == nullptr) {
    release(block);
    return last_error().code;
  }
  fill(frame, words[0], object, shape, shape.count == 0 ? empty_memory : data, backend, block);
  object->is_constant = is_constant;
  return 0;
}

int32_t copy(const Frame& frame, const uint32_t* words) {
  LatheValue* to = read_object(frame, words[0]);
  LatheValue* from = to == nullptr ? nullptr : read_object(frame, words[1]);
  if (from == nullptr) return last_error().code;
  if (!same_shape(*to, *from) || to->bytes != from->bytes || to->is_constant)
    return failed(frame, LATHE_CHECK_FAILED, "a tensor of %s%s cannot be copied into one of %s%s",
                  dtype_text(from->tensor.dtype).text, shape_text(from->dims, from->tensor.ndim).text,
                  dtype_text(to->tensor.dtype).text, shape_text(to->dims, to->tensor.ndim).text);
  // The device that is not the host's carries it out; a copy to the host is waited for before the host reads.
  const abi::Backend backend = to->backend != abi::Backend::cpu ? to->backend : from->backend;
  Queue* queue = queue_of(frame.context, backend);
  if (queue == nullptr) return last_error().code;
  int32_t status = queue->device->copy(queue, to->tensor.data, from->tensor.data, from->bytes);
  if (status == 0 && to->backend == abi::Backend::cpu && backend != abi::Backend::cpu)
    status = queue->device->wait(queue);
  return status == 0 ? 0
                     : failed(frame, status, "a copy of %llu bytes failed on %s",
                              static_cast<unsigned long long>(from->bytes), queue->device->name);
}

int32_t match_shape(const Frame& frame, const uint32_t* words) {
  const LatheValue* tensor = read_object(frame, words[0]);
  if (tensor == nullptr) return last_error().code;
  const auto rank = static_cast<int32_t>(words[2]);
  bool is_match = tensor->tensor.ndim == rank;
  int64_t expected[abi::max_rank];
  for (int32_t i = 0; i < rank; ++i) {
    expected[i] = -1;
    if (words[3 + i] == abi::absent) continue;
    if (!read_scalar(frame, words[3 + i], &expected[i])) return last_error().code;
    is_match = is_match && tensor->dims[i] == expected[i];
  }
  if (is_match) return 0;
  return failed(frame, LATHE_CHECK_FAILED, "%s: the shape is %s where %s was expected", frame.program.text(words[1]),
                shape_text(tensor->dims, tensor->tensor.ndim).text, shape_text(expected, rank).text);
}

int32_t call_kernel(const Frame& frame, const uint32_t* words) {
  LatheContext& context = frame.context;
  const abi::KernelRecord& kernel = frame.program.kernels[words[0]];
  const abi::Backend backend = kernel.device;
  for (uint32_t i = 0; i < kernel.buffer_count; ++i) {
    const LatheValue* tensor = read_object(frame, words[2 + i]);
    if (tensor == nullptr) return last_error().code;
    if (tensor->backend != backend)
      return failed(frame, LATHE_INVALID_ARTIFACT, "kernel '%s' runs on %s, but its argument %u lies on %s",
                    frame.program.text(kernel.name), device_of(backend).name, i, device_of(tensor->backend).name);
    context.buffers[i] = tensor->tensor.data;
  }
  const uint32_t* scalars = words + 3 + kernel.buffer_count;
  for (uint32_t i = 0; i < kernel.scalar_count; ++i)
    if (!read_scalar(frame, scalars[i], &context.scalars[i])) return last_error().code;
  Queue* queue = queue_of(context, backend);
  if (queue == nullptr) return last_error().code;
  const int32_t status = queue->device->launch(
      queue, {context.model->artifact->kernels[words[0]], &services, &context.call, context.buffers.elements,
              kernel.buffer_count, context.scalars.elements, kernel.scalar_count, frame.program.text(kernel.name)});
  const bool has_raised = context.call.error_code.load(std::memory_order_acquire) != 0;
  if (status == 0 && !has_raised) [[likely]]
    return 0;
  return context.call.report(status, frame.node(), frame.program.text(kernel.name));
}

int32_t read_dim(const Frame& frame, const uint32_t* words) {
  const LatheValue* tensor = read_object(frame, words[1]);
  int64_t axis = 0;
  if (tensor == nullptr || !read_scalar(frame, words[2], &axis)) return last_error().code;
  if (axis < 0 || axis >= tensor->tensor.ndim)
    return failed(frame, LATHE_CHECK_FAILED, "a tensor of shape %s has no axis %lld",
                  shape_text(tensor->dims, tensor->tensor.ndim).text, static_cast<long long>(axis));
  write_scalar(frame, words[0], tensor->dims[axis]);
  return 0;
}

int32_t read_rank(const Frame& frame, const uint32_t* words) {
  const LatheValue* tensor = read_object(frame, words[1]);
  if (tensor == nullptr) return last_error().code;
  write_scalar(frame, words[0], tensor->tensor.ndim);
  return 0;
}

int32_t load_scalar(const Frame& frame, const uint32_t* words) {
  LatheValue* tensor = read_object(frame, words[1]);
  const char* at = tensor == nullptr ? nullptr : scalar_address(frame, tensor, words[2]);
  if (at == nullptr) return last_error().code;
  const unsigned bits = tensor->tensor.dtype.bits;
  uint64_t raw = 0;
  std::memcpy(&raw, at, bits / 8);
  // Signed ones are extended from their top bit.
  const bool is_negative = tensor->tensor.dtype.code == kDLInt && bits < 64 && (raw >> (bits - 1) & 1) != 0;
  if (is_negative) raw |= ~uint64_t{0} << bits;
  write_scalar(frame, words[0], static_cast<int64_t>(raw));
  return 0;
}

int32_t store_scalar(const Frame& frame, const uint32_t* words) {
  LatheValue* tensor = read_object(frame, words[0]);
  char* at = tensor == nullptr ? nullptr : scalar_address(frame, tensor, words[1]);
  int64_t scalar = 0;
  if (at == nullptr || !read_scalar(frame, words[2], &scalar)) return last_error().code;
  if (tensor->is_constant) return failed(frame, LATHE_INVALID_ARTIFACT, "the program writes to a constant");
  if (tensor->tensor.dtype.code == kDLBool) scalar = scalar != 0;
  std::memcpy(at, &scalar, tensor->tensor.dtype.bits / 8u);
  return 0;
}

}  // namespace lathe::runtime
