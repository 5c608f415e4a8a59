#include "runtime/core/program/compiled_functions.h"

#include <cstddef>

#include "abi/call_kernel.h"
#include "runtime/core/error.h"
#include "runtime/core/program/interpreter.h"

namespace lathe::runtime {
namespace {

// What compiled code is handed is the first member, so that services find the rest.
struct Run {
  LatheProgramRun shared;
  LatheContext& context;
  const abi::FunctionRecord& function;

  static const Run& of(const LatheProgramRun* shared) { return *reinterpret_cast<const Run*>(shared); }

  Frame frame(uint32_t instruction) const {
    const abi::ProgramView& program = context.model->program;
    return {context, program, function, shared.registers,
            program.instructions.records + function.first_instruction + instruction};
  }
};

int32_t leave(const LatheProgramRun* shared, uint32_t instruction, int32_t status) {
  const Run& run = Run::of(shared);
  const Frame frame = run.frame(instruction);
  CallState& call = run.context.call;
  const bool is_kernel = frame.at->opcode == abi::Opcode::call_kernel;
  if (status == 0 && call.error_code.load(std::memory_order_acquire) == 0) {
    if (!call.is_stopped()) return 0;
    status = services.stop(&call);
  }
  status = call.report(status, frame.node(), is_kernel ? instruction_name(frame.program, *frame.at) : "");
  at_node(frame.node());
  return status;
}

int32_t execute_one(const LatheProgramRun* shared, uint32_t instruction) {
  const Run& run = Run::of(shared);
  if (run.context.call.is_stopped()) [[unlikely]]
    return leave(shared, instruction, 0);
  const Frame frame = run.frame(instruction);
  const int32_t status = execute(frame, frame.program.operands.records + frame.at->first_operand);
  if (status != 0) at_node(frame.node());
  return status;
}

int32_t refuse(const LatheProgramRun* shared, uint32_t instruction) {
  if (const int32_t status = execute_one(shared, instruction)) return status;
  return failed(Run::of(shared).frame(instruction), LATHE_INVALID_ARTIFACT,
                "compiled code refuses an instruction that the runtime accepts: they are of different builds");
}

int32_t set_tensor(const LatheProgramRun* shared, uint32_t instruction, uint32_t reg, void* data, const int64_t* dims,
                   int32_t rank, int32_t is_constant) {
  const Frame frame = Run::of(shared).frame(instruction);
  const int32_t status = lend_tensor(frame, reg, data, dims, rank, is_constant != 0);
  if (status != 0) at_node(frame.node());
  return status;
}

constexpr LatheProgramServices program_services = {
    .version = LATHE_PROGRAM_SERVICES_VERSION,
    .size = sizeof(LatheProgramServices),
    .tensor_offset = offsetof(LatheValue, tensor),
    .execute = execute_one,
    .refuse = refuse,
    .leave = leave,
    .set_tensor = set_tensor,
};

// As in abi/call_kernel.h: generated code has no type in front of it for the sanitizer of calls.
[[clang::no_sanitize("function")]] int32_t call(LatheProgramFunction code, const LatheProgramRun* run) {
  return code(run);
}

}  // namespace

int32_t run_compiled(LatheContext& context, const abi::FunctionRecord& function, LatheProgramFunction code) {
  const LatheModel& model = *context.model;
  const Run run = {
      .shared =
          {
              .services = &program_services,
              .kernel_services = &services,
              .call_state = &context.call.shared,
              .error_code = reinterpret_cast<const int32_t*>(&context.call.error_code),
              .kernels = model.artifact->kernels,
              .arenas = context.arenas.elements,
              .storages = context.dynamic_memory.elements,
              .sections = {model.weights, model.program.data.records},
              .registers = context.slots.elements + function.first_register,
          },
      .context = context,
      .function = function,
  };
  return call(code, &run.shared);
}

}  // namespace lathe::runtime
