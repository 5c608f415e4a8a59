#include "driver/executable.h"

#include "abi/artifact.h"
#include "codegen/llvm/load/jit.h"
#include "driver/artifact/kernel_families.h"
#include "driver/artifact/metadata.h"
#include "driver/codes.h"
#include "driver/report/fail_on_request.h"
#include "ir/formats/dlpack_type.h"
#include "runtime/cpu/large_memory.h"

namespace lathe::driver {

using support::Result;

support::Code code_of_status(int32_t status) {
  switch (status) {
    case LATHE_INVALID_ARGUMENT:
      return codes::input;
    case LATHE_LIMIT_REACHED:
      return codes::limit;
    case LATHE_CANCELLED:
      return codes::cancelled;
    default:
      return codes::runtime;
  }
}

support::Diagnostic runtime_failure(const std::string& what) {
  const LatheError* error = lathe_last_error();
  if (error && error->code == LATHE_KERNEL_FAILED) throw support::InternalError(what + ": " + error->message);
  support::Diagnostic d{.code = code_of_status(error ? error->code : 0),
                        .message = what + ": " + (error ? error->message : "unknown failure")};
  if (error && error->node && *error->node) d.place = support::ModelNode{"", error->node, ""};
  return d;
}

std::string dtype_name(DLDataType type) { return ir::dtype_of(type).str(); }

namespace {

// The artifact of a model in memory: what a shared library would export.
struct InProcess {
  CompiledModelRef compiled;
  std::shared_ptr<codegen::LoadedKernels> kernels;
  std::unique_ptr<char, void (*)(void*)> weights{nullptr, std::free};
  std::vector<uint64_t> program;  // aligned to 8 bytes
  Metadata metadata;
  std::vector<LatheMetadata> rows;
  LatheArtifact artifact{};
};

void fill_weights(InProcess& made, const lower::Program& program) {
  const auto bytes = static_cast<uint64_t>(program.weight_bytes);
  made.weights.reset(static_cast<char*>(runtime::allocate_large(bytes, LATHE_WEIGHTS_ALIGNMENT)));
  if (!made.weights) throw std::bad_alloc();
  for (const lower::Weight& weight : program.weights)
    std::memcpy(made.weights.get() + weight.offset, weight.data->bytes, weight.data->view().size());
}

// Kernels that an artifact lacks come from this process.
LatheOpenOptions open_options() {
  LatheOpenOptions options{};
  options.size = sizeof(options);
  options.runtime_kernels = kernel_tables().data();
  options.runtime_kernel_tables = kernel_tables().size();
  return options;
}

ir::TensorData take(DLManagedTensor* managed) {
  const DLTensor& t = managed->dl_tensor;
  std::vector<int64_t> shape(t.shape, t.shape + t.ndim);
  std::shared_ptr<const void> owner(managed, [](const void* held) {
    auto* tensor = static_cast<DLManagedTensor*>(const_cast<void*>(held));
    if (tensor->deleter) tensor->deleter(tensor);
  });
  const char* bytes = static_cast<const char*>(t.data) + t.byte_offset;
  return ir::tensor_data(ir::dtype_of(t.dtype), std::move(shape), bytes, std::move(owner));
}

}  // namespace

Result<ExecutableRef> load(const CompiledModelRef& compiled) {
  support::require(compiled && compiled->program, "only a model compiled to the end can be loaded");
  const lower::Program& program = *compiled->program;
  auto made = std::make_shared<InProcess>();
  made->compiled = compiled;
  made->kernels = TRY(codegen::load_kernels(compiled->kernels, &compiled->functions));
  fill_weights(*made, program);
  made->program.resize((program.bytes.size() + 7) / 8);
  std::memcpy(made->program.data(), program.bytes.data(), program.bytes.size());
  made->metadata = metadata_of(*compiled);
  for (const auto& [key, value] : made->metadata) made->rows.push_back({key.c_str(), value.c_str()});

  LatheArtifact& artifact = made->artifact;
  std::memcpy(artifact.magic, LATHE_ARTIFACT_MAGIC, sizeof(artifact.magic));
  artifact.version = LATHE_ARTIFACT_VERSION;
  artifact.size = sizeof(LatheArtifact);
  artifact.services_version = LATHE_SERVICES_VERSION;
  artifact.services_size = sizeof(LatheServices);
  artifact.architecture = made->metadata.at("architecture").c_str();
  artifact.cpu_features = made->metadata.at("cpu_features").c_str();
  artifact.metadata = made->rows.data();
  artifact.metadata_count = made->rows.size();
  artifact.program = made->program.data();
  artifact.program_bytes = program.bytes.size();
  artifact.kernels = made->kernels->functions().data();
  artifact.kernel_count = made->kernels->functions().size();
  artifact.functions = made->kernels->program().empty() ? nullptr : made->kernels->program().data();
  artifact.function_count = made->kernels->program().size();
  artifact.program_services_version = LATHE_PROGRAM_SERVICES_VERSION;
  artifact.program_services_size = sizeof(LatheProgramServices);
  artifact.weights = made->weights.get();
  artifact.weights_bytes = static_cast<uint64_t>(program.weight_bytes);

  std::shared_ptr<Executable> executable(new Executable);
  executable->keeps_ = made;
  const LatheOpenOptions options = open_options();
  if (const int32_t status = lathe_open_artifact(&artifact, &options, &executable->model_); status != LATHE_OK) {
    support::Diagnostic refused = runtime_failure("the compiled model was refused by the runtime");
    if (status == LATHE_INVALID_ARTIFACT || status == LATHE_MISSING_KERNEL)
      throw support::InternalError(refused.message);
    return refused;
  }
  return ExecutableRef(executable);
}

Result<ExecutableRef> open(const std::string& path, const OpenOptions& options) {
  std::shared_ptr<Executable> executable(new Executable);
  LatheOpenOptions opening = open_options();
  opening.huge_pages = options.huge_pages;
  if (lathe_open(path.c_str(), &opening, &executable->model_) != LATHE_OK) return runtime_failure(path);
  return ExecutableRef(executable);
}

Executable::~Executable() {
  if (model_) lathe_close(model_);
}

namespace {

Result<LatheContext*> new_context(LatheModel* model, const RunOptions& options) {
  const LatheContextOptions given = context_options(options);
  LatheContext* created = nullptr;
  if (lathe_create_context(model, &given, &created) != LATHE_OK) return runtime_failure("the model cannot run");
  return created;
}

// Inputs as the runtime takes them.
struct Views {
  std::vector<DLTensor> tensors;
  std::vector<const DLTensor*> pointers;
  explicit Views(const std::vector<ir::TensorData>& inputs) : tensors(inputs.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      tensors[i] = view_of(*inputs[i]);
      pointers.push_back(&tensors[i]);
    }
  }
};

Result<std::vector<DLManagedTensor*>> run_on(LatheContext* context, LatheModel* model, const Views& inputs) {
  fail_on_request("run");
  std::vector<DLManagedTensor*> outputs(static_cast<size_t>(lathe_output_count(model)), nullptr);
  if (lathe_run(context, inputs.pointers.data(), static_cast<int32_t>(inputs.pointers.size()), outputs.data(),
                static_cast<int32_t>(outputs.size())) != LATHE_OK)
    return runtime_failure("the model did not run");
  return outputs;
}

Result<std::vector<ir::TensorData>> run_in(LatheContext* context, LatheModel* model,
                                           const std::vector<ir::TensorData>& inputs) {
  std::vector<ir::TensorData> results;
  for (DLManagedTensor* output : TRY(run_on(context, model, Views(inputs)))) results.push_back(take(output));
  return results;
}

Result<std::vector<Value>> run_on(LatheContext* context, LatheModel* model, const std::vector<Value>& inputs) {
  fail_on_request("run");
  std::vector<LatheValue*> given, outputs(static_cast<size_t>(lathe_output_count(model)), nullptr);
  for (const Value& input : inputs) given.push_back(input.get());
  if (lathe_run_values(context, given.data(), static_cast<int32_t>(given.size()), outputs.data(),
                       static_cast<int32_t>(outputs.size())) != LATHE_OK)
    return runtime_failure("the model did not run");
  return std::vector<Value>(outputs.begin(), outputs.end());
}

// The seconds of so many calls; what they give is thrown away after the clock is read.
template <class Begin, class Run, class Drop>
Result<std::vector<double>> time_calls(int runs, Begin&& begin, Run&& run, Drop&& drop) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    TRY(begin());
    const auto start = Clock::now();
    auto outputs = TRY(run());
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    drop(outputs);
  }
  return seconds;
}

}  // namespace

LatheContextOptions context_options(const RunOptions& options) {
  const double nanoseconds = options.limits.timeout * 1e9;
  LatheContextOptions out{};
  out.size = sizeof(out);
  out.threads = options.threads;
  out.max_memory = options.limits.max_memory;
  out.max_steps = options.limits.max_steps;
  if (nanoseconds > 0) out.timeout = nanoseconds < 1e18 ? static_cast<uint64_t>(std::max(1.0, nanoseconds)) : 0;
  return out;
}

Result<std::vector<ir::TensorData>> Executable::run(const std::vector<ir::TensorData>& inputs,
                                                    const RunOptions& options) const {
  const std::unique_ptr<LatheContext, void (*)(LatheContext*)> context(TRY(new_context(model_, options)),
                                                                       lathe_destroy_context);
  return run_in(context.get(), model_, inputs);
}

Result<Session> Session::create(ExecutableRef executable, const RunOptions& options) {
  LatheContext* context = TRY(new_context(executable->model(), options));
  return Session(std::move(executable), context);
}

Result<std::vector<ir::TensorData>> Session::run(const std::vector<ir::TensorData>& inputs) {
  return run_in(context_.get(), executable_->model(), inputs);
}

Result<std::vector<Value>> Session::run(const std::vector<Value>& inputs) {
  return run_on(context_.get(), executable_->model(), inputs);
}

support::Status Session::begin_with(std::vector<ir::TensorData> states) {
  states_ = std::move(states);
  return begin();
}

support::Status Session::begin() {
  if (lathe_state_count(executable_->model()) == 0 && states_.empty()) return support::success();
  const Views views(states_);
  const int32_t status = states_.empty() ? lathe_reset_states(context_.get())
                                         : lathe_set_states(context_.get(), views.pointers.data(),
                                                            static_cast<int32_t>(views.pointers.size()));
  return status == LATHE_OK ? support::success() : support::Status(runtime_failure("the model cannot begin so"));
}

Result<std::vector<double>> Session::time(const std::vector<ir::TensorData>& inputs, int runs) {
  const Views views(inputs);
  return time_calls(
      runs, [&] { return begin(); }, [&] { return run_on(context_.get(), executable_->model(), views); },
      [](const std::vector<DLManagedTensor*>& outputs) {
        for (DLManagedTensor* output : outputs) output->deleter(output);
      });
}

Result<std::vector<double>> Session::time(const std::vector<Value>& inputs, int runs) {
  return time_calls(runs, [&] { return begin(); }, [&] { return run(inputs); }, [](const std::vector<Value>&) {});
}

}  // namespace lathe::driver
