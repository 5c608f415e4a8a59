#include "runtime/core/model.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/core/error.h"
#include "runtime/core/program/verify_program.h"
#include "runtime/core/value.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/large_memory.h"

namespace lathe::runtime {
namespace {

using abi::ProgramView;

// A file mapped for reading.
struct Mapping {
  void* memory = nullptr;
  uint64_t bytes = 0;

  int32_t open(const char* path) {
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return fail(LATHE_IO_ERROR, nullptr, "%s: %s", path, std::strerror(errno));
    struct stat about;
    const bool is_file = fstat(file, &about) == 0 && S_ISREG(about.st_mode);
    bytes = is_file ? static_cast<uint64_t>(about.st_size) : 0;
    memory = bytes == 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    ::close(file);
    if (memory != MAP_FAILED) return 0;
    memory = nullptr;
    return fail(LATHE_IO_ERROR, nullptr, "%s: %s", path, is_file ? "the file is empty" : "this is not a file");
  }
  void close() {
    if (memory != nullptr) munmap(memory, bytes);
    memory = nullptr;
  }
};

template <typename Field>
Field option(const LatheOpenOptions* options, Field LatheOpenOptions::* field) {
  if (options == nullptr) return {};
  const auto end = reinterpret_cast<const char*>(&(options->*field) + 1) - reinterpret_cast<const char*>(options);
  return options->size >= static_cast<uint64_t>(end) ? options->*field : Field{};
}

int32_t check_artifact(const LatheArtifact& artifact) {
  if (std::memcmp(artifact.magic, LATHE_ARTIFACT_MAGIC, sizeof(artifact.magic)) != 0)
    return fail(LATHE_INVALID_ARTIFACT, nullptr, "this is not a Lathe artifact (its magic is missing)");
  if (artifact.version != LATHE_ARTIFACT_VERSION || artifact.size < LATHE_ARTIFACT_FIRST_SIZE)
    return fail(LATHE_INVALID_ARTIFACT, nullptr,
                "the artifact has format version %u (%u bytes), this runtime reads version %u (%u bytes)",
                artifact.version, artifact.size, LATHE_ARTIFACT_VERSION,
                static_cast<unsigned>(LATHE_ARTIFACT_FIRST_SIZE));
  if (artifact.services_version != LATHE_SERVICES_VERSION || artifact.services_size > sizeof(LatheServices))
    return fail(LATHE_INVALID_ARTIFACT, nullptr,
                "the artifact needs version %u of the services (%u bytes), this runtime has version %u (%u bytes)",
                artifact.services_version, artifact.services_size, LATHE_SERVICES_VERSION,
                static_cast<unsigned>(sizeof(LatheServices)));
  const char* architecture = artifact.architecture == nullptr ? "" : artifact.architecture;
  if (std::strcmp(architecture, host().architecture) != 0)
    return fail(LATHE_WRONG_TARGET, nullptr, "the artifact was compiled for %s, but this machine is %s", architecture,
                host().architecture);
  char missing[64];
  if (artifact.cpu_features != nullptr && find_missing_feature(artifact.cpu_features, missing, sizeof(missing)))
    return fail(LATHE_WRONG_TARGET, nullptr,
                is_known_feature(missing)
                    ? "the artifact was compiled for a processor with '%s', which this machine (%s) does not have"
                    : "the artifact needs the processor feature '%s', which this runtime cannot tell about (%s)",
                missing, host().brand);
  if ((artifact.kernels == nullptr && artifact.kernel_count > 0) ||
      (artifact.metadata == nullptr && artifact.metadata_count > 0) ||
      (artifact.runtime_kernels == nullptr && artifact.runtime_kernel_count > 0) ||
      (artifact.weights == nullptr && artifact.weights_file == nullptr && artifact.weights_bytes > 0))
    return fail(LATHE_INVALID_ARTIFACT, nullptr, "a table of the artifact is missing");
  for (uint64_t i = 0; i < artifact.kernel_count; ++i)
    if (artifact.kernels[i] == nullptr)
      return fail(LATHE_INVALID_ARTIFACT, nullptr, "kernel %llu of the artifact is missing",
                  static_cast<unsigned long long>(i));
  return 0;
}

int32_t find_weights(LatheModel& model, const char* folder, const LatheOpenOptions* options) {
  const LatheArtifact& artifact = *model.artifact;
  model.weights = static_cast<const char*>(artifact.weights);
  if (artifact.weights_file == nullptr || artifact.weights_bytes == 0) return 0;
  char path[4096];
  if (const char* given = option(options, &LatheOpenOptions::weights_path)) {
    std::snprintf(path, sizeof(path), "%s", given);
  } else {
    if (std::strchr(artifact.weights_file, '/') != nullptr || std::strcmp(artifact.weights_file, "..") == 0)
      return fail(LATHE_INVALID_ARTIFACT, nullptr, "the artifact's weights '%s' are not beside it",
                  artifact.weights_file);
    std::snprintf(path, sizeof(path), "%s%s", folder, artifact.weights_file);
  }
  Mapping file;
  if (const int32_t status = file.open(path)) return status;
  model.mapping = file.memory;
  model.mapping_bytes = file.bytes;
  model.weights = static_cast<const char*>(file.memory);
  if (file.bytes != artifact.weights_bytes)
    return fail(LATHE_INVALID_ARTIFACT, nullptr, "%s has %llu bytes, but the artifact's weights have %llu", path,
                static_cast<unsigned long long>(file.bytes), static_cast<unsigned long long>(artifact.weights_bytes));
  return 0;
}

int32_t copy_weights(LatheModel& model) {
  const uint64_t bytes = model.artifact->weights_bytes;
  if (bytes == 0) return 0;
  model.copied_weights = allocate_large(bytes, LATHE_WEIGHTS_ALIGNMENT);
  if (model.copied_weights == nullptr)
    return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for a copy of the weights, %llu bytes",
                static_cast<unsigned long long>(bytes));
  std::memcpy(model.copied_weights, model.weights, bytes);
  model.weights = static_cast<const char*>(model.copied_weights);
  if (model.mapping != nullptr) munmap(model.mapping, model.mapping_bytes);
  model.mapping = nullptr;
  return 0;
}

// Code for other services than these is left alone.
int32_t find_functions(LatheModel& model) {
  const LatheArtifact& artifact = *model.artifact;
  if (artifact.size < sizeof(LatheArtifact) || artifact.functions == nullptr) return 0;
  if (artifact.function_count != model.program.functions.count)
    return fail(LATHE_INVALID_ARTIFACT, nullptr, "the artifact has code for %llu functions, its program has %llu",
                static_cast<unsigned long long>(artifact.function_count),
                static_cast<unsigned long long>(model.program.functions.count));
  if (artifact.program_services_version == LATHE_PROGRAM_SERVICES_VERSION &&
      artifact.program_services_size <= sizeof(LatheProgramServices))
    model.functions = artifact.functions;
  return 0;
}

LatheRuntimeKernel find_in(const LatheRuntimeKernelEntry* entries, uint64_t count, const char* name) {
  for (uint64_t i = 0; i < count; ++i)
    if (entries[i].name != nullptr && entries[i].function != nullptr && std::strcmp(entries[i].name, name) == 0)
      return entries[i].function;
  return nullptr;
}

int32_t find_runtime_kernels(LatheModel& model, const LatheOpenOptions* options) {
  const ProgramView& program = model.program;
  model.runtime_kernels =
      static_cast<LatheRuntimeKernel*>(std::calloc(program.runtime_kernels.count + 1, sizeof(LatheRuntimeKernel)));
  if (model.runtime_kernels == nullptr)
    return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory to open the artifact");
  const auto* tables = option(options, &LatheOpenOptions::runtime_kernels);
  const uint64_t table_count = tables == nullptr ? 0 : option(options, &LatheOpenOptions::runtime_kernel_tables);
  for (uint64_t i = 0; i < program.runtime_kernels.count; ++i) {
    const char* name = program.text(program.runtime_kernels[i].name);
    LatheRuntimeKernel& found = model.runtime_kernels[i];
    found = find_in(model.artifact->runtime_kernels, model.artifact->runtime_kernel_count, name);
    for (uint64_t t = 0; found == nullptr && t < table_count; ++t) {
      const LatheRuntimeKernelTable& table = *tables[t];
      if (table.version != LATHE_VALUE_TABLE_VERSION)
        return fail(LATHE_INVALID_ARGUMENT, nullptr,
                    "the runtime kernels '%s' were built for version %u, this runtime has %u", table.family,
                    table.version, LATHE_VALUE_TABLE_VERSION);
      found = find_in(table.entries, table.count, name);
    }
    if (found == nullptr)
      return fail(
          LATHE_MISSING_KERNEL, nullptr,
          "the artifact needs the runtime kernel '%s', which is neither in it nor in the tables given to open it",
          name);
  }
  return 0;
}

int32_t make_strings(LatheModel& model) {
  const ProgramView& program = model.program;
  model.strings = static_cast<LatheValue**>(std::calloc(program.constants.count + 1, sizeof(LatheValue*)));
  if (model.strings == nullptr) return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory to open the artifact");
  for (uint64_t i = 0; i < program.constants.count; ++i) {
    const abi::ConstantRecord& at = program.constants[i];
    if (at.kind != abi::ValueKind::strings) continue;
    int64_t shape[abi::max_rank];
    for (uint32_t axis = 0; axis < at.rank; ++axis) shape[axis] = program.dims[at.first_dim + uint64_t{axis}].size;
    LatheValue* value = model.strings[i] = make_string_tensor(at.rank, shape);
    if (value == nullptr) return last_error().code;
    const char* section = at.section == abi::ConstantSection::weights ? model.weights : program.data.records;
    const auto* offsets = reinterpret_cast<const uint64_t*>(section + at.offset);
    const char* text = reinterpret_cast<const char*>(offsets + value->count + 1);
    for (int64_t s = 0; s < value->count; ++s)
      if (!set_string(value, s, text + offsets[s], offsets[s + 1] - offsets[s])) return last_error().code;
  }
  return 0;
}

void describe(const ProgramView& program, const abi::Table<abi::PortRecord>& ports, LatheValueInfo* infos,
              int64_t*& dims, const char**& symbols) {
  for (uint64_t i = 0; i < ports.count; ++i) {
    const abi::PortRecord& at = ports[i];
    infos[i] = {program.text(at.name), static_cast<int32_t>(at.kind), at.dtype, at.rank, dims, symbols};
    for (int32_t axis = 0; axis < at.rank; ++axis) {
      const abi::DimRecord& dim = program.dims[at.first_dim + static_cast<uint64_t>(axis)];
      *dims++ = dim.size;
      *symbols++ = program.text(dim.symbol);
    }
  }
}

int32_t describe_ports(LatheModel& model) {
  const ProgramView& program = model.program;
  uint64_t dims = 1;
  for (const abi::PortRecord& at : program.inputs) dims += at.rank > 0 ? static_cast<uint64_t>(at.rank) : 0;
  for (const abi::PortRecord& at : program.outputs) dims += at.rank > 0 ? static_cast<uint64_t>(at.rank) : 0;
  model.input_count = static_cast<int32_t>(program.given_inputs());
  model.output_count = static_cast<int32_t>(program.given_outputs());
  abi::Table<abi::PortRecord> states = {program.inputs.records + model.input_count, 0};
  while (states.count < program.states.count && states[states.count].kind == abi::ValueKind::tensor)
    dims += static_cast<uint64_t>(states[states.count++].rank);
  model.state_count = static_cast<int32_t>(states.count);
  model.states = static_cast<LatheValueInfo*>(std::calloc(states.count + 1, sizeof(LatheValueInfo)));
  model.inputs = static_cast<LatheValueInfo*>(std::calloc(program.inputs.count + 1, sizeof(LatheValueInfo)));
  model.outputs = static_cast<LatheValueInfo*>(std::calloc(program.outputs.count + 1, sizeof(LatheValueInfo)));
  model.port_dims = static_cast<int64_t*>(std::calloc(dims, sizeof(int64_t)));
  model.port_symbols = static_cast<const char**>(std::calloc(dims, sizeof(char*)));
  if (model.inputs == nullptr || model.outputs == nullptr || model.states == nullptr || model.port_dims == nullptr ||
      model.port_symbols == nullptr)
    return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory to open the artifact");
  int64_t* next_dim = model.port_dims;
  const char** next_symbol = model.port_symbols;
  describe(program, program.inputs, model.inputs, next_dim, next_symbol);
  describe(program, program.outputs, model.outputs, next_dim, next_symbol);
  describe(program, states, model.states, next_dim, next_symbol);
  for (uint64_t i = 0; i < states.count; ++i) {
    const abi::StateRecord& at = program.states[i];
    if (at.output != abi::absent) continue;
    const uint64_t first = static_cast<uint64_t>(model.states[i].dims - model.port_dims);
    model.port_dims[first + at.axis] = -1;
    model.port_symbols[first + at.axis] = program.text(program.inputs[program.given_inputs() + at.length].name);
  }
  return 0;
}

int32_t fill(LatheModel& model, const char* folder, const LatheOpenOptions* options) {
  const LatheArtifact& artifact = *model.artifact;
  if (const int32_t status = check_artifact(artifact)) return status;
  if (const int32_t status = find_weights(model, folder, options)) return status;
  if (option(options, &LatheOpenOptions::huge_pages) != 0) {
    if (const int32_t status = copy_weights(model)) return status;
  } else {
    want_huge_pages(model.weights, artifact.weights_bytes);
  }
  const ProgramSurroundings around = {model.weights, artifact.weights_bytes, artifact.kernel_count};
  if (const int32_t status = verify_program(artifact.program, artifact.program_bytes, around, &model.program))
    return status;
  if (const int32_t status = find_functions(model)) return status;
  if (const int32_t status = find_runtime_kernels(model, options)) return status;
  if (const int32_t status = make_strings(model)) return status;
  return describe_ports(model);
}

int32_t open_library(const char* name, const char* path, const LatheOpenOptions* options, LatheModel** model) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(LATHE_INVALID_ARTIFACT, nullptr, "%s: %s", name, dlerror());
  const char* symbol = option(options, &LatheOpenOptions::symbol);
  if (symbol == nullptr) symbol = LATHE_ARTIFACT_SYMBOL;
  const auto* artifact = static_cast<const LatheArtifact*>(dlsym(library, symbol));
  if (artifact == nullptr) {
    dlclose(library);
    return fail(LATHE_INVALID_ARTIFACT, nullptr, "%s: this shared library is no Lathe artifact (it has no symbol '%s')",
                name, symbol);
  }
  char folder[4096] = "";
  if (const char* slash = std::strrchr(name, '/'); slash != nullptr && slash - name < 4000)
    std::snprintf(folder, sizeof(folder), "%.*s", static_cast<int>(slash - name + 1), name);
  const int32_t status = open_model_in_process(artifact, folder, options, model);
  if (status == 0)
    (*model)->library = library;
  else
    dlclose(library);
  return status;
}

}  // namespace

int32_t open_model_in_process(const LatheArtifact* artifact, const char* folder, const LatheOpenOptions* options,
                              LatheModel** model) {
  auto* made = static_cast<LatheModel*>(std::calloc(1, sizeof(LatheModel)));
  if (made == nullptr) return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory to open the artifact");
  made->references = 1;
  made->artifact = artifact;
  const int32_t status = fill(*made, folder, options);
  if (status == 0)
    *model = made;
  else
    release(made);
  return status;
}

int32_t open_model(const char* path, const LatheOpenOptions* options, LatheModel** model) {
  Mapping file;
  if (const int32_t status = file.open(path)) return status;
  const int32_t status = check_library(path, file.memory, file.bytes);
  file.close();
  if (status != 0) return status;
  // A name without a slash would be searched for in the system's folders.
  char with_slash[4096];
  std::snprintf(with_slash, sizeof(with_slash), "%s%s", std::strchr(path, '/') == nullptr ? "./" : "", path);
  return open_library(path, with_slash, options, model);
}

int32_t open_model_in_memory(const void* bytes, uint64_t size, const LatheOpenOptions* options, LatheModel** model) {
  if (const int32_t status = check_library("artifact in memory", bytes, size)) return status;
#if defined(__linux__)
  const int file = memfd_create("lathe-artifact", MFD_CLOEXEC);
  if (file < 0) return fail(LATHE_IO_ERROR, nullptr, "no memory file for the artifact: %s", std::strerror(errno));
  uint64_t written = 0;
  while (written < size) {
    const ssize_t step = write(file, static_cast<const char*>(bytes) + written, size - written);
    if (step <= 0 && errno != EINTR) break;
    if (step > 0) written += static_cast<uint64_t>(step);
  }
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
  const int32_t status = written == size ? open_library("artifact in memory", path, options, model)
                                         : fail(LATHE_IO_ERROR, nullptr, "the artifact does not fit into memory: %s",
                                                std::strerror(errno));
  // The loader knows libraries by their path, so the number in it stays taken for as long as the library is there.
  if (status == 0)
    (*model)->library_file = file;
  else
    close(file);
  return status;
#else
  (void)options, (void)model;
  return fail(LATHE_IO_ERROR, nullptr, "a library in memory can be opened on Linux only");
#endif
}

void release(LatheModel* model) {
  if (model == nullptr || model->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (uint64_t i = 0; model->strings != nullptr && i < model->program.constants.count; ++i) release(model->strings[i]);
  std::free(model->strings);
  std::free(model->runtime_kernels);
  std::free(model->inputs);
  std::free(model->outputs);
  std::free(model->states);
  std::free(model->port_dims);
  std::free(static_cast<void*>(model->port_symbols));
  if (model->mapping != nullptr) munmap(model->mapping, model->mapping_bytes);
  std::free(model->copied_weights);
  if (model->library != nullptr) dlclose(model->library);
  if (model->library_file > 0) close(model->library_file);
  std::free(model);
}

}  // namespace lathe::runtime
