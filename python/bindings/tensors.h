// Tensors across the border: NumPy arrays and anything with DLPack come in, NumPy arrays go out, neither by a copy but
// where NumPy keeps in a byte what is packed here.
#pragma once

#include "abi/dlpack.h"
#include "bindings.h"
#include "ir/tensor_data.h"

namespace lathe::python {

// One input: a DLTensor over someone else's memory, and what keeps that memory alive. Destroyed under the lock.
class InputTensor {
 public:
  // Raises TypeError for what has no tensor in it.
  InputTensor(nb::handle object, const char* name);
  InputTensor(const InputTensor&) = delete;
  InputTensor& operator=(const InputTensor&) = delete;
  ~InputTensor();

  const DLTensor& tensor() const { return tensor_; }
  // The tensor is the object's own memory, not a copy; and it may be written to.
  bool is_in_place() const { return !copied_; }
  bool is_writable() const { return !read_only_; }
  // Elements below a byte take one each in NumPy: the tensor is a packed copy. What was written to it goes back.
  void unpack_written();

 private:
  bool from_buffer(PyObject* object);
  bool from_dlpack(nb::handle object);
  bool from_array_interface(nb::handle object, const char* name);
  void own_dims(size_t rank);

  DLTensor tensor_{};
  std::vector<int64_t> dims_;  // shape, then strides
  Py_buffer buffer_{};
  bool has_buffer_ = false, copied_ = false, read_only_ = false;
  nb::object keeps_;
  std::vector<uint8_t> packed_;
  uint8_t* unpacked_ = nullptr;  // a byte an element
};

// A tensor that a program lends to a function of Python's: an array over its memory, or where elements lie below a byte
// a copy of which what was written goes back.
class LentTensor {
 public:
  explicit LentTensor(const DLTensor& tensor);
  const nb::object& array() const { return array_; }
  void pack_written();

 private:
  const DLTensor& tensor_;
  nb::object array_;
};

// The array over the tensor's memory, which is freed with the array.
nb::object to_numpy(DLManagedTensor* tensor);
nb::object to_numpy(const ir::TensorData& tensor);
// A compact tensor over the input's memory, or over a copy where it has gaps; valid as long as the input.
ir::TensorData to_data(const DLTensor& tensor);

// "float32".
std::string dtype_name(DLDataType type);

void bind_memory(nb::module_& m);

}  // namespace lathe::python
