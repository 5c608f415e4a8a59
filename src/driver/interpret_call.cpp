#include "driver/interpret_call.h"

#include "ir/formats/dlpack_type.h"
#include "ir/tensor_data.h"
#include "tir/interpret/interpret.h"

namespace lathe::driver {
namespace {

char* memory_of(const DLTensor& t) { return static_cast<char*>(t.data) + t.byte_offset; }

tir::TensorBuffer buffer_over(const DLTensor& t) {
  tir::TensorBuffer made = tir::TensorBuffer::zeros(ir::dtype_of(t.dtype), {t.shape, t.shape + t.ndim});
  std::memcpy(made.bytes.data(), memory_of(t), made.bytes.size());
  return made;
}

int64_t bits_of(const Argument& argument, ir::DType dtype) {
  const auto* real = std::get_if<double>(&argument);
  if (!dtype.is_floating()) return std::get<int64_t>(argument);
  const double value = real ? *real : static_cast<double>(std::get<int64_t>(argument));
  return static_cast<int64_t>(ir::encode_float(dtype, value));
}

}  // namespace

support::Status interpret_call(const FunctionSignature& signature, const ir::IRModule& module,
                               const std::vector<Argument>& arguments, const tir::Context* context) {
  const auto function = module.find_as<tir::PrimFunc>(signature.name);
  std::vector<tir::TensorBuffer> tensors;
  std::vector<int64_t> scalars;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (const auto* tensor = std::get_if<const DLTensor*>(&arguments[i]))
      tensors.push_back(buffer_over(**tensor));
    else
      scalars.push_back(bits_of(arguments[i], function->params[i]->dtype));
  }
  const tir::InterpretOptions options{
      .max_steps = std::numeric_limits<int64_t>::max(), .context = context, .module = &module};
  TRY(tir::interpret(function, tensors, scalars, options));
  size_t at = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* tensor = std::get_if<const DLTensor*>(&arguments[i]);
    if (!tensor) continue;
    const tir::TensorBuffer& result = tensors[at++];
    if (signature.is_written[i]) std::memcpy(memory_of(**tensor), result.bytes.data(), result.bytes.size());
  }
  return support::success();
}

}  // namespace lathe::driver
