#include "values.h"

#include "tensors.h"

namespace lathe::python {

namespace {

[[noreturn]] void wrong_kind(nb::handle given, const std::string& name, const char* wanted) {
  const auto type = nb::cast<std::string>(nb::str(given.type().attr("__name__")));
  throw nb::type_error(fmt::format("input '{}' is a {}, not {}", name, type, wanted).c_str());
}

bool is_list(nb::handle given) { return nb::isinstance<nb::list>(given) || nb::isinstance<nb::tuple>(given); }

// Arrays of str, bytes or objects (dtype kinds U, S, O), and such scalars.
bool is_text(nb::handle given) {
  if (nb::isinstance<nb::str>(given) || nb::isinstance<nb::bytes>(given)) return true;
  if (!nb::hasattr(given, "dtype") || !nb::hasattr(given.attr("dtype"), "kind")) return false;
  const nb::object kind = given.attr("dtype").attr("kind");
  return nb::isinstance<nb::str>(kind) &&
         std::string_view("USO").find(nb::cast<std::string>(kind)) != std::string::npos;
}

// What an element is, nothing else says.
int32_t kind_of(nb::handle given) {
  return is_list(given) ? LATHE_SEQUENCE : is_text(given) ? LATHE_STRINGS : LATHE_TENSOR;
}

// An array of str or bytes, of objects that are, or what NumPy makes one of.
Value strings_value(nb::handle given, const std::string& name, void (*refused)()) {
  if (!is_list(given) && !is_text(given)) wrong_kind(given, name, "an array of str");
  const nb::object array = nb::module_::import_("numpy").attr("asarray")(given, nb::arg("dtype") = "object");
  std::vector<int64_t> shape;
  for (const nb::handle extent : nb::cast<nb::tuple>(array.attr("shape"))) shape.push_back(nb::cast<int64_t>(extent));
  Value made(lathe_value_make_strings(static_cast<int32_t>(shape.size()), shape.data()));
  if (!made) refused();
  int64_t next = 0;
  for (const nb::handle element : array.attr("reshape")(-1)) {
    std::string_view text;
    if (nb::isinstance<nb::bytes>(element)) {
      text = {PyBytes_AS_STRING(element.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(element.ptr()))};
    } else if (nb::isinstance<nb::str>(element)) {
      Py_ssize_t bytes = 0;
      const char* utf8 = PyUnicode_AsUTF8AndSize(element.ptr(), &bytes);
      if (!utf8) throw nb::python_error();
      text = {utf8, static_cast<size_t>(bytes)};
    } else {
      const auto type = nb::cast<std::string>(nb::str(element.type().attr("__name__")));
      throw nb::type_error(fmt::format("element {} of input '{}' is a {}, not a str", next, name, type).c_str());
    }
    if (lathe_value_set_string(made.get(), next++, text.data(), text.size()) != LATHE_OK) refused();
  }
  return made;
}

// An array of objects: str, or bytes where they are no UTF-8.
nb::object strings_array(const LatheValue* value) {
  int32_t rank = 0;
  const int64_t* shape = nullptr;
  lathe_value_strings_shape(value, &rank, &shape);
  nb::list dims;
  for (int32_t d = 0; d < rank; ++d) dims.append(shape[d]);
  const nb::object array = nb::module_::import_("numpy").attr("empty")(lathe_value_count(value), "object");
  for (int64_t i = 0; i < lathe_value_count(value); ++i) {
    uint64_t bytes = 0;
    const char* text = lathe_value_get_string(value, i, &bytes);
    PyObject* made = PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(bytes), nullptr);
    if (!made) {
      PyErr_Clear();
      made = PyBytes_FromStringAndSize(text, static_cast<Py_ssize_t>(bytes));
    }
    if (!made) throw nb::python_error();
    array[nb::int_(i)] = nb::steal(made);
  }
  return array.attr("reshape")(nb::tuple(dims));
}

Value with_members(int32_t kind, const std::vector<nb::handle>& given, const std::string& name, void (*refused)()) {
  std::vector<Value> members;
  std::vector<LatheValue*> pointers;
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string place = kind == LATHE_OPTIONAL ? name : fmt::format("{}[{}]", name, i);
    members.push_back(to_value(given[i], kind_of(given[i]), place, refused));
    pointers.push_back(members.back().get());
  }
  Value made(lathe_value_make(kind, pointers.data(), static_cast<int64_t>(pointers.size())));
  if (!made) refused();
  return made;
}

}  // namespace

Value to_value(nb::handle given, int32_t kind, const std::string& name, void (*refused)()) {
  std::vector<nb::handle> members;
  Value made;
  switch (kind) {
    case LATHE_SEQUENCE:
    case LATHE_TUPLE:
      if (!is_list(given)) wrong_kind(given, name, "a list of arrays");
      for (nb::handle member : given) members.push_back(member);  // borrowed of the list
      return with_members(kind, members, name, refused);
    case LATHE_OPTIONAL:
      if (!given.is_none()) members.push_back(given);
      return with_members(kind, members, name, refused);
    case LATHE_STRINGS:
      return strings_value(given, name, refused);
    case LATHE_SCALAR:
      if (!nb::isinstance<nb::int_>(given)) wrong_kind(given, name, "an int");
      made.reset(lathe_value_make_scalar(nb::cast<int64_t>(given)));
      break;
    case LATHE_TENSOR:
      if (is_list(given)) wrong_kind(given, name, "an array");
      made.reset(lathe_value_from_tensor(&InputTensor(given, name.c_str()).tensor()));
      break;
    default:
      wrong_kind(given, name, "of a kind that can be given here");
  }
  if (!made) refused();
  return made;
}

nb::object from_value(Value value) {
  switch (lathe_value_kind(value.get())) {
    case LATHE_TENSOR: {
      auto managed = std::make_unique<DLManagedTensor>();
      managed->dl_tensor = *lathe_value_tensor(value.get());
      managed->manager_ctx = value.release();
      managed->deleter = [](DLManagedTensor* tensor) {
        lathe_value_release(static_cast<LatheValue*>(tensor->manager_ctx));
        delete tensor;
      };
      return to_numpy(managed.release());
    }
    case LATHE_SCALAR:
      return nb::int_(lathe_value_scalar(value.get()));
    case LATHE_STRINGS:
      return strings_array(value.get());
    case LATHE_SEQUENCE:
    case LATHE_TUPLE:
    case LATHE_OPTIONAL: {
      nb::list members;
      for (int64_t i = 0; i < lathe_value_count(value.get()); ++i)
        members.append(from_value(Value(lathe_value_get(value.get(), i))));
      if (lathe_value_kind(value.get()) == LATHE_TUPLE) return nb::tuple(members);
      if (lathe_value_kind(value.get()) == LATHE_SEQUENCE) return std::move(members);
      return members.size() == 0 ? nb::object(nb::none()) : nb::object(members[0]);
    }
    default:
      return nb::none();
  }
}

}  // namespace lathe::python
