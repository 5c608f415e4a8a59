#include "lower/testing/opened.h"

#include "ir/formats/dlpack_type.h"
#include "relax/infer.h"
#include "runtime/core/program_fixture.h"
#include "tir/interpret/interpret.h"

namespace lathe::lower::testing {

namespace {

std::vector<tir::Function> kernel_functions;

int32_t interpret_kernel(const tir::Function& f, void* const* memory, const int64_t* scalars) {
  const size_t buffers = f->buffer_map.size();
  ir::VarMap known;
  for (size_t i = buffers; i < f->params.size(); ++i) known[f->params[i]] = ir::int64(scalars[i - buffers]);
  std::vector<tir::TensorBuffer> args;
  for (size_t i = 0; i < buffers; ++i) {
    const ir::Buffer& buffer = f->buffer_map[i].second;
    std::vector<int64_t> shape;
    for (const ir::Expr& extent : buffer->shape)
      shape.push_back(ir::as_int(relax::simplified(ir::substitute(extent, known))).value());
    args.push_back(tir::TensorBuffer::zeros(buffer->dtype, shape));
    if (!args.back().bytes.empty()) std::memcpy(args.back().bytes.data(), memory[i], args.back().bytes.size());
  }
  const std::vector<int64_t> given(scalars, scalars + (f->params.size() - buffers));
  if (!tir::interpret(f, args, given).ok()) return LATHE_KERNEL_FAILED;
  for (size_t i = 0; i < buffers; ++i)
    if (!args[i].bytes.empty()) std::memcpy(memory[i], args[i].bytes.data(), args[i].bytes.size());
  return 0;
}
template <size_t I>
int32_t kernel(const LatheServices*, void*, void* const* memory, const int64_t* scalars) {
  return interpret_kernel(kernel_functions[I], memory, scalars);
}
template <size_t... I>
constexpr std::array<LatheKernel, sizeof...(I)> make_kernels(std::index_sequence<I...>) {
  return {kernel<I>...};
}
constexpr auto kernels = make_kernels(std::make_index_sequence<64>());

}  // namespace

struct Opened::Runtime {
  runtime::testing::TestArtifact artifact;
  runtime::testing::Model model;
  runtime::testing::Context context;
};

Opened::Opened(const ir::IRModule& module, const Program& program) : runtime_(std::make_unique<Runtime>()) {
  auto& [artifact, model, context] = *runtime_;
  artifact.program = program.bytes;
  artifact.weights.resize(static_cast<size_t>(program.weight_bytes));
  for (const Weight& weight : program.weights)
    std::memcpy(artifact.weights.data() + weight.offset, weight.data->bytes, weight.data->view().size());
  kernel_functions.clear();
  for (const std::string& name : program.kernels) {
    artifact.kernels.push_back(kernels.at(kernel_functions.size()));
    kernel_functions.push_back(module.find_as<tir::PrimFunc>(name));
  }
  model = runtime::testing::open(artifact);
  context = runtime::testing::context_of(model);
}

Opened::~Opened() = default;

bool Opened::is_open() const { return runtime_->context != nullptr; }

std::vector<ir::TensorData> Opened::run(const std::vector<ir::TensorData>& inputs, int outputs) {
  std::vector<DLTensor> tensors;
  for (const ir::TensorData& input : inputs)
    tensors.push_back({const_cast<char*>(input->bytes),
                       {kDLCPU, 0},
                       static_cast<int32_t>(input->shape.size()),
                       ir::dlpack_type(input->dtype),
                       const_cast<int64_t*>(input->shape.data()),
                       nullptr,
                       0});
  std::vector<const DLTensor*> pointers;
  for (const DLTensor& tensor : tensors) pointers.push_back(&tensor);
  std::vector<DLManagedTensor*> made(static_cast<size_t>(outputs));
  if (lathe_run(runtime_->context.get(), pointers.data(), static_cast<int32_t>(pointers.size()), made.data(),
                outputs) != 0)
    return {};
  std::vector<ir::TensorData> results;
  for (DLManagedTensor* one : made) {
    const runtime::testing::Managed owned(one);
    const DLTensor& t = owned->dl_tensor;
    const ir::DType dtype = ir::dtype_of(t.dtype);
    std::vector<int64_t> shape = runtime::testing::shape_of(t);
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    const auto* bytes = static_cast<const char*>(t.data) + t.byte_offset;
    results.push_back(
        ir::tensor_data(dtype, std::move(shape), std::string(bytes, static_cast<size_t>(dtype.storage_bytes(count)))));
  }
  return results;
}

}  // namespace lathe::lower::testing
