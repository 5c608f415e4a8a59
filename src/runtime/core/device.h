// What a device is to the runtime: a table of functions, each of which takes a queue. Copies and launches may return
// before they are done; only wait blocks. A backend is a folder beside this one and a row in abi/backends.def; copy
// `null` to begin one. core/device_conformance_test.cpp says what a table must do.
#pragma once

#include <cstdint>

#include "abi/dlpack.h"
#include "abi/kernel.h"
#include "abi/program.h"

namespace lathe::runtime {

struct Device;

// Work in order on one device. A device keeps its own state behind it.
struct Queue {
  const Device* device;
  void* state;
};

struct Launch {
  LatheKernel kernel;
  const LatheServices* services;
  void* call_state;
  void* const* buffers;  // read before launch returns
  uint32_t buffer_count;
  const int64_t* scalars;
  uint32_t scalar_count;
  const char* name;
};

struct Device {
  const char* name;
  abi::Backend backend;
  DLDeviceType type;
  bool host_visible;  // the host may read and write its memory once the queue has been waited for
  bool executes;      // kernels run; the null device only records them

  // Null when there is no such device or no memory.
  Queue* (*create_queue)(int32_t device_id);
  void (*destroy_queue)(Queue* queue);
  // Null when there is no memory. Zero bytes give an address too. alignment is a power of two.
  void* (*allocate)(Queue* queue, abi::Scope scope, uint64_t bytes, uint64_t alignment);
  // After the work that is already in the queue.
  void (*release)(Queue* queue, abi::Scope scope, void* memory);
  // Between this device's memory and itself or the host's. Returns 0 or a LatheStatus.
  int32_t (*copy)(Queue* queue, void* to, const void* from, uint64_t bytes);
  int32_t (*launch)(Queue* queue, const Launch& launch);
  // Blocks until the queue is empty. The first failure since the last wait, or 0.
  int32_t (*wait)(Queue* queue);
};

// The table of a backend; every row of abi/backends.def has one.
const Device& device_of(abi::Backend backend);

#define LATHE_BACKEND(name, ...) const Device& name##_device();
#include "abi/backends.def"
#undef LATHE_BACKEND

}  // namespace lathe::runtime
