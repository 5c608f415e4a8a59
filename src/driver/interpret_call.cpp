#include "driver/interpret_call.h"

#include "ir/formats/dlpack_type.h"
#include "ir/tensor_data.h"
#include "tir/interpret/interpret.h"

namespace lathe::driver {
namespace {

char* memory_of(const DLTensor& t) { return static_cast<char*>(t.data) + t.byte_offset; }

// Between a tensor, whose elements may lie apart, and the same elements without gaps: `move(there, here, bytes)` for
// runs of bytes.
template <class Move>
void each_run(const DLTensor& t, tir::TensorBuffer& compact, Move move) {
  const auto size = static_cast<int64_t>(compact.bytes.size());
  int64_t elements = 1, gapless = 1;
  bool apart = false;
  for (int d = t.ndim; d-- > 0; elements *= t.shape[d]) {
    apart = apart || (t.strides && t.shape[d] != 1 && t.strides[d] != gapless);
    gapless *= t.shape[d];
  }
  if (!apart || elements == 0) return move(memory_of(t), compact.bytes.data(), size);
  const int64_t bytes = size / elements;  // elements of less than a byte never lie apart
  for (int64_t k = 0; k < elements; ++k) {
    int64_t place = 0;
    for (int64_t d = t.ndim, rest = k; d-- > 0; rest /= t.shape[d]) place += rest % t.shape[d] * t.strides[d];
    move(memory_of(t) + place * bytes, compact.bytes.data() + k * bytes, bytes);
  }
}

tir::TensorBuffer buffer_over(const DLTensor& t) {
  tir::TensorBuffer made = tir::TensorBuffer::zeros(ir::dtype_of(t.dtype), {t.shape, t.shape + t.ndim});
  each_run(t, made, [](const char* there, uint8_t* here, int64_t bytes) {
    std::memcpy(here, there, static_cast<size_t>(bytes));
  });
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
    tir::TensorBuffer& result = tensors[at++];
    if (signature.is_written[i])
      each_run(**tensor, result, [](char* there, const uint8_t* here, int64_t bytes) {
        std::memcpy(there, here, static_cast<size_t>(bytes));
      });
  }
  return support::success();
}

}  // namespace lathe::driver
