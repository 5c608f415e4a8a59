#include "runtime/core/program/verify_program.h"

#include <cstdlib>

#include "runtime/core/error.h"
#include "runtime/core/value.h"

namespace lathe::runtime {
namespace {

using namespace abi;

template <typename... Arguments>
int32_t refuse(const char* format, Arguments... arguments) {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-nonliteral"
#pragma clang diagnostic ignored "-Wformat-security"
  return fail(LATHE_INVALID_ARTIFACT, nullptr, format, arguments...);
#pragma clang diagnostic pop
}

using Number = unsigned long long;

bool inside(uint64_t offset, uint64_t count, uint64_t total) { return offset <= total && count <= total - offset; }
bool is_alignment(uint64_t alignment) {
  return alignment >= 1 && alignment <= 4096 && (alignment & (alignment - 1)) == 0;
}
bool is_dtype(DLDataType dtype) {
  return dtype.code <= kDLFloat4_e2m1fn && dtype.bits >= 1 && dtype.bits <= 128 && dtype.lanes >= 1;
}
bool same_dtype(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

struct Verifier {
  const ProgramView& program;
  const ProgramSurroundings& around;

  bool is_text(uint32_t index) const { return index < program.texts.count; }
  bool is_text_or_absent(uint32_t index) const { return index == absent || is_text(index); }

  int32_t tables() const {
    for (uint64_t i = 0; i < program.texts.count; ++i) {
      const TextRecord& at = program.texts[i];
      if (!inside(at.offset, static_cast<uint64_t>(at.length) + 1, program.text_bytes.count) ||
          program.text_bytes[static_cast<uint64_t>(at.offset) + at.length] != 0)
        return refuse("text %llu of the program lies outside of it", Number(i));
    }
    for (uint64_t i = 0; i < program.dims.count; ++i)
      if (program.dims[i].size < -1 || !is_text_or_absent(program.dims[i].symbol))
        return refuse("dim %llu of the program is damaged", Number(i));
    for (uint64_t i = 0; i < program.slices.count; ++i)
      if (program.slices[i].offset % 8 != 0 ||
          !inside(program.slices[i].offset, program.slices[i].bytes, program.data.count))
        return refuse("slice %llu of the program's data lies outside of it", Number(i));
    for (uint64_t i = 0; i < program.constants.count; ++i)
      if (const int32_t status = constant(i)) return status;
    for (uint64_t i = 0; i < program.runtime_kernels.count; ++i)
      if (!is_text(program.runtime_kernels[i].name)) return refuse("runtime kernel %llu has no name", Number(i));
    if (program.kernels.count != around.kernel_count)
      return refuse("the program has %llu kernels and the artifact %llu", Number(program.kernels.count),
                    Number(around.kernel_count));
    for (uint64_t i = 0; i < program.kernels.count; ++i)
      if (!is_text(program.kernels[i].name) || static_cast<uint32_t>(program.kernels[i].device) >= backend_count)
        return refuse("kernel %llu of the program is damaged", Number(i));
    if (const int32_t status = ports(program.inputs, "input")) return status;
    if (const int32_t status = ports(program.outputs, "output")) return status;
    if (const int32_t status = states()) return status;
    return memory();
  }

  int32_t states() const {
    const uint64_t count = program.states.count;
    if (count > program.inputs.count) return refuse("the program has more states than inputs");
    uint64_t replaced = 0;
    for (const StateRecord& at : program.states) replaced += at.output != absent ? 1 : 0;
    if (replaced > program.outputs.count) return refuse("the program replaces more states than it has outputs");
    uint64_t next = program.outputs.count - replaced;
    bool is_behind_scalars = false;
    for (uint64_t i = 0; i < count; ++i) {
      const StateRecord& at = program.states[i];
      const PortRecord& port = program.inputs[program.inputs.count - count + i];
      const bool is_tensor = port.kind == ValueKind::tensor;
      bool is_good = is_tensor ? !is_behind_scalars && port.rank >= 0 && port.dtype.bits % 8 == 0 && port.dtype.bits > 0
                               : port.kind == ValueKind::scalar && at.output != absent;
      if (at.output != absent)
        is_good = is_good && at.output == next && program.outputs[next++].kind == port.kind;
      else
        is_good = is_good && at.axis < static_cast<uint32_t>(port.rank) && at.length < count && has_memory(port) &&
                  program.inputs[program.inputs.count - count + at.length].kind == ValueKind::scalar;
      if (!is_good) return refuse("state %llu of the program is damaged", Number(i));
      is_behind_scalars = !is_tensor;
    }
    return 0;
  }

  bool has_memory(const PortRecord& port) const {
    int64_t shape[max_rank] = {};
    for (int32_t i = 0; i < port.rank; ++i) shape[i] = program.dims[port.first_dim + static_cast<uint64_t>(i)].size;
    int64_t count = 0;
    uint64_t bytes = 0;
    return tensor_extent(port.dtype, port.rank, shape, &count, &bytes) && bytes <= uint64_t{1} << 56;
  }

  int32_t constant(uint64_t index) const {
    const ConstantRecord& at = program.constants[index];
    const bool in_weights = at.section == ConstantSection::weights;
    const uint64_t total = in_weights ? around.weights_bytes : program.data.count;
    if ((at.kind != ValueKind::tensor && at.kind != ValueKind::strings) || at.section > ConstantSection::data ||
        at.rank > max_rank || !inside(at.first_dim, at.rank, program.dims.count) || !is_text(at.name) ||
        (at.kind == ValueKind::tensor && !is_dtype(at.dtype)))
      return refuse("constant %llu of the program is damaged", Number(index));
    if (!inside(at.offset, at.bytes, total))
      return refuse("constant '%s' lies outside of the %llu bytes of %s", program.text(at.name), Number(total),
                    in_weights ? "weights" : "the program's data");
    int64_t shape[max_rank] = {};
    for (uint32_t i = 0; i < at.rank; ++i) shape[i] = program.dims[at.first_dim + uint64_t{i}].size;
    int64_t count = 0;
    uint64_t bytes = 0;
    const DLDataType offset_type = {kDLUInt, 64, 1};
    const bool is_tensor = at.kind == ValueKind::tensor;
    if (!tensor_extent(is_tensor ? at.dtype : offset_type, at.rank, shape, &count, &bytes))
      return refuse("constant '%s' has the impossible shape %s", program.text(at.name),
                    shape_text(shape, at.rank).text);
    const uint64_t element = is_tensor ? at.dtype.bits / 8 : 8;
    const bool is_aligned =
        element == 0 || (element & (element - 1)) != 0 || at.offset % (element > 8 ? 8 : element) == 0;
    if (!is_aligned || bytes > at.bytes)
      return refuse("constant '%s' of shape %s does not fit its %llu bytes", program.text(at.name),
                    shape_text(shape, at.rank).text, Number(at.bytes));
    return is_tensor ? 0 : string_offsets(at, static_cast<uint64_t>(count), in_weights);
  }

  int32_t string_offsets(const ConstantRecord& at, uint64_t count, bool in_weights) const {
    const char* section = in_weights ? static_cast<const char*>(around.weights) : program.data.records;
    const uint64_t table = (count + 1) * 8;
    bool is_good = table <= at.bytes && section != nullptr && reinterpret_cast<uintptr_t>(section) % 8 == 0;
    const auto* offsets = reinterpret_cast<const uint64_t*>(section + at.offset);
    if (is_good) is_good = offsets[0] == 0 && offsets[count] <= at.bytes - table;
    for (uint64_t i = 0; is_good && i < count; ++i) is_good = offsets[i] <= offsets[i + 1];
    return is_good ? 0 : refuse("the strings of constant '%s' lie outside of it", program.text(at.name));
  }

  int32_t ports(const Table<PortRecord>& ports, const char* what) const {
    for (uint64_t i = 0; i < ports.count; ++i) {
      const PortRecord& at = ports[i];
      const bool has_dims = at.rank >= 0;
      if (!is_text(at.name) || at.kind < ValueKind::tensor || at.kind > ValueKind::optional || at.rank < -1 ||
          at.rank > static_cast<int32_t>(max_rank) ||
          (has_dims && !inside(at.first_dim, static_cast<uint64_t>(at.rank), program.dims.count)) ||
          (at.kind == ValueKind::tensor && at.dtype.bits != 0 && !is_dtype(at.dtype)))
        return refuse("%s %llu of the program is damaged", what, Number(i));
    }
    return 0;
  }

  int32_t memory() const {
    for (uint64_t i = 0; i < program.arenas.count; ++i) {
      const ArenaRecord& at = program.arenas[i];
      if (!is_alignment(at.alignment) || static_cast<uint32_t>(at.device) >= backend_count ||
          at.scope > Scope::host_visible || at.bytes > uint64_t{1} << 56)
        return refuse("arena %llu of the program is damaged", Number(i));
    }
    for (uint64_t i = 0; i < program.storages.count; ++i) {
      const StorageRecord& at = program.storages[i];
      if (!is_alignment(at.alignment) || static_cast<uint32_t>(at.device) >= backend_count ||
          at.scope > Scope::host_visible || at.kind > StorageKind::output)
        return refuse("storage %llu of the program is damaged", Number(i));
      if (at.kind == StorageKind::output &&
          (at.index >= program.outputs.count || program.outputs[at.index].kind != ValueKind::tensor ||
           at.device != Backend::cpu))
        return refuse("storage %llu belongs to no tensor output", Number(i));
      if (at.kind != StorageKind::planned) continue;
      if (at.index >= program.arenas.count) return refuse("storage %llu belongs to no arena", Number(i));
      const ArenaRecord& arena = program.arenas[at.index];
      if (arena.device != at.device || arena.scope != at.scope || !inside(at.offset, at.bytes, arena.bytes) ||
          at.offset % at.alignment != 0 || at.alignment > arena.alignment)
        return refuse("storage %llu does not fit its arena of %llu bytes", Number(i), Number(arena.bytes));
    }
    return 0;
  }

  int32_t functions() const {
    uint64_t registers = 0, instructions = 0;
    for (uint64_t i = 0; i < program.functions.count; ++i) {
      const FunctionRecord& at = program.functions[i];
      if (!is_text(at.name) || at.first_register != registers || at.first_instruction != instructions ||
          !inside(registers, at.register_count, program.registers.count) ||
          !inside(instructions, at.instruction_count, program.instructions.count) ||
          at.parameter_count > at.register_count || at.register_count >= immediate_bit || at.instruction_count == 0)
        return refuse("function %llu of the program is damaged", Number(i));
      registers += at.register_count;
      instructions += at.instruction_count;
    }
    for (uint64_t i = 0; i < program.registers.count; ++i) {
      const RegisterRecord& at = program.registers[i];
      if (at.kind < ValueKind::tensor || at.kind > ValueKind::optional || at.rank < -1 ||
          at.rank > static_cast<int32_t>(max_rank) || (at.dtype.bits != 0 && !is_dtype(at.dtype)) ||
          !is_text_or_absent(at.name))
        return refuse("register %llu of the program is damaged", Number(i));
    }
    for (uint64_t i = 0; i < program.functions.count; ++i)
      if (const int32_t status = function(program.functions[i])) return status;
    if (const int32_t status = main_function()) return status;
    return call_depth();
  }

  int32_t main_function() const {
    if (program.main >= program.functions.count) return refuse("the program has no main function");
    const FunctionRecord& main = program.functions[program.main];
    if (main.parameter_count != program.inputs.count || main.result_count != program.outputs.count)
      return refuse("the main function has %u parameters and %u results for %llu inputs and %llu outputs",
                    main.parameter_count, main.result_count, Number(program.inputs.count),
                    Number(program.outputs.count));
    for (uint32_t i = 0; i < main.parameter_count; ++i) {
      const RegisterRecord& at = program.registers[main.first_register + uint64_t{i}];
      const PortRecord& port = program.inputs[i];
      if (at.kind != port.kind || (at.dtype.bits != 0 && !same_dtype(at.dtype, port.dtype)) ||
          (at.rank >= 0 && at.rank != port.rank))
        return refuse("parameter %u of the main function is not the input '%s'", i, program.text(port.name));
    }
    return 0;
  }

  int32_t function(const FunctionRecord& function) const {
    for (uint32_t i = 0; i < function.instruction_count; ++i)
      if (const int32_t status = instruction(function, i)) return status;
    const Opcode last =
        program.instructions[function.first_instruction + uint64_t{function.instruction_count} - 1].opcode;
    if (last != Opcode::return_values && last != Opcode::jump && last != Opcode::branch)
      return refuse("function '%s' runs past its end", program.text(function.name));
    return 0;
  }

  bool is_register(const FunctionRecord& function, uint32_t word, ValueKind kind) const {
    return word < function.register_count &&
           (kind == ValueKind::empty || program.registers[function.first_register + uint64_t{word}].kind == kind);
  }
  bool is_scalar(const FunctionRecord& function, uint32_t word) const {
    if ((word & immediate_bit) != 0) return (word & ~immediate_bit) < program.integers.count;
    return is_register(function, word, ValueKind::scalar);
  }

  // Whether the word is what the letter of abi/instructions.def says.
  bool is_operand(const FunctionRecord& function, char letter, uint32_t word) const {
    switch (letter) {
      case 't':
      case 'T':
        return is_register(function, word, ValueKind::tensor);
      case 's':
        return is_register(function, word, ValueKind::scalar);
      case 'S':
        return is_scalar(function, word);
      case 'D':
        return word == absent || is_scalar(function, word);
      case 'x':
      case 'X':
        return is_register(function, word, ValueKind::strings);
      case 'q':
      case 'Q':
        return is_register(function, word, ValueKind::sequence);
      case 'o':
      case 'O':
        return is_register(function, word, ValueKind::optional);
      case 'u':
      case 'U':
        return is_register(function, word, ValueKind::tuple);
      case 'v':
      case 'V':
        return is_register(function, word, ValueKind::empty);
      case 'W':
        return word == absent || is_register(function, word, ValueKind::empty);
      case 'c':
        return word < program.constants.count;
      case 'm':
        return is_text(word);
      case 'a':
        return word == absent || word < program.slices.count;
      case 'k':
        return word < program.kernels.count;
      case 'r':
        return word < program.runtime_kernels.count;
      case 'b':
        return word < program.storages.count;
      case 'B':
        return word == absent || word < program.storages.count;
      case 'f':
        return word < program.functions.count;
      case 'l':
        return word < function.instruction_count;
      default:
        return false;
    }
  }

  int32_t instruction(const FunctionRecord& function, uint32_t index) const {
    const InstructionRecord& at = program.instructions[function.first_instruction + uint64_t{index}];
    if (static_cast<uint32_t>(at.opcode) >= opcode_count || !is_text_or_absent(at.node) ||
        !inside(at.first_operand, at.operand_count, program.operands.count))
      return refuse("instruction %u of function '%s' is damaged", index, program.text(function.name));
    const OpcodeRow& row = opcode_rows[static_cast<uint32_t>(at.opcode)];
    const uint32_t* words = program.operands.records + at.first_operand;
    uint32_t next = 0;
    bool is_good = true;
    for (const char* letter = row.operands; is_good && *letter != 0; ++letter) {
      uint32_t times = 1;
      if (*letter == '#') {
        is_good = next < at.operand_count;
        if (!is_good) break;
        times = words[next++];
        ++letter;
      }
      is_good = times <= at.operand_count - next;
      for (uint32_t i = 0; is_good && i < times; ++i) is_good = is_operand(function, *letter, words[next++]);
    }
    if (!is_good || next != at.operand_count || !fits(function, at.opcode, words))
      return refuse("instruction %u of function '%s', %s, has operands it cannot have", index,
                    program.text(function.name), row.name);
    return 0;
  }

  // What the letters do not say: counts and types that belong together.
  bool fits(const FunctionRecord& function, Opcode opcode, const uint32_t* words) const {
    const auto reg = [&](uint32_t word) -> const RegisterRecord& {
      return program.registers[function.first_register + uint64_t{word}];
    };
    const auto makes_tensor = [&](uint32_t word, uint32_t rank) {
      return reg(word).dtype.bits != 0 && rank <= max_rank &&
             (reg(word).rank < 0 || reg(word).rank == static_cast<int32_t>(rank));
    };
    switch (opcode) {
      case Opcode::alloc_tensor: {
        if (!makes_tensor(words[0], words[2])) return false;
        if (words[1] == absent || program.storages[words[1]].kind != StorageKind::output) return true;
        const DLDataType promised = program.outputs[program.storages[words[1]].index].dtype;
        return promised.bits == 0 || same_dtype(reg(words[0]).dtype, promised);
      }
      case Opcode::view:
        return makes_tensor(words[0], words[3]);
      case Opcode::reserve_storage:
        return program.storages[words[0]].kind == StorageKind::dynamic;
      case Opcode::load_constant: {
        const ConstantRecord& constant = program.constants[words[1]];
        const RegisterRecord& into = reg(words[0]);
        return into.kind == constant.kind && (constant.kind == ValueKind::strings ||
                                              ((into.dtype.bits == 0 || same_dtype(into.dtype, constant.dtype)) &&
                                               (into.rank < 0 || into.rank == constant.rank)));
      }
      case Opcode::match_shape:
        return words[2] <= max_rank;
      case Opcode::alloc_strings:
        return words[1] <= max_rank;
      case Opcode::call_kernel: {
        const KernelRecord& kernel = program.kernels[words[0]];
        return words[1] == kernel.buffer_count && words[2 + uint64_t{words[1]}] == kernel.scalar_count;
      }
      case Opcode::call_function: {
        const FunctionRecord& callee = program.functions[words[0]];
        return words[1] == callee.parameter_count && words[2 + uint64_t{words[1]}] == callee.result_count;
      }
      case Opcode::return_values:
        return words[0] == function.result_count;
      case Opcode::move:
        return reg(words[0]).kind == reg(words[1]).kind;
      default:
        return true;
    }
  }

  // The longest chain of calls to each function, by as many rounds as it may be long.
  int32_t call_depth() const {
    auto* depth = static_cast<uint32_t*>(std::calloc(program.functions.count + 1, sizeof(uint32_t)));
    if (depth == nullptr) return fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory to verify the program");
    bool is_changed = true;
    uint32_t deepest = 0;
    while (is_changed && deepest <= max_call_depth) {
      is_changed = false;
      for (uint64_t caller = 0; caller < program.functions.count; ++caller) {
        const FunctionRecord& at = program.functions[caller];
        for (uint64_t i = at.first_instruction; i < at.first_instruction + uint64_t{at.instruction_count}; ++i) {
          if (program.instructions[i].opcode != Opcode::call_function) continue;
          const uint32_t callee = program.operands[program.instructions[i].first_operand];
          if (depth[callee] > depth[caller]) continue;
          depth[callee] = depth[caller] + 1;
          is_changed = true;
          if (depth[callee] > deepest) deepest = depth[callee];
        }
      }
    }
    std::free(depth);
    if (deepest > max_call_depth)
      return refuse("functions call each other in a cycle or deeper than %u", max_call_depth);
    return 0;
  }
};

}  // namespace

int32_t verify_program(const void* bytes, uint64_t size, const ProgramSurroundings& around, ProgramView* view) {
  if (const char* message = view->parse(bytes, size)) return refuse("%s", message);
  const Verifier verifier = {*view, around};
  if (const int32_t status = verifier.tables()) return status;
  return verifier.functions();
}

}  // namespace lathe::runtime
