#include "run_function.h"

#include <charconv>

#include "arrays/npy.h"
#include "codes.h"
#include "command.h"
#include "driver/functions.h"
#include "ir/formats/dlpack_type.h"

namespace lathe::tool {
namespace {

[[noreturn]] void refuse(std::string message) {
  throw support::DiagnosticError(support::Diagnostic{.code = codes::run, .message = std::move(message)});
}

template <class Number>
std::optional<Number> number_in(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// An argument that the function may write to: an array of the file's, or a number.
struct Given {
  ir::TensorData read;
  std::vector<uint64_t> memory;
  DLTensor tensor{};
  driver::Argument argument;

  Given(const std::string& text, std::optional<ir::DType> wanted) {
    if (const auto whole = number_in<int64_t>(text)) {
      argument = *whole;
    } else if (const auto real = number_in<double>(text)) {
      argument = *real;
    } else {
      read = tensor_of(read_npy_array(text).value_or_throw(), text, wanted).value_or_throw();
      memory.resize(read->view().size() / 8 + 1);
      std::memcpy(memory.data(), read->bytes, read->view().size());
      tensor.data = memory.data();
      tensor.device = {kDLCPU, 0};
      tensor.ndim = static_cast<int32_t>(read->shape.size());
      tensor.dtype = ir::dlpack_type(read->dtype);
      tensor.shape = const_cast<int64_t*>(read->shape.data());
      argument = &tensor;
    }
  }
  Given(const Given&) = delete;
};

// Of a parameter that is a buffer.
std::optional<ir::DType> element_type(const driver::FunctionSignature* signature, size_t parameter) {
  if (!signature || parameter >= signature->declared->params.size()) return std::nullopt;
  const ir::Buffer buffer = signature->declared->buffer_of(signature->declared->params[parameter]);
  return buffer ? std::optional(buffer->dtype) : std::nullopt;
}

}  // namespace

void run_function(const FunctionCall& call) {
  const driver::BuiltFunctionsRef built = driver::BuiltFunctions::open(call.library).value_or_throw();
  std::map<size_t, std::shared_ptr<Given>> given;
  for (const std::string& option : call.inputs) {
    const auto [place, text] = split_pair("--input", option);
    const auto number = number_in<size_t>(place);
    if (!number) refuse("an argument of a function goes by its number, not by '" + place + "'");
    given[*number] = std::make_shared<Given>(text, element_type(built->find(call.name), *number));
  }
  std::vector<driver::Argument> arguments;
  for (const auto& [number, value] : given) {
    if (number != arguments.size()) refuse(fmt::format("argument {} of '{}' is missing", arguments.size(), call.name));
    arguments.push_back(value->argument);
  }
  built->call(call.name, arguments, call.threads).value_or_throw();
  const driver::FunctionSignature& signature = *built->find(call.name);
  NamedArrays written;
  for (const auto& [number, value] : given) {
    if (!value->read || !signature.is_written[number]) continue;
    const char* bytes = reinterpret_cast<const char*>(value->memory.data());
    const ir::Buffer buffer = signature.declared->buffer_of(signature.declared->params[number]);
    written.emplace_back(buffer->name,
                         npy_array(*ir::tensor_data(value->read->dtype, value->read->shape, bytes, value)));
    std::printf("%s\n", driver::describe_parameter(signature, number).c_str());
  }
  if (!call.output.empty()) write_npz(call.output, written).value_or_throw();
}

}  // namespace lathe::tool
