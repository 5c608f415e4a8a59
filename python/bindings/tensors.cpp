#include "tensors.h"

#include <bit>

#include "ir/formats/dlpack_type.h"
#include "ir/tensor_data.h"
#include "support/std.h"

namespace lathe::python {
namespace {

// Memory that an array looks at: the runtime's tensor, or a constant. Speaks the buffer protocol, so that NumPy can
// make an array of any dtype over it.
struct Memory {
  void* data = nullptr;
  Py_ssize_t bytes = 0;
  DLManagedTensor* tensor = nullptr;
  ir::TensorData constant;

  ~Memory() {
    if (tensor && tensor->deleter) tensor->deleter(tensor);
  }
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  static char nothing;
  const Memory* memory = nb::inst_ptr<Memory>(self);
  void* data = memory->data ? memory->data : &nothing;
  return PyBuffer_FillInfo(view, self, data, memory->bytes, memory->constant ? 1 : 0, flags);
}

PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

// NumPy's dtype of that name; ml_dtypes has the narrow floats.
nb::object numpy_dtype(DLDataType type) {
  static auto* known = new std::unordered_map<uint32_t, nb::object>;  // outlives the interpreter
  nb::object& dtype = (*known)[std::bit_cast<uint32_t>(type)];
  if (!dtype.is_valid()) {
    const std::string name = dtype_name(type);
    const nb::object numpy_type = nb::module_::import_("numpy").attr("dtype");
    const bool narrow = type.bits < 8 || name == "bfloat16" || name.starts_with("float8");
    if (narrow)
      dtype = numpy_type(nb::module_::import_("ml_dtypes").attr(name.c_str()));
    else
      dtype = numpy_type(name == "bool" ? "bool" : name.c_str());
  }
  return dtype;
}

bool is_packed(DLDataType type) { return type.bits < 8 && type.lanes == 1; }

int64_t elements_of(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

// `count` elements below a byte, from one a byte to packed ones, and back.
std::vector<uint8_t> packed(const uint8_t* bytes, int64_t count, DLDataType type) {
  std::vector<uint8_t> result(static_cast<size_t>((count * type.bits + 7) / 8));
  ir::pack_elements(bytes, count, type.bits, result.data());
  return result;
}

void unpack(const uint8_t* from, int64_t count, DLDataType type, uint8_t* bytes) {
  ir::unpack_elements(from, count, type.bits, type.code == kDLInt, bytes);
}

uint8_t* data_of(const nb::object& array) {
  return reinterpret_cast<uint8_t*>(nb::cast<uintptr_t>(array.attr("__array_interface__")["data"][0]));
}

nb::object array_over(std::unique_ptr<Memory> memory, DLDataType type, std::span<const int64_t> shape) {
  static auto* ndarray = new nb::object(nb::module_::import_("numpy").attr("ndarray"));
  nb::object dims = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (size_t d = 0; d < shape.size(); ++d)
    PyTuple_SET_ITEM(dims.ptr(), static_cast<Py_ssize_t>(d), PyLong_FromLongLong(shape[d]));
  if (is_packed(type)) {
    nb::object array = (*ndarray)(dims, numpy_dtype(type));
    unpack(static_cast<const uint8_t*>(memory->data), elements_of(shape), type, data_of(array));
    return array;
  }
  const nb::object owner = nb::cast(memory.release(), nb::rv_policy::take_ownership);
  return (*ndarray)(dims, numpy_dtype(type), owner);
}

// The element type of a buffer's format, in the machine's byte order.
std::optional<DLDataType> type_of_format(const char* format, Py_ssize_t item) {
  if (!format) return DLDataType{kDLUInt, 8, 1};
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (!*format || format[1]) return std::nullopt;
  const auto bits = static_cast<uint8_t>(item * 8);
  switch (*format) {
    case '?':
      return DLDataType{kDLBool, 8, 1};
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return DLDataType{kDLInt, bits, 1};
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return DLDataType{kDLUInt, bits, 1};
    case 'e':
    case 'f':
    case 'd':
      return DLDataType{kDLFloat, bits, 1};
    default:
      return std::nullopt;
  }
}

bool is_cpu(nb::handle object) {
  if (!nb::hasattr(object, "__dlpack_device__")) return true;
  const auto kind = nb::cast<int>(nb::object(object.attr("__dlpack_device__")()[0]));
  return kind == kDLCPU || kind == kDLCUDAHost || kind == kDLROCMHost;
}

}  // namespace

std::string dtype_name(DLDataType type) { return ir::dtype_of(type).str(); }

void InputTensor::own_dims(size_t rank) {
  tensor_.device = {kDLCPU, 0};
  tensor_.ndim = static_cast<int32_t>(rank);
  tensor_.shape = dims_.data();
  tensor_.strides = dims_.data() + rank;
}

bool InputTensor::from_buffer(PyObject* object) {
  if (!PyObject_CheckBuffer(object)) return false;
  if (PyObject_GetBuffer(object, &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return false;
  }
  has_buffer_ = true;
  const auto type = type_of_format(buffer_.format, buffer_.itemsize);
  bool whole_steps = type.has_value();
  for (int d = 0; whole_steps && d < buffer_.ndim; ++d) whole_steps = buffer_.strides[d] % buffer_.itemsize == 0;
  if (!whole_steps) {
    PyBuffer_Release(&buffer_);
    has_buffer_ = false;
    return false;
  }
  dims_.assign(buffer_.shape, buffer_.shape + buffer_.ndim);
  for (int d = 0; d < buffer_.ndim; ++d) dims_.push_back(buffer_.strides[d] / buffer_.itemsize);
  own_dims(static_cast<size_t>(buffer_.ndim));
  tensor_.dtype = *type;
  tensor_.data = buffer_.buf;
  read_only_ = buffer_.readonly != 0;
  return true;
}

bool InputTensor::from_dlpack(nb::handle object) {
  if (!nb::hasattr(object, "__dlpack__") || !is_cpu(object)) return false;
  nb::object capsule;
  try {
    capsule =
        object.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION));
  } catch (nb::python_error& e) {
    if (e.matches(PyExc_BufferError)) return false;  // a dtype that DLPack's producer has no code for
    if (!e.matches(PyExc_TypeError)) throw;
    capsule = object.attr("__dlpack__")();  // from before versions
  }
  const DLTensor* given = nullptr;
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    const auto* held =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    given = &held->dl_tensor;
    copied_ = (held->flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0;
    read_only_ = (held->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    given = &static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"))->dl_tensor;
  }
  if (!given) return false;
  tensor_ = *given;  // borrowed: the capsule, not consumed, frees the tensor with itself
  keeps_ = capsule;
  return true;
}

// What speaks neither protocol for its dtype: NumPy arrays of ml_dtypes, of the other byte order, with odd strides.
bool InputTensor::from_array_interface(nb::handle object, const char* name) {
  if (!nb::hasattr(object, "__array_interface__")) return false;
  const nb::object numpy = nb::module_::import_("numpy");
  nb::object array = numpy.attr("ascontiguousarray")(object);
  array = array.attr("astype")(array.attr("dtype").attr("newbyteorder")("="), nb::arg("copy") = false);
  if (nb::cast<size_t>(array.attr("ndim")) != nb::cast<size_t>(numpy.attr("ndim")(object)))
    array = array.attr("reshape")(object.attr("shape"));
  const auto dtype = nb::cast<std::string>(array.attr("dtype").attr("name"));
  const auto type = ir::DType::parse(dtype);
  if (!type)
    throw nb::type_error(fmt::format("input '{}' is an array of {}, which no model takes", name, dtype).c_str());
  for (const nb::handle extent : nb::cast<nb::tuple>(array.attr("shape"))) dims_.push_back(nb::cast<int64_t>(extent));
  own_dims(dims_.size());
  tensor_.strides = nullptr;
  tensor_.dtype = ir::dlpack_type(*type);
  tensor_.data = data_of(array);
  keeps_ = array;
  const bool is_same = data_of(array) == data_of(nb::borrow(object));
  copied_ = !is_same || is_packed(tensor_.dtype);
  read_only_ = !nb::cast<bool>(array.attr("flags").attr("writeable"));
  if (is_packed(tensor_.dtype)) {
    // Where NumPy made a copy nobody looks at what is written.
    if (is_same && !read_only_) unpacked_ = data_of(array);
    packed_ = packed(data_of(array), elements_of({dims_.data(), static_cast<size_t>(tensor_.ndim)}), tensor_.dtype);
    tensor_.data = packed_.data();
  }
  return true;
}

InputTensor::InputTensor(nb::handle object, const char* name) {
  if (from_buffer(object.ptr()) || from_dlpack(object) || from_array_interface(object, name)) return;
  const auto type = nb::cast<std::string>(nb::str(object.type().attr("__name__")));
  const bool elsewhere = nb::hasattr(object, "__dlpack__");
  throw nb::type_error(
      (elsewhere ? fmt::format("input '{}' does not lie in this machine's memory; move it there first", name)
                 : fmt::format("input '{}' is a {}, not a NumPy array or anything else with DLPack", name, type))
          .c_str());
}

void InputTensor::unpack_written() {
  if (!unpacked_) return;
  const int64_t count = elements_of({dims_.data(), static_cast<size_t>(tensor_.ndim)});
  if (packed(unpacked_, count, tensor_.dtype) != packed_) unpack(packed_.data(), count, tensor_.dtype, unpacked_);
}

InputTensor::~InputTensor() {
  if (has_buffer_) PyBuffer_Release(&buffer_);
}

LentTensor::LentTensor(const DLTensor& tensor) : tensor_(tensor) {
  const std::span<const int64_t> shape(tensor.shape, static_cast<size_t>(tensor.ndim));
  auto memory = std::make_unique<Memory>();
  memory->data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  const int64_t item = std::max(1, tensor.dtype.bits / 8) * tensor.dtype.lanes;
  int64_t last = 0;
  bool empty = false;
  nb::list steps;
  for (size_t d = 0; d < shape.size(); ++d) {
    empty |= shape[d] == 0;
    if (!tensor.strides) continue;
    last += (shape[d] - 1) * tensor.strides[d];
    steps.append(tensor.strides[d] * item);
  }
  if (!tensor.strides) last = elements_of(shape) - 1;
  memory->bytes = empty ? 0 : static_cast<Py_ssize_t>((last + 1) * item);
  if (is_packed(tensor.dtype) && tensor.strides)
    throw nb::type_error("a tensor of elements below a byte is lent with rows without gaps only");
  array_ = array_over(std::move(memory), tensor.dtype, shape);
  if (tensor.strides) {
    nb::object over = array_.attr("base");
    array_ = nb::module_::import_("numpy").attr("ndarray")(array_.attr("shape"), array_.attr("dtype"), over, 0,
                                                           nb::tuple(steps));
  }
}

void LentTensor::pack_written() {
  if (!is_packed(tensor_.dtype)) return;
  const int64_t count = elements_of({tensor_.shape, static_cast<size_t>(tensor_.ndim)});
  const std::vector<uint8_t> bytes = packed(data_of(array_), count, tensor_.dtype);
  std::memcpy(static_cast<char*>(tensor_.data) + tensor_.byte_offset, bytes.data(), bytes.size());
}

nb::object to_numpy(DLManagedTensor* tensor) {
  const DLTensor& t = tensor->dl_tensor;
  auto memory = std::make_unique<Memory>();
  memory->tensor = tensor;
  memory->data = static_cast<char*>(t.data) + t.byte_offset;
  int64_t bits = t.dtype.bits;
  for (int32_t d = 0; d < t.ndim; ++d) bits *= t.shape[d];
  memory->bytes = (bits + 7) / 8;
  return array_over(std::move(memory), t.dtype, {t.shape, static_cast<size_t>(t.ndim)});
}

nb::object to_numpy(const ir::TensorData& tensor) {
  auto memory = std::make_unique<Memory>();
  memory->constant = tensor;
  memory->data = const_cast<char*>(tensor->bytes);
  memory->bytes = tensor->byte_size();
  return array_over(std::move(memory), ir::dlpack_type(tensor->dtype), tensor->shape);
}

ir::TensorData to_data(const DLTensor& t) {
  const std::vector<int64_t> shape(t.shape, t.shape + t.ndim);
  if (is_packed(t.dtype)) {
    if (t.strides) throw nb::type_error("packed tensors with strides are not taken");
    const ir::DType dtype = ir::dtype_of(t.dtype);
    const char* first = static_cast<const char*>(t.data) + t.byte_offset;
    return ir::tensor_data(dtype, shape,
                           std::string(first, static_cast<size_t>(dtype.storage_bytes(elements_of(shape)))));
  }
  const auto item = static_cast<size_t>(t.dtype.bits / 8);
  const int64_t count = elements_of(shape);
  std::string bytes(static_cast<size_t>(count) * item, '\0');
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t to = 0; to < count; ++to) {
    int64_t from = 0, compact = 1;
    for (size_t d = shape.size(); d-- > 0; compact *= shape[d]) from += index[d] * (t.strides ? t.strides[d] : compact);
    const char* source = static_cast<const char*>(t.data) + t.byte_offset + from * static_cast<int64_t>(item);
    std::memcpy(bytes.data() + static_cast<size_t>(to) * item, source, item);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return ir::tensor_data(ir::dtype_of(t.dtype), shape, std::move(bytes));
}

void bind_memory(nb::module_& m) {
  nb::class_<Memory>(m, "Memory", nb::type_slots(memory_slots), "The memory of a result; arrays look at it.");
}

}  // namespace lathe::python
