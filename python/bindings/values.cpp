#include "values.h"

#include "tensors.h"

namespace lathe::python {

namespace {

[[noreturn]] void wrong_kind(nb::handle given, const std::string& name, const char* wanted) {
  const auto type = nb::cast<std::string>(nb::str(given.type().attr("__name__")));
  throw nb::type_error(fmt::format("input '{}' is a {}, not {}", name, type, wanted).c_str());
}

bool is_list(nb::handle given) { return nb::isinstance<nb::list>(given) || nb::isinstance<nb::tuple>(given); }

// What an element is, nothing else says.
int32_t kind_of(nb::handle given) { return is_list(given) ? LATHE_SEQUENCE : LATHE_TENSOR; }

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
