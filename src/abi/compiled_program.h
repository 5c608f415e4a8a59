// The register program as machine code. Code generation may compile each function of a program (program.h) to one
// function of C; the encoded program stays beside it, for runs that are profiled, counted or looked at.
//
// Compiled code keeps shape scalars and the tensors of planned memory in machine registers, and leaves everything else
// to the runtime: it hands an instruction back (`execute`) when the instruction is not worth code, and when one of its
// checks fails, so that errors are said in one place. Before, the operands are put where the runtime looks for them.
#pragma once

#include "kernel.h"
#include "lathe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LATHE_PROGRAM_SERVICES_VERSION 1u

// A register of a function. The object outlives its value, to be filled again by the next run without an allocation.
typedef struct LatheRegister {
  LatheValue* object;
  int64_t scalar;
  int32_t is_live;
} LatheRegister;

// The memory of a storage of dynamic size; null before it has any.
typedef struct LatheDynamicStorage {
  void* memory;
  uint64_t bytes;
} LatheDynamicStorage;

typedef struct LatheProgramServices LatheProgramServices;

// One call of one function, for as long as it lasts.
typedef struct LatheProgramRun {
  const LatheProgramServices* services;
  const LatheServices* kernel_services;
  LatheCallState* call_state;
  const int32_t* error_code;  // other than 0 once a kernel of this run has raised an error, from any thread
  const LatheKernel* kernels;
  void* const* arenas;
  const LatheDynamicStorage* storages;  // one a storage of the program
  const void* sections[2];              // weights and data, as ConstantSection numbers them
  LatheRegister* registers;             // of the function; the parameters are set
} LatheProgramRun;

typedef int32_t (*LatheProgramFunction)(const LatheProgramRun* run);

// The table only grows at its end; `version` rises when the meaning of an entry changes.
struct LatheProgramServices {
  uint32_t version;        // LATHE_PROGRAM_SERVICES_VERSION
  uint32_t size;           // sizeof(LatheProgramServices)
  uint64_t tensor_offset;  // where the DLTensor of an object that is a tensor lies in it

  // Does what the interpreter does for an instruction, by its number in the function, on the run's registers. Not for
  // those that choose the next one. Returns 0, or the code of the error it has said.
  int32_t (*execute)(const LatheProgramRun* run, uint32_t instruction);
  // The same for an instruction whose operands compiled code has found wrong; never returns 0.
  int32_t (*refuse)(const LatheProgramRun* run, uint32_t instruction);
  // Says why the run ends at the instruction: `status` is what its kernel returned, or 0 where a kernel has raised an
  // error, or the call is to stop. Returns the code to leave with; 0 when there is no reason to.
  int32_t (*leave)(const LatheProgramRun* run, uint32_t instruction, int32_t status);
  // The register's value becomes a tensor of its declared dtype in memory that is somebody else's. Returns 0, or the
  // code of the error it has said.
  int32_t (*set_tensor)(const LatheProgramRun* run, uint32_t instruction, uint32_t reg, void* data, const int64_t* dims,
                        int32_t rank, int32_t is_constant);
};

#ifdef __cplusplus
}
#endif
