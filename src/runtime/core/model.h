// An opened artifact: what contexts share. Checked once, when it is opened.
#pragma once

#include <atomic>

#include "abi/artifact.h"
#include "abi/program.h"
#include "runtime/core/vector.h"

struct LatheModel {
  std::atomic<int32_t> references;
  const LatheArtifact* artifact;
  lathe::abi::ProgramView program;
  const char* weights;
  const LatheProgramFunction* functions;  // one for each of the program's, null where interpreted; null: all are
  LatheRuntimeKernel* runtime_kernels;    // one for each of the program's, none null
  LatheValue** strings;                   // for each constant, the tensor of strings it is, or null
  LatheValueInfo* inputs;                 // of the program, the states' behind the caller's
  LatheValueInfo* outputs;
  LatheValueInfo* states;                          // those that are tensors, as the model's inputs were
  int32_t input_count, output_count, state_count;  // the caller's
  int64_t* port_dims;                              // what the infos point into
  const char** port_symbols;                       // the same
  void* library;                                   // from dlopen, or null
  int library_file;                                // behind a library that was opened from memory, or 0
  void* mapping;                                   // external weights, or null
  uint64_t mapping_bytes;
  void* copied_weights;  // in huge pages, or null
};

namespace lathe::runtime {

int32_t open_model(const char* path, const LatheOpenOptions* options, LatheModel** model);
int32_t open_model_in_memory(const void* bytes, uint64_t size, const LatheOpenOptions* options, LatheModel** model);
int32_t open_model_in_process(const LatheArtifact* artifact, const char* folder, const LatheOpenOptions* options,
                              LatheModel** model);
void release(LatheModel* model);

// Whether a file looks like a whole shared library for this machine, before the system's loader maps it: that one does
// not survive truncated files. 0, or the error said.
int32_t check_library(const char* name, const void* bytes, uint64_t size);

}  // namespace lathe::runtime
