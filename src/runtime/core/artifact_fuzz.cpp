// libFuzzer: bytes as a register program, verified and run; and as a shared library, checked before it is loaded.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/core/model.h"
#include "runtime/core/program_fixture.h"

using namespace lathe::runtime;
using namespace lathe::runtime::testing;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check_library("input", data, size);
  TestArtifact artifact;
  artifact.program.assign(data, data + size);
  // Damaged counts of kernels are not the point here, so the artifact has as many as the program.
  lathe::abi::ProgramView view;
  if (view.parse(artifact.program.data(), artifact.program.size()) != nullptr || view.kernels.count > 16) return 0;
  artifact.kernels.assign(view.kernels.count,
                          [](const LatheServices*, void*, void* const*, const int64_t*) { return int32_t{0}; });
  artifact.runtime_kernels = {{"pass", [](const LatheRuntimeCall* call) {
                                 for (int64_t i = 0; i < call->output_count && i < call->input_count; ++i)
                                   call->outputs[i] = call->values->retain(call->inputs[i]);
                                 return int32_t{0};
                               }}};
  artifact.weights.resize(256);
  const Model model = open(artifact);
  const Context context = context_of(model, {.threads = 1, .memory_limit = 16 << 20, .instruction_limit = 2000});
  if (context == nullptr) return 0;
  HostTensor<int64_t> x(i64, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Value value(lathe_value_from_tensor(&x.view));
  const int inputs = lathe_input_count(model.get()), outputs = lathe_output_count(model.get());
  if (inputs <= 16 && outputs <= 100)
    run_values(context, std::vector<LatheValue*>(static_cast<size_t>(inputs), value.get()), outputs);
  return 0;
}
