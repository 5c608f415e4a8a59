#include "arrays/values.h"

#include "codes.h"
#include "ir/formats/dlpack_type.h"

namespace lathe::tool {
namespace {

using driver::Value;
using support::Result;

// NumPy has no names for some dtypes: where the model does not say it either (members of sequences, what
// an optional holds) it stands in the array's name, "0.bfloat16".
std::optional<ir::DType> dtype_in_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::nullopt : ir::DType::parse(name.substr(dot + 1));
}

std::string unnamed_dtype(const LatheValue& value) {
  const DLTensor* tensor = lathe_value_tensor(&value);
  return tensor && !numpy_names(ir::dtype_of(tensor->dtype)) ? "." + ir::dtype_of(tensor->dtype).str() : "";
}

bool is_text(const NpyArray& array) { return array.descr[0] == 'U' || array.descr[0] == 'S'; }

Result<Value> element(const NpyArray& array, const std::string& path, std::optional<ir::DType> wanted) {
  if (is_text(array)) return driver::value_of(TRY(strings_of(array, path)), array.shape);
  return driver::value_of(*TRY(tensor_of(array, path, wanted)));
}

NpyArray array_of(const LatheValue& value) {
  if (lathe_value_kind(&value) == LATHE_STRINGS)
    return npy_array(driver::strings_of(value), driver::shape_of_strings(value));
  return npy_array(*driver::tensor_of(value));
}

bool holds_members(const LatheValue& value) {
  return lathe_value_kind(&value) == LATHE_SEQUENCE || lathe_value_kind(&value) == LATHE_TUPLE;
}

// What the optional holds, or the value itself; null where there is nothing.
Value inside(const LatheValue& value) {
  if (lathe_value_kind(&value) != LATHE_OPTIONAL) return Value(lathe_value_retain(const_cast<LatheValue*>(&value)));
  return lathe_value_count(&value) > 0 ? inside(*Value(lathe_value_get(&value, 0))) : nullptr;
}

support::Status append_members(const LatheValue& value, const std::string& prefix, NamedArrays& arrays) {
  const std::vector<Value> members = driver::members_of(value);
  for (size_t i = 0; i < members.size(); ++i) {
    const int32_t kind = lathe_value_kind(members[i].get());
    if (kind != LATHE_TENSOR && kind != LATHE_STRINGS)
      return support::Diagnostic{.code = codes::npy,
                                 .message = "only lists of arrays can be written, not lists of lists"};
    const NpyArray array = array_of(*members[i]);
    arrays.emplace_back(prefix + std::to_string(i) + unnamed_dtype(*members[i]), array);
  }
  return support::success();
}

}  // namespace

Result<Value> read_value(const std::string& path, const LatheValueInfo& input) {
  const bool may_be_empty = input.kind == LATHE_OPTIONAL;
  if (may_be_empty && path == no_value) return driver::collection_of(LATHE_OPTIONAL, {});
  const auto kept = [&](Value value) -> Result<Value> {
    if (!may_be_empty) return value;
    std::vector<Value> members;
    members.push_back(std::move(value));
    return driver::collection_of(LATHE_OPTIONAL, members);
  };
  if (path.ends_with(".npz")) {
    if (input.kind == LATHE_TENSOR || input.kind == LATHE_STRINGS)
      return support::Diagnostic{.code = codes::npy,
                                 .message = path + ": an archive holds a list, this takes one array"};
    std::vector<Value> members;
    for (const auto& [name, array] : TRY(read_npz(path)))
      members.push_back(TRY(element(array, path + "/" + name, dtype_in_name(name))));
    return kept(TRY(driver::collection_of(input.kind == LATHE_TUPLE ? LATHE_TUPLE : LATHE_SEQUENCE, members)));
  }
  const NpyArray array = TRY(read_npy_array(path));
  if (input.kind == LATHE_SCALAR) {
    const ir::TensorData number = TRY(tensor_of(array, path));
    if (!number->dtype.is_int() || number->elements() != 1)
      return support::Diagnostic{.code = codes::npy, .message = path + ": an integer by itself is wanted"};
    return Value(lathe_value_make_scalar(ir::int_at(*number, 0)));
  }
  if (input.kind == LATHE_SEQUENCE || input.kind == LATHE_TUPLE)
    return support::Diagnostic{.code = codes::npy,
                               .message = path + ": one array, but a list is wanted",
                               .help = "give an archive: numpy.savez(\"list.npz\", *arrays)"};
  const auto wanted = input.kind == LATHE_TENSOR ? std::optional(ir::dtype_of(input.dtype))
                                                 : dtype_in_name(path.substr(0, path.size() - 4));
  return kept(TRY(element(array, path, wanted)));
}

std::string file_form(const LatheValue& value) {
  const Value held = inside(value);
  if (!held) return "";
  return holds_members(*held) ? ".npz" : unnamed_dtype(*held) + ".npy";
}

support::Status write_value(const std::string& path, const LatheValue& value) {
  const Value held = inside(value);
  support::require(held != nullptr, "an empty optional has no file");
  if (!holds_members(*held)) return write_npy(path, array_of(*held));
  NamedArrays members;
  TRY(append_members(*held, "", members));
  return write_npz(path, members);
}

support::Status write_values(const std::string& path,
                             const std::vector<std::pair<std::string, const LatheValue*>>& values) {
  NamedArrays arrays;
  for (const auto& [name, value] : values) {
    const Value held = inside(*value);
    if (held && holds_members(*held)) {
      TRY(append_members(*held, name + ".", arrays));
    } else if (held) {
      arrays.emplace_back(name, array_of(*held));
    }
  }
  return write_npz(path, arrays);
}

}  // namespace lathe::tool
