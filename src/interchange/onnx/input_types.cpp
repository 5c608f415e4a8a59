#include "interchange/onnx/input_types.h"

#include "interchange/onnx/codes.h"
#include "interchange/onnx/read/model.h"
#include "relax/strings.h"

namespace lathe::onnx {
namespace {

struct InputTypes {
  int parameter;  // inputs of one parameter are of one type; -1: of any
  std::string_view name;
  uint64_t elements;  // bits by the number in TensorProto.DataType
};

struct OperatorTypes {
  std::string_view op;  // after its domain and a dot, but for ONNX's own
  bool is_variadic;     // the last input stands for all that follow
  std::initializer_list<InputTypes> inputs;
  std::initializer_list<int> outputs;  // parameters of inputs, or -1; the last stands for all that follow
};

// Sorted; made of the onnx package when the build is configured.
constexpr OperatorTypes rows[] = {
#include "onnx_types.inc"
};

const OperatorTypes* types_of(std::string_view domain, std::string_view op) {
  const std::string key = (domain.empty() ? "" : std::string(domain) + ".") + std::string(op);
  const auto row = std::lower_bound(std::begin(rows), std::end(rows), key,
                                    [](const OperatorTypes& r, std::string_view name) { return r.op < name; });
  return row != std::end(rows) && row->op == key ? row : nullptr;
}

// Element `i`, or the last, which stands for all that follow.
template <class T>
const T& at_or_last(const std::initializer_list<T>& list, size_t i) {
  return list.begin()[std::min(i, list.size() - 1)];
}

std::string fitting(uint64_t elements) {
  std::vector<std::string> names;
  for (int number = 1; number < 40; ++number)
    if (const auto dtype = element_type(number, "", {}); elements >> number & 1 && dtype.ok())
      names.push_back(element_name(*dtype));
  if (names.size() < 2) return names.empty() ? "nothing that Lathe compiles" : names[0];
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", fmt::join(names, ", "), last);
}

}  // namespace

void check_input_types(std::string_view domain, std::string_view op, NodeImport& import) {
  const OperatorTypes* types = types_of(domain, op);
  if (!types || types->inputs.size() == 0) return;
  std::map<int, size_t> first_of;  // of a parameter: the first input of it
  for (size_t i = 0; i < import.input_count(); ++i) {
    if (!import.has(i) || (i >= types->inputs.size() && !types->is_variadic)) continue;
    const InputTypes& wanted = at_or_last(types->inputs, i);
    const Expr& tensor = import.value(i).tensor;
    if (tensor && !relax::as_tensor(tensor)) continue;  // a sequence of tensors, or none
    const int number = element_number(import.dtype(i));
    if (number == 0) continue;
    const std::string what = fmt::format("the input {} ('{}') is {}", i, wanted.name, element_name(import.dtype(i)));
    if (!(wanted.elements >> number & 1))
      import.fail(codes::wrong_node, fmt::format("{}, but {} fits", what, fitting(wanted.elements)));
    if (wanted.parameter < 0) continue;
    const auto [first, is_new] = first_of.emplace(wanted.parameter, i);
    if (!is_new && import.dtype(first->second) != import.dtype(i))
      import.fail(codes::wrong_node, fmt::format("{}, but the input {} is {}: both are of one type", what,
                                                 first->second, element_name(import.dtype(first->second))));
  }
}

void keep_strings(std::string_view domain, std::string_view op, NodeImport& import) {
  const OperatorTypes* types = types_of(domain, op);
  std::set<int> of_strings;
  for (size_t i = 0; types && i < import.input_count() && types->inputs.size() > 0; ++i) {
    const int parameter = at_or_last(types->inputs, i).parameter;
    const auto* info = import.has(i) ? relax::as_tensor(import.value(i).tensor) : nullptr;
    if (info && info->dtype == relax::string_dtype) of_strings.insert(parameter);
  }
  of_strings.erase(-1);
  for (size_t i = 0; !of_strings.empty() && i < import.results().size(); ++i) {
    Expr& result = import.results()[i].tensor;
    const auto* info = relax::as_tensor(result);
    if (!info || types->outputs.size() == 0 || info->dtype != DType::int64()) continue;
    if (of_strings.count(at_or_last(types->outputs, i))) result = import.call(relax::as_strings_operator, {result});
  }
}

}  // namespace lathe::onnx
