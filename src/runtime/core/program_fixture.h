// For tests: artifacts made in this process from hand-written programs and C++ functions, and tensors to run them on.
#pragma once

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "abi/artifact.h"
#include "abi/program_writer.h"
#include "runtime/cpu/host.h"

namespace lathe::runtime::testing {

inline constexpr DLDataType f32 = {kDLFloat, 32, 1};
inline constexpr DLDataType i64 = {kDLInt, 64, 1};
inline constexpr DLDataType i32 = {kDLInt, 32, 1};
inline constexpr DLDataType u8 = {kDLUInt, 8, 1};
inline constexpr DLDataType boolean = {kDLBool, 8, 1};

// An artifact and what it points to. Not movable: the struct holds addresses.
struct TestArtifact {
  std::vector<char> program;
  std::vector<LatheKernel> kernels;
  std::vector<LatheRuntimeKernelEntry> runtime_kernels;
  std::vector<char> weights;
  std::vector<LatheMetadata> metadata = {{"target", "native"}, {"builder", "test"}, {"version", "1"}};
  LatheArtifact artifact = {};

  const LatheArtifact* get() {
    std::memcpy(artifact.magic, LATHE_ARTIFACT_MAGIC, sizeof(artifact.magic));
    artifact.version = LATHE_ARTIFACT_VERSION;
    artifact.size = sizeof(LatheArtifact);
    artifact.services_version = LATHE_SERVICES_VERSION;
    artifact.services_size = sizeof(LatheServices);
    artifact.architecture = host().architecture;
    artifact.cpu_features = "";
    artifact.metadata = metadata.data();
    artifact.metadata_count = metadata.size();
    artifact.program = program.data();
    artifact.program_bytes = program.size();
    artifact.kernels = kernels.data();
    artifact.kernel_count = kernels.size();
    artifact.weights = weights.data();
    artifact.weights_bytes = weights.size();
    artifact.runtime_kernels = runtime_kernels.data();
    artifact.runtime_kernel_count = runtime_kernels.size();
    return &artifact;
  }
};

// A tensor of the host with its own memory.
template <typename Element>
struct HostTensor {
  std::vector<Element> data;
  std::vector<int64_t> shape, strides;
  DLTensor view = {};

  HostTensor(DLDataType dtype, std::vector<int64_t> dims, std::vector<Element> values = {})
      : data(std::move(values)), shape(std::move(dims)) {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    data.resize(static_cast<size_t>(count));
    view = {data.data(), {kDLCPU, 0}, static_cast<int32_t>(shape.size()), dtype, shape.data(), nullptr, 0};
  }
  HostTensor(const HostTensor&) = delete;
  HostTensor& operator=(const HostTensor&) = delete;
};

struct CloseModel {
  void operator()(LatheModel* model) const { lathe_close(model); }
};
struct DestroyContext {
  void operator()(LatheContext* context) const { lathe_destroy_context(context); }
};
struct ReleaseValue {
  void operator()(LatheValue* value) const { lathe_value_release(value); }
};
struct DeleteTensor {
  void operator()(DLManagedTensor* tensor) const { tensor->deleter(tensor); }
};
using Model = std::unique_ptr<LatheModel, CloseModel>;
using Context = std::unique_ptr<LatheContext, DestroyContext>;
using Value = std::unique_ptr<LatheValue, ReleaseValue>;
using Managed = std::unique_ptr<DLManagedTensor, DeleteTensor>;

inline std::string last_message() { return lathe_last_error()->message; }

// Null, with lathe_last_error set, when it is refused.
inline Model open(TestArtifact& artifact, const LatheOpenOptions* options = nullptr) {
  LatheModel* model = nullptr;
  lathe_open_artifact(artifact.get(), options, &model);
  return Model(model);
}
inline Context context_of(const Model& model, LatheContextOptions options = {}) {
  options.size = sizeof(options);
  LatheContext* context = nullptr;
  if (model != nullptr) lathe_create_context(model.get(), &options, &context);
  return Context(context);
}

inline Value number(int64_t scalar) { return Value(lathe_value_make_scalar(scalar)); }

// Runs on values; the results are empty when it failed.
inline std::vector<Value> run_values(const Context& context, const std::vector<LatheValue*>& inputs, int outputs) {
  std::vector<LatheValue*> raw(static_cast<size_t>(outputs));
  const int32_t status =
      lathe_run_values(context.get(), inputs.data(), static_cast<int32_t>(inputs.size()), raw.data(), outputs);
  std::vector<Value> results;
  for (LatheValue* value : raw)
    if (status == LATHE_OK) results.emplace_back(value);
  return results;
}

template <typename Element>
std::vector<Element> elements_of(const DLTensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) count *= tensor.shape[i];
  const auto* data = static_cast<const Element*>(tensor.data);
  return std::vector<Element>(data, data + count);
}
inline std::vector<int64_t> shape_of(const DLTensor& tensor) { return {tensor.shape, tensor.shape + tensor.ndim}; }

// z[i] = x[i] + y[i] for scalars[0] elements, in parallel.
inline int32_t add_kernel(const LatheServices* services, void* state, void* const* buffers, const int64_t* scalars) {
  struct Closure {
    void* const* buffers;
  } closure = {buffers};
  const auto body = [](void* opaque, int64_t begin, int64_t end) {
    void* const* at = static_cast<Closure*>(opaque)->buffers;
    for (int64_t i = begin; i < end; ++i)
      static_cast<float*>(at[2])[i] = static_cast<const float*>(at[0])[i] + static_cast<const float*>(at[1])[i];
  };
  return services->parallel_for(state, body, &closure, scalars[0], 16);
}

// y = relu(x + w), written as a plan would: an arena holds x + w, the result is the output's memory. x is [N, width];
// w is a constant of the weights.
inline void write_dense(TestArtifact& made, int64_t width, std::vector<float> weights) {
  using abi::Opcode;
  using abi::ValueKind;
  made.weights.resize(weights.size() * sizeof(float));
  std::memcpy(made.weights.data(), weights.data(), made.weights.size());
  made.kernels = {[](const LatheServices*, void*, void* const* at, const int64_t* scalars) {
                    for (int64_t i = 0; i < scalars[0] * scalars[1]; ++i)
                      static_cast<float*>(at[2])[i] =
                          static_cast<float*>(at[0])[i] + static_cast<float*>(at[1])[i % scalars[1]];
                    return int32_t{0};
                  },
                  [](const LatheServices* services, void* state, void* const* buffers, const int64_t* scalars) {
                    const auto body = [](void* opaque, int64_t begin, int64_t end) {
                      auto* at = static_cast<void* const*>(opaque);
                      for (int64_t i = begin; i < end; ++i) {
                        const float value = static_cast<float*>(at[0])[i];
                        static_cast<float*>(at[1])[i] = value > 0 ? value : 0;
                      }
                    };
                    return services->parallel_for(state, body, const_cast<void**>(buffers), scalars[0] * scalars[1], 8);
                  }};
  abi::ProgramWriter program;
  program.input({.name = "x", .dtype = f32, .dims = {{-1, "N"}, {width}}});
  program.output({.name = "y", .dtype = f32, .dims = {{-1, "N"}, {width}}});
  const uint32_t w = program.constant({.name = "w", .dtype = f32, .shape = {width}, .bytes = made.weights.size()});
  const uint32_t add = program.kernel({.name = "add", .buffer_count = 3, .scalar_count = 2});
  const uint32_t relu = program.kernel({.name = "relu", .buffer_count = 2, .scalar_count = 2});
  const uint32_t sum = program.storage({.kind = abi::StorageKind::dynamic});
  const uint32_t out = program.storage({.kind = abi::StorageKind::output, .index = 0});
  abi::FunctionWriter main = program.function("main");
  const uint32_t x = main.parameter(ValueKind::tensor, f32, 2, "x");
  const uint32_t wr = main.reg(ValueKind::tensor, f32, 1, "w"), t = main.reg(ValueKind::tensor, f32, 2),
                 y = main.reg(ValueKind::tensor, f32, 2, "y"), n = main.reg(ValueKind::scalar),
                 bytes = main.reg(ValueKind::scalar);
  const uint32_t columns = program.immediate(width);
  main.emit(Opcode::read_dim, {n, x, program.immediate(0)});
  main.emit(Opcode::scalar_multiply, {bytes, n, program.immediate(width * 4)});
  main.emit(Opcode::reserve_storage, {sum, bytes});
  main.emit(Opcode::load_constant, {wr, w});
  main.emit(Opcode::alloc_tensor, {t, sum, 2, n, columns});
  main.emit(Opcode::call_kernel, {add, 3, x, wr, t, 2, n, columns}, "Add_0");
  main.emit(Opcode::alloc_tensor, {y, out, 2, n, columns});
  main.emit(Opcode::call_kernel, {relu, 2, t, y, 2, n, columns}, "Relu_1");
  main.emit(Opcode::return_values, {1, y});
  program.finish_function(std::move(main));
  made.program = program.finish();
}

// One number in, which a kernel is called with, and the same out.
inline void write_call(TestArtifact& made, LatheKernel kernel, const char* node) {
  made.kernels = {kernel};
  abi::ProgramWriter program;
  program.input({.name = "n", .kind = abi::ValueKind::scalar});
  program.output({.name = "m", .kind = abi::ValueKind::scalar});
  const uint32_t called = program.kernel({.name = "called", .scalar_count = 1});
  abi::FunctionWriter main = program.function("main");
  const uint32_t n = main.parameter(abi::ValueKind::scalar);
  main.emit(abi::Opcode::call_kernel, {called, 0, 1, n}, node);
  main.emit(abi::Opcode::return_values, {1, n});
  program.finish_function(std::move(main));
  made.program = program.finish();
}

// Two states: `sum` [2], the sum of all rows of all x so far, which each run replaces; and `rows`, all of these rows,
// at most four, which is written in place. y is the sum as well. A run whose x begins with a negative number fails
// after it has written.
inline void write_journal(TestArtifact& made) {
  using abi::Opcode;
  using abi::ValueKind;
  made.kernels = {[](const LatheServices*, void*, void* const* at, const int64_t* scalars) {
                    const auto *x = static_cast<const float*>(at[0]), *sum = static_cast<const float*>(at[1]);
                    auto* next = static_cast<float*>(at[2]);
                    next[0] = sum[0];
                    next[1] = sum[1];
                    for (int64_t i = 0; i < 2 * scalars[0]; ++i) next[i % 2] += x[i];
                    return int32_t{0};
                  },
                  [](const LatheServices*, void*, void* const* at, const int64_t* scalars) {
                    const auto* x = static_cast<const float*>(at[0]);
                    for (int64_t i = 0; i < 2 * scalars[0]; ++i) static_cast<float*>(at[1])[2 * scalars[1] + i] = x[i];
                    return scalars[0] > 0 && x[0] < 0 ? int32_t{LATHE_KERNEL_FAILED} : int32_t{0};
                  }};
  abi::ProgramWriter program;
  program.input({.name = "x", .dtype = f32, .dims = {{-1, "new"}, {2}}});
  program.input({.name = "sum", .dtype = f32, .dims = {{2}}});
  program.input({.name = "rows", .dtype = f32, .dims = {{4}, {2}}});
  program.input({.name = "count", .kind = ValueKind::scalar});
  program.output({.name = "y", .dtype = f32, .dims = {{2}}});
  program.output({.name = "next_sum", .dtype = f32, .dims = {{2}}});
  program.output({.name = "count", .kind = ValueKind::scalar});
  program.state({.output = 1, .length = abi::absent, .axis = abi::absent, .reserved = 0});
  program.state({.output = abi::absent, .length = 2, .axis = 0, .reserved = 0});
  program.state({.output = 2, .length = abi::absent, .axis = abi::absent, .reserved = 0});
  const uint32_t add = program.kernel({.name = "add", .buffer_count = 3, .scalar_count = 1});
  const uint32_t append = program.kernel({.name = "append", .buffer_count = 2, .scalar_count = 2});
  const uint32_t result = program.storage({.kind = abi::StorageKind::output, .index = 0});
  const uint32_t kept = program.storage({.kind = abi::StorageKind::output, .index = 1});
  abi::FunctionWriter main = program.function("main");
  const uint32_t x = main.parameter(ValueKind::tensor, f32, 2), sum = main.parameter(ValueKind::tensor, f32, 1),
                 rows = main.parameter(ValueKind::tensor, f32, 2), count = main.parameter(ValueKind::scalar),
                 y = main.reg(ValueKind::tensor, f32, 1), next = main.reg(ValueKind::tensor, f32, 1),
                 n = main.reg(ValueKind::scalar), all = main.reg(ValueKind::scalar), fits = main.reg(ValueKind::scalar);
  main.emit(Opcode::read_dim, {n, x, program.immediate(0)});
  main.emit(Opcode::scalar_add, {all, n, count});
  main.emit(Opcode::scalar_less_equal, {fits, all, program.immediate(4)});
  main.emit(Opcode::assert_numbers, {fits, program.text("% rows do not fit"), 1, all});
  main.emit(Opcode::alloc_tensor, {next, kept, 1, program.immediate(2)});
  main.emit(Opcode::call_kernel, {add, 3, x, sum, next, 1, n}, "Add");
  main.emit(Opcode::call_kernel, {append, 2, x, rows, 2, n, count}, "Append");
  main.emit(Opcode::alloc_tensor, {y, result, 1, program.immediate(2)});
  main.emit(Opcode::copy, {y, next});
  main.emit(Opcode::return_values, {3, y, next, all});
  program.finish_function(std::move(main));
  made.program = program.finish();
}

}  // namespace lathe::runtime::testing
