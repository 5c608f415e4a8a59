// Tensors of model files: dims, element type and payload checked against each other in 64 bits before anything is made.
#include <charconv>

#include "interchange/onnx/codes.h"
#include "interchange/onnx/read/model.h"
#include "interchange/onnx/read/names.h"
#include "interchange/onnx/read/wire.h"
#include "onnx_schema.pb.h"

namespace lathe::onnx {

using ir::DType;
using support::Diagnostic;
using support::Place;
using support::Result;

namespace {

struct ElementType {
  std::string_view name;
  DType dtype;  // void: not compiled
};
constexpr DType narrow_float(ir::TypeCode code, uint8_t bits) { return {code, bits, 1}; }
// By number in TensorProto.DataType.
constexpr ElementType element_types[] = {
    {"UNDEFINED", {}},
    {"FLOAT", DType::float_(32)},
    {"UINT8", DType::uint(8)},
    {"INT8", DType::int_(8)},
    {"UINT16", DType::uint(16)},
    {"INT16", DType::int_(16)},
    {"INT32", DType::int_(32)},
    {"INT64", DType::int_(64)},
    {"STRING", DType::handle()},  // relax/strings.h
    {"BOOL", DType::boolean()},
    {"FLOAT16", DType::float_(16)},
    {"DOUBLE", DType::float_(64)},
    {"UINT32", DType::uint(32)},
    {"UINT64", DType::uint(64)},
    {"COMPLEX64", {}},
    {"COMPLEX128", {}},
    {"BFLOAT16", DType::bfloat16()},
    {"FLOAT8E4M3FN", narrow_float(ir::TypeCode::float8_e4m3fn, 8)},
    {"FLOAT8E4M3FNUZ", narrow_float(ir::TypeCode::float8_e4m3fnuz, 8)},
    {"FLOAT8E5M2", narrow_float(ir::TypeCode::float8_e5m2, 8)},
    {"FLOAT8E5M2FNUZ", narrow_float(ir::TypeCode::float8_e5m2fnuz, 8)},
    {"UINT4", DType::uint(4)},
    {"INT4", DType::int_(4)},
    {"FLOAT4E2M1", narrow_float(ir::TypeCode::float4_e2m1fn, 4)},
    {"FLOAT8E8M0", narrow_float(ir::TypeCode::float8_e8m0fnu, 8)},
    {"UINT2", DType::uint(2)},
    {"INT2", DType::int_(2)},
};

std::string text_of_dims(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size() && i < 12; ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + (dims.size() > 12 ? ", ...]" : "]");
}

class TensorReader {
 public:
  TensorReader(const Model& model, const schema::TensorProto& tensor, const std::string& what, const Place& place)
      : model_(model), tensor_(tensor), what_(what), place_(place), dims_(tensor.dims().begin(), tensor.dims().end()) {}

  Result<ir::TensorData> run() {
    TRY(check_dims());
    dtype_ = TRY(element_type(tensor_.data_type(), what_, place_));
    if (dtype_.is_handle()) return wrong("holds strings, which are not taken here", codes::unsupported);
    const std::optional<int64_t> bytes = checked_bytes(dims_, dtype_);
    if (!bytes) return wrong("has dimensions " + text_of_dims(dims_) + ", more than any memory holds");
    bytes_ = *bytes;
    if (tensor_.has_segment()) return wrong("is stored in segments, which Lathe does not read");
    if (tensor_.data_location() == schema::TensorProto::EXTERNAL) return external();
    if (tensor_.has_raw_data()) return raw();
    return typed();
  }

  // The same of one that holds strings.
  Result<Strings> strings() {
    TRY(check_dims());
    if (tensor_.data_location() == schema::TensorProto::EXTERNAL || tensor_.has_raw_data() || tensor_.has_segment())
      return wrong("holds strings, which lie in string_data alone");
    int64_t count = 1;
    bool fits = true;
    for (const int64_t dim : dims_) fits = fits && !__builtin_mul_overflow(count, dim, &count);
    if (!fits || count != tensor_.string_data_size())
      return wrong("has " + std::to_string(tensor_.string_data_size()) + " strings for the dimensions " +
                   text_of_dims(dims_));
    return Strings{dims_, {tensor_.string_data().begin(), tensor_.string_data().end()}};
  }

 private:
  support::Status check_dims() const {
    for (const int64_t dim : dims_)
      if (dim < 0) return wrong("has the negative dimension " + std::to_string(dim) + " in " + text_of_dims(dims_));
    if (dims_.size() > 64) return wrong("has " + std::to_string(dims_.size()) + " dimensions; 64 is the most");
    return support::success();
  }
  Diagnostic wrong(const std::string& why, support::Code code = codes::wrong_tensor) const {
    return {.code = code, .place = place_, .message = what_ + " " + why};
  }
  std::string wanted() const { return dtype_.str() + text_of_dims(dims_) + " takes " + std::to_string(bytes_); }

  // The tensor over `view`, shared where its elements lie aligned; else copied once.
  Result<ir::TensorData> over(std::string_view view, std::shared_ptr<const void> owner) const {
    const bool aligned = reinterpret_cast<uintptr_t>(view.data()) % static_cast<size_t>(dtype_.element_bytes()) == 0;
    const bool plain =
        !dtype_.is_bool() || std::all_of(view.begin(), view.end(), [](char c) { return c == 0 || c == 1; });
    if (aligned && plain && !view.empty()) return ir::tensor_data(dtype_, dims_, view.data(), std::move(owner));
    std::string copy(view);
    if (!plain)
      for (char& c : copy) c = c != 0;
    return ir::tensor_data(dtype_, dims_, std::move(copy));
  }

  Result<ir::TensorData> raw() const {
    PayloadPlace at;
    support::require(tensor_.raw_data().size() == sizeof at, "raw data that the outline did not place");
    std::memcpy(&at, tensor_.raw_data().data(), sizeof at);
    if (at.size != static_cast<uint64_t>(bytes_))
      return wrong("has a payload of " + std::to_string(at.size) + " bytes, but " + wanted());
    return over(model_.file.view.substr(at.offset, at.size), model_.file.owner);
  }

  Result<ir::TensorData> external() const {
    std::string location;
    uint64_t offset = 0, length = static_cast<uint64_t>(bytes_);
    bool has_location = false;
    for (const auto& entry : tensor_.external_data()) {
      if (entry.key() == "location") {
        location = entry.value();
        has_location = true;
        continue;
      }
      if (entry.key() != "offset" && entry.key() != "length") continue;  // checksum, basepath
      const std::string& text = entry.value();
      uint64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc() || end != text.data() + text.size())
        return wrong("has external data " + in_quotes(location) + " with the " + entry.key() + " " + in_quotes(text) +
                         ", which is no number of bytes",
                     codes::external_data);
      (entry.key() == "offset" ? offset : length) = number;
    }
    if (!has_location) return wrong("has external data without a location", codes::external_data);
    if (length != static_cast<uint64_t>(bytes_))
      return wrong(
          "has external data " + in_quotes(location) + " of " + std::to_string(length) + " bytes, but " + wanted(),
          codes::external_data);
    const Bytes file = TRY(map_external(model_.folder, location, place_));
    if (offset > file.view.size() || length > file.view.size() - offset)
      return wrong("has external data " + in_quotes(location) + " from byte " + std::to_string(offset) + " to " +
                       std::to_string(static_cast<unsigned __int128>(offset) + length > UINT64_MAX ? UINT64_MAX
                                                                                                   : offset + length) +
                       ", beyond the file's end at " + std::to_string(file.view.size()),
                   codes::external_data);
    return over(file.view.substr(offset, length), file.owner);
  }

  // Values in the field that the specification gives to the element type.
  Result<ir::TensorData> typed() const {
    if (dtype_ == DType::float_(32)) return values<float>(tensor_.float_data());
    if (dtype_ == DType::float_(64)) return values<double>(tensor_.double_data());
    if (dtype_ == DType::int_(64)) return values<int64_t>(tensor_.int64_data());
    if (dtype_ == DType::uint(64)) return values<uint64_t>(tensor_.uint64_data());
    if (dtype_ == DType::uint(32)) return values<uint32_t>(tensor_.uint64_data());
    if (dtype_ == DType::int_(32)) return values<int32_t>(tensor_.int32_data());
    if (dtype_.element_bytes() == 2) return values<uint16_t>(tensor_.int32_data());
    if (dtype_.is_bool()) return values<bool>(tensor_.int32_data());
    return values<uint8_t>(tensor_.int32_data());
  }

  template <class T, class Field>
  Result<ir::TensorData> values(const Field& field) const {
    const int64_t count = bytes_ / static_cast<int64_t>(sizeof(T));
    if (field.size() != count)
      return wrong("has " + std::to_string(field.size()) + " values, but " + dtype_.str() + text_of_dims(dims_) +
                   " takes " + std::to_string(count));
    std::string bytes(static_cast<size_t>(bytes_), '\0');
    char* out = bytes.data();
    for (const auto& item : field) {
      const T value = static_cast<T>(item);
      std::memcpy(out, &value, sizeof value);
      out += sizeof value;
    }
    return ir::tensor_data(dtype_, dims_, std::move(bytes));
  }

  const Model& model_;
  const schema::TensorProto& tensor_;
  const std::string& what_;
  const Place& place_;
  std::vector<int64_t> dims_;
  DType dtype_;
  int64_t bytes_ = 0;
};

}  // namespace

std::string element_name(DType dtype) { return dtype.is_handle() ? "string" : dtype.str(); }

int element_number(DType dtype) {
  for (size_t number = 1; number < std::size(element_types); ++number)
    if (element_types[number].dtype == dtype) return static_cast<int>(number);
  return 0;
}

Result<DType> element_type(int64_t number, const std::string& what, const Place& place) {
  const auto refuse = [&](std::string message) {
    return Diagnostic{.code = codes::wrong_tensor, .place = place, .message = std::move(message)};
  };
  if (number < 0 || number >= static_cast<int64_t>(std::size(element_types)))
    return refuse(what + " has the unknown element type " + std::to_string(number));
  const ElementType& type = element_types[number];
  if (number == 0) return refuse(what + " has no element type");
  if (type.dtype.is_void())
    return Diagnostic{
        .code = codes::unsupported,
        .place = place,
        .message = what + " has the element type " + std::string(type.name) + ", which Lathe does not compile"};
  return type.dtype;
}

std::optional<int64_t> checked_bytes(std::span<const int64_t> dims, DType dtype) {
  constexpr int64_t most = int64_t{1} << 47;  // the address space of a process
  bool empty = false;
  int64_t bits = std::max<int64_t>(dtype.storage_bits(), 1);
  for (const int64_t dim : dims) {
    if (dim > most) return std::nullopt;
    empty = empty || dim == 0;
    if (dim != 0 && __builtin_mul_overflow(bits, dim, &bits)) return std::nullopt;
    if (bits > 8 * most) return std::nullopt;
  }
  return empty ? 0 : (bits + 7) / 8;
}

bool holds_strings(const schema::TensorProto& tensor) { return tensor.data_type() == schema::TensorProto::STRING; }

Result<Strings> read_strings(const Model& model, const schema::TensorProto& tensor, const std::string& what,
                             const Place& place) {
  return TensorReader(model, tensor, what, place).strings();
}

Result<ir::TensorData> read_tensor(const Model& model, const schema::TensorProto& tensor, const std::string& what,
                                   const Place& place) {
  return TensorReader(model, tensor, what, place).run();
}

namespace {

// Element `at` of `dense`, all zeros so far, becomes element `i` of `values`.
void set_element(std::string& dense, int64_t at, const ir::TensorDataNode& values, int64_t i) {
  const int64_t bits = values.dtype.storage_bits();
  if (bits >= 8) {
    std::memcpy(dense.data() + at * bits / 8, values.bytes + i * bits / 8, static_cast<size_t>(bits / 8));
    return;
  }
  const unsigned from = static_cast<uint8_t>(values.bytes[i * bits / 8]) >> (i * bits % 8);
  char& to = dense[static_cast<size_t>(at * bits / 8)];
  const unsigned mask = ((1u << bits) - 1) << (at * bits % 8);
  to = static_cast<char>((static_cast<uint8_t>(to) & ~mask) | ((from << (at * bits % 8)) & mask));
}

}  // namespace

Result<ir::TensorData> read_sparse_tensor(const Model& model, const schema::SparseTensorProto& sparse,
                                          const std::string& what, const Place& place) {
  const auto wrong = [&](const std::string& why) {
    return Diagnostic{.code = codes::wrong_tensor, .place = place, .message = what + " " + why};
  };
  const std::vector<int64_t> dims(sparse.dims().begin(), sparse.dims().end());
  for (const int64_t dim : dims)
    if (dim < 0) return wrong("has the negative dimension " + std::to_string(dim));
  const ir::TensorData values = TRY(read_tensor(model, sparse.values(), what, place));
  const std::optional<int64_t> bytes = checked_bytes(dims, values->dtype);
  // A dense copy is made, so the file must be in proportion to it.
  if (!bytes || *bytes > (int64_t{1} << 30)) return wrong("is sparse and too large to be made dense");
  const int64_t rank = static_cast<int64_t>(dims.size()), count = values->elements();
  std::string dense(static_cast<size_t>(*bytes), '\0');
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  if (values->shape.size() != 1) return wrong("has values that are not a vector");
  if (count > 0) {
    const ir::TensorData indices = TRY(read_tensor(model, sparse.indices(), what, place));
    const bool linear = indices->shape == std::vector<int64_t>{count};
    if (indices->dtype != DType::int64() || (!linear && indices->shape != std::vector<int64_t>{count, rank}))
      return wrong("has indices that do not fit its values");
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = 0;
      for (int64_t d = 0; d < (linear ? 1 : rank); ++d) {
        const int64_t index = ir::int_at(*indices, linear ? i : i * rank + d);
        const int64_t extent = linear ? elements : dims[static_cast<size_t>(d)];
        if (index < 0 || index >= extent) return wrong("has the index " + std::to_string(index) + " out of range");
        at = at * extent + index;
      }
      set_element(dense, at, *values, i);
    }
  }
  return ir::tensor_data(values->dtype, dims, std::move(dense));
}

}  // namespace lathe::onnx
