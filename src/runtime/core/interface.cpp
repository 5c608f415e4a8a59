// The C interface of abi/lathe.h over models, contexts and runs.
#include <cstdlib>
#include <cstring>

#include "abi/lathe.h"
#include "runtime/core/context.h"
#include "runtime/core/error.h"
#include "runtime/core/states.h"

using namespace lathe::runtime;

// Work is done when it is given, so a queue is the status of what has failed so far.
struct LatheQueue {
  LatheError error;
  char message[1024];
  char node[256];
};

namespace {

int32_t missing(const char* what) { return fail(LATHE_INVALID_ARGUMENT, nullptr, "%s is a null pointer", what); }

template <typename Pointer>
void clear(Pointer* outputs, int32_t count) {
  for (int32_t i = 0; outputs != nullptr && i < count; ++i) outputs[i] = nullptr;
}

}  // namespace

extern "C" {

const LatheError* lathe_last_error(void) { return &last_error(); }
uint32_t lathe_interface_version(void) { return LATHE_INTERFACE_VERSION; }

int32_t lathe_open(const char* path, const LatheOpenOptions* options, LatheModel** model) {
  if (path == nullptr || model == nullptr) return missing("the path or the place for the model");
  *model = nullptr;
  return open_model(path, options, model);
}

int32_t lathe_open_memory(const void* bytes, uint64_t size, const LatheOpenOptions* options, LatheModel** model) {
  if (bytes == nullptr || model == nullptr) return missing("the artifact or the place for the model");
  *model = nullptr;
  return open_model_in_memory(bytes, size, options, model);
}

int32_t lathe_open_artifact(const LatheArtifact* artifact, const LatheOpenOptions* options, LatheModel** model) {
  if (artifact == nullptr || model == nullptr) return missing("the artifact or the place for the model");
  *model = nullptr;
  return open_model_in_process(artifact, "", options, model);
}

void lathe_close(LatheModel* model) { release(model); }

int32_t lathe_input_count(const LatheModel* model) { return model->input_count; }
int32_t lathe_output_count(const LatheModel* model) { return model->output_count; }
int32_t lathe_state_count(const LatheModel* model) { return model->state_count; }
const LatheValueInfo* lathe_input(const LatheModel* model, int32_t index) {
  return index >= 0 && index < lathe_input_count(model) ? &model->inputs[index] : nullptr;
}
const LatheValueInfo* lathe_output(const LatheModel* model, int32_t index) {
  return index >= 0 && index < lathe_output_count(model) ? &model->outputs[index] : nullptr;
}

const LatheValueInfo* lathe_state(const LatheModel* model, int32_t index) {
  return index >= 0 && index < model->state_count ? &model->states[index] : nullptr;
}

const char* lathe_metadata(const LatheModel* model, const char* key) {
  const LatheArtifact& artifact = *model->artifact;
  for (uint64_t i = 0; i < artifact.metadata_count; ++i)
    if (std::strcmp(artifact.metadata[i].key, key) == 0) return artifact.metadata[i].value;
  return nullptr;
}
int32_t lathe_metadata_count(const LatheModel* model) { return static_cast<int32_t>(model->artifact->metadata_count); }
const char* lathe_metadata_key(const LatheModel* model, int32_t index) {
  return index >= 0 && index < lathe_metadata_count(model) ? model->artifact->metadata[index].key : nullptr;
}
const void* lathe_program(const LatheModel* model, uint64_t* bytes) {
  *bytes = model->program.byte_count;
  return model->program.bytes;
}

int32_t lathe_create_context(LatheModel* model, const LatheContextOptions* options, LatheContext** context) {
  if (model == nullptr || context == nullptr) return missing("the model or the place for the context");
  *context = nullptr;
  return create_context(model, options, context);
}
void lathe_destroy_context(LatheContext* context) { destroy_context(context); }
int32_t lathe_set_limits(LatheContext* context, const LatheContextOptions* limits) {
  return context == nullptr ? missing("the context") : set_limits(*context, limits);
}
void lathe_cancel(LatheContext* context) {
  if (context != nullptr) context->call.end(stop_cancelled);
}
uint64_t lathe_arena_bytes(const LatheContext* context) { return context->arena_bytes; }
uint64_t lathe_peak_heap_bytes(const LatheContext* context) {
  const uint64_t peak = context->account->peak.load(std::memory_order_relaxed);
  return peak > context->arena_bytes ? peak - context->arena_bytes : 0;
}
int32_t lathe_thread_count(const LatheContext* context) { return context->call.threads; }

int32_t lathe_run(LatheContext* context, const DLTensor* const* inputs, int32_t input_count, DLManagedTensor** outputs,
                  int32_t output_count) {
  clear(outputs, output_count);
  const DLTensor* none = nullptr;
  DLManagedTensor* nothing = nullptr;
  if (context == nullptr || (inputs == nullptr && input_count > 0) || (outputs == nullptr && output_count > 0))
    return missing("the context, the inputs or the outputs");
  return run(*context, {inputs == nullptr ? &none : inputs, nullptr, input_count},
             {nullptr, outputs == nullptr ? &nothing : outputs, nullptr, output_count});
}

int32_t lathe_run_into(LatheContext* context, const DLTensor* const* inputs, int32_t input_count,
                       const DLTensor* const* outputs, int32_t output_count) {
  const DLTensor* none = nullptr;
  if (context == nullptr || (inputs == nullptr && input_count > 0) || (outputs == nullptr && output_count > 0))
    return missing("the context, the inputs or the outputs");
  return run(*context, {inputs == nullptr ? &none : inputs, nullptr, input_count},
             {outputs == nullptr ? &none : outputs, nullptr, nullptr, output_count});
}

int32_t lathe_run_values(LatheContext* context, LatheValue* const* inputs, int32_t input_count, LatheValue** outputs,
                         int32_t output_count) {
  clear(outputs, output_count);
  LatheValue* none = nullptr;
  if (context == nullptr || (inputs == nullptr && input_count > 0) || (outputs == nullptr && output_count > 0))
    return missing("the context, the inputs or the outputs");
  return run(*context, {nullptr, inputs == nullptr ? &none : inputs, input_count},
             {nullptr, nullptr, outputs == nullptr ? &none : outputs, output_count});
}

int32_t lathe_reset_states(LatheContext* context) {
  return context == nullptr ? missing("the context") : reset_states(*context);
}
int32_t lathe_get_states(LatheContext* context, DLManagedTensor** states, int32_t state_count) {
  clear(states, state_count);
  if (context == nullptr || (states == nullptr && state_count > 0)) return missing("the context or the states");
  return get_states(*context, states, state_count);
}
int32_t lathe_set_states(LatheContext* context, const DLTensor* const* states, int32_t state_count) {
  if (context == nullptr || (states == nullptr && state_count > 0)) return missing("the context or the states");
  return set_states(*context, states, state_count);
}

int32_t lathe_create_queue(LatheContext* context, LatheQueue** queue) {
  if (context == nullptr || queue == nullptr) return missing("the context or the place for the queue");
  *queue = static_cast<LatheQueue*>(std::calloc(1, sizeof(LatheQueue)));
  return *queue != nullptr ? LATHE_OK : fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for a queue");
}

int32_t lathe_run_async(LatheContext* context, LatheQueue* queue, const DLTensor* const* inputs, int32_t input_count,
                        const DLTensor* const* outputs, int32_t output_count) {
  if (queue == nullptr) return missing("the queue");
  const int32_t status = lathe_run_into(context, inputs, input_count, outputs, output_count);
  if (status != LATHE_OK && queue->error.code == LATHE_OK) {
    std::strncpy(queue->message, last_error().message, sizeof(queue->message) - 1);
    std::strncpy(queue->node, last_error().node, sizeof(queue->node) - 1);
    queue->error = {status, queue->message, queue->node};
  }
  return status;
}

int32_t lathe_wait(LatheQueue* queue) {
  if (queue == nullptr) return missing("the queue");
  const int32_t status = queue->error.code;
  queue->error.code = LATHE_OK;
  return status == LATHE_OK ? LATHE_OK : fail(status, queue->node, "%s", queue->message);
}

void lathe_destroy_queue(LatheQueue* queue) { std::free(queue); }

void lathe_profile(LatheContext* context, int32_t enabled) {
  context->profiler.is_enabled = false;
  if (enabled != 0) context->profiler.enable(context->model->program);
}
void lathe_profile_reset(LatheContext* context) { context->profiler.reset(); }
int32_t lathe_profile_count(const LatheContext* context) { return context->profiler.entry_count(); }
int32_t lathe_profile_entry(const LatheContext* context, int32_t index, LatheProfileEntry* entry) {
  if (entry == nullptr) return missing("the place for the entry");
  if (context->profiler.entry(context->model->program, index, entry)) return LATHE_OK;
  return fail(LATHE_INVALID_ARGUMENT, nullptr, "the profile has %d entries, there is none %d",
              context->profiler.entry_count(), index);
}

}  // extern "C"
