#include "driver/value.h"

#include "driver/executable.h"
#include "ir/formats/dlpack_type.h"

namespace lathe::driver {

using support::Result;

namespace {

Result<Value> held(LatheValue* made) {
  if (!made) return runtime_failure("a value cannot be made");
  return Value(made);
}

}  // namespace

DLTensor view_of(const ir::TensorDataNode& tensor) {
  DLTensor view{};
  view.data = const_cast<char*>(tensor.bytes);
  view.device = {kDLCPU, 0};
  view.ndim = static_cast<int32_t>(tensor.shape.size());
  view.dtype = ir::dlpack_type(tensor.dtype);
  view.shape = const_cast<int64_t*>(tensor.shape.data());
  return view;
}

Result<Value> value_of(const ir::TensorDataNode& tensor) {
  const DLTensor view = view_of(tensor);
  return held(lathe_value_from_tensor(&view));
}

Result<Value> value_of(const std::vector<std::string>& strings, const std::vector<int64_t>& shape) {
  Value made = TRY(held(lathe_value_make_strings(static_cast<int32_t>(shape.size()), shape.data())));
  for (size_t i = 0; i < strings.size(); ++i)
    if (lathe_value_set_string(made.get(), static_cast<int64_t>(i), strings[i].data(), strings[i].size()) != LATHE_OK)
      return runtime_failure("a value cannot be made");
  return made;
}

Result<Value> collection_of(int32_t kind, const std::vector<Value>& members) {
  std::vector<LatheValue*> pointers;
  for (const Value& member : members) pointers.push_back(member.get());
  return held(lathe_value_make(kind, pointers.data(), static_cast<int64_t>(pointers.size())));
}

ir::TensorData tensor_of(const LatheValue& value) {
  const DLTensor& tensor = *lathe_value_tensor(&value);
  const std::shared_ptr<const void> owner(lathe_value_retain(const_cast<LatheValue*>(&value)), [](const void* kept) {
    lathe_value_release(static_cast<LatheValue*>(const_cast<void*>(kept)));
  });
  return ir::tensor_data(ir::dtype_of(tensor.dtype), {tensor.shape, tensor.shape + tensor.ndim},
                         static_cast<const char*>(tensor.data) + tensor.byte_offset, owner);
}

std::vector<std::string> strings_of(const LatheValue& value) {
  std::vector<std::string> strings;
  for (int64_t i = 0; i < lathe_value_count(&value); ++i) {
    uint64_t bytes = 0;
    const char* text = lathe_value_get_string(&value, i, &bytes);
    strings.emplace_back(text, bytes);
  }
  return strings;
}

std::vector<int64_t> shape_of_strings(const LatheValue& value) {
  int32_t rank = 0;
  const int64_t* shape = nullptr;
  lathe_value_strings_shape(&value, &rank, &shape);
  return {shape, shape + rank};
}

std::vector<Value> members_of(const LatheValue& value) {
  std::vector<Value> members;
  for (int64_t i = 0; i < lathe_value_count(&value); ++i) members.emplace_back(lathe_value_get(&value, i));
  return members;
}

}  // namespace lathe::driver
