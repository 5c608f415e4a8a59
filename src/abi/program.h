// The linear register program: what a model does between its kernels, as flat bytes that the runtime interprets and
// code generation compiles (compiled_program.h). Little-endian, position-independent, every section 8-byte aligned.
// Records refer to each other by index. Nothing here may be trusted before runtime/core/program/verify_program.h has
// accepted it.
//
// Values live in registers, each with one declared kind. Function parameters are a function's first registers; the
// call graph has no cycles. Planned memory: an arena is one block of (device, scope) that a context allocates once; a
// storage is a part of an arena, or of dynamic size, or the memory of a result of the main function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dlpack.h"

namespace lathe::abi {

inline constexpr char program_magic[8] = {'L', 'T', 'H', 'P', 'R', 'O', 'G', '1'};
inline constexpr uint32_t program_version = 2;

// An index that is not there.
inline constexpr uint32_t absent = 0xFFFFFFFFu;
// Set in a scalar operand that is an index into the table of integers instead of a register.
inline constexpr uint32_t immediate_bit = 0x80000000u;

inline constexpr uint32_t max_rank = 64;

enum class Opcode : uint16_t {
#define LATHE_INSTRUCTION(name, operands) name,
#include "instructions.def"
#undef LATHE_INSTRUCTION
};

struct OpcodeRow {
  const char* name;
  const char* operands;
};
inline constexpr OpcodeRow opcode_rows[] = {
#define LATHE_INSTRUCTION(name, operands) {#name, operands},
#include "instructions.def"
#undef LATHE_INSTRUCTION
};
inline constexpr uint32_t opcode_count = sizeof(opcode_rows) / sizeof(opcode_rows[0]);

// Calls f(letter, word, position) for each operand of an instruction that a verifier has accepted; counts are left out.
template <typename Function>
void for_each_operand(Opcode opcode, const uint32_t* words, Function&& f) {
  uint32_t at = 0;
  for (const char* letter = opcode_rows[static_cast<uint16_t>(opcode)].operands; *letter != 0; ++letter) {
    uint32_t times = 1;
    if (*letter == '#') {
      times = words[at++];
      ++letter;
    }
    for (uint32_t i = 0; i < times; ++i, ++at) f(*letter, words[at], at);
  }
}

// Devices by number, in the order of backends.def.
enum class Backend : uint8_t {
#define LATHE_BACKEND(name, ...) name,
#include "backends.def"
#undef LATHE_BACKEND
};
inline constexpr const char* backend_names[] = {
#define LATHE_BACKEND(name, ...) #name,
#include "backends.def"
#undef LATHE_BACKEND
};
inline constexpr uint32_t backend_count = sizeof(backend_names) / sizeof(backend_names[0]);

// The same numbers as LatheValueKind.
enum class ValueKind : uint8_t { empty, tensor, scalar, tuple, strings, sequence, optional };
inline constexpr const char* value_kind_names[] = {"empty",   "tensor",   "scalar",  "tuple",
                                                   "strings", "sequence", "optional"};

enum class Scope : uint8_t { global, host_visible };

enum class StorageKind : uint8_t {
  planned,  // bytes [offset, offset + bytes) of an arena
  dynamic,  // sized by reserve_storage; bytes is an upper bound when the plan knows one, else 0
  output    // the memory of result `index` of the main function: the caller's, or newly allocated
};

// Where a constant's bytes lie: in the artifact's weights, or in this program's data section (small ones).
enum class ConstantSection : uint8_t { weights, data };

struct TextRecord {  // a text of `length` bytes at `offset` of the text bytes, followed by a zero byte
  uint32_t offset, length;
};
struct DimRecord {
  int64_t size;     // -1 where it is symbolic
  uint32_t symbol;  // text, or absent
  uint32_t reserved;
};
struct SliceRecord {  // of the data section; offset is a multiple of 8
  uint64_t offset, bytes;
};
// A tensor is compact and row-major. A tensor of strings is count + 1 uint64 offsets into the bytes after them.
struct ConstantRecord {
  uint64_t offset, bytes;
  DLDataType dtype;
  ValueKind kind;  // tensor or strings
  ConstantSection section;
  uint16_t rank;
  uint32_t first_dim;
  uint32_t name;  // text
};
struct ArenaRecord {
  uint64_t bytes;
  uint32_t alignment;  // a power of two up to 4096
  Backend device;
  Scope scope;
  uint16_t reserved;
};
struct StorageRecord {
  uint64_t offset, bytes;
  uint32_t index;      // planned: arena; output: result; dynamic: 0
  uint32_t alignment;  // a power of two up to 4096
  StorageKind kind;
  Backend device;
  Scope scope;
  uint8_t reserved[5];
};
struct KernelRecord {
  uint32_t name;  // text
  uint32_t buffer_count, scalar_count;
  Backend device;
  uint8_t reserved[3];
};
struct RuntimeKernelRecord {
  uint32_t name;  // text
  uint32_t reserved;
};
struct RegisterRecord {
  DLDataType dtype;  // of a tensor
  int16_t rank;      // -1 when it is not known
  ValueKind kind;
  uint8_t reserved;
  uint32_t name;  // text, or absent
};
struct FunctionRecord {
  uint32_t name;  // text
  uint32_t first_instruction, instruction_count;
  uint32_t first_register, register_count;
  uint32_t parameter_count, result_count;
  uint32_t reserved;
};
struct InstructionRecord {
  Opcode opcode;
  uint16_t reserved;
  uint32_t node;  // text: the model's node it belongs to, or absent
  uint32_t first_operand, operand_count;
};
struct PortRecord {  // an input or an output of the main function
  uint32_t name;     // text
  DLDataType dtype;
  int32_t rank;  // -1 when it is not known
  uint32_t first_dim;
  ValueKind kind;
  uint8_t reserved[7];
};

// A value that a context keeps from one run to the next. The states' inputs are the last ones, in this order, tensors
// before scalars; the results that replace states are the last outputs, in the same order.
struct StateRecord {
  uint32_t output;  // what it is after a run; absent: a run writes into its memory, behind what counts
  uint32_t length;  // of what is written to in memory: the state, a scalar, that says how many elements count
  uint32_t axis;    // and along which axis
  uint32_t reserved;
};

// Sections in the order of the header's table. X(name, record)
#define LATHE_PROGRAM_SECTIONS(X)         \
  X(texts, TextRecord)                    \
  X(text_bytes, char)                     \
  X(integers, int64_t)                    \
  X(dims, DimRecord)                      \
  X(data, char)                           \
  X(slices, SliceRecord)                  \
  X(constants, ConstantRecord)            \
  X(arenas, ArenaRecord)                  \
  X(storages, StorageRecord)              \
  X(kernels, KernelRecord)                \
  X(runtime_kernels, RuntimeKernelRecord) \
  X(registers, RegisterRecord)            \
  X(functions, FunctionRecord)            \
  X(instructions, InstructionRecord)      \
  X(operands, uint32_t)                   \
  X(inputs, PortRecord)                   \
  X(outputs, PortRecord)                  \
  X(states, StateRecord)

enum class Section : uint32_t {
#define X(name, record) name,
  LATHE_PROGRAM_SECTIONS(X)
#undef X
      count
};

struct SectionRecord {
  uint64_t offset, count;  // count of records
};

struct ProgramHeader {
  char magic[8];
  uint32_t version;
  uint32_t main;  // function
  uint64_t bytes;
  SectionRecord sections[static_cast<uint32_t>(Section::count)];
};

static_assert(sizeof(DLDataType) == 4 && sizeof(ConstantRecord) == 32 && sizeof(StorageRecord) == 32);
static_assert(sizeof(RegisterRecord) == 12 && sizeof(InstructionRecord) == 16 && sizeof(PortRecord) == 24 &&
              sizeof(StateRecord) == 16);

// One section of a program.
template <typename Record>
struct Table {
  const Record* records = nullptr;
  uint64_t count = 0;
  const Record& operator[](uint64_t index) const { return records[index]; }
  const Record* begin() const { return records; }
  const Record* end() const { return records + count; }
};

// The sections of a program as tables. `parse` makes sure that every section lies inside the bytes and nothing more:
// the indices in the records are still unchecked.
struct ProgramView {
#define X(name, record) Table<record> name;
  LATHE_PROGRAM_SECTIONS(X)
#undef X
  uint32_t main = 0;
  const void* bytes = nullptr;
  uint64_t byte_count = 0;

  // Null when the sections are in bounds, else what is wrong.
  const char* parse(const void* program, uint64_t size) {
    *this = ProgramView{};
    if (program == nullptr || size < sizeof(ProgramHeader)) return "the program is shorter than its header";
    if (reinterpret_cast<uintptr_t>(program) % 8 != 0) return "the program is not aligned to 8 bytes";
    const auto* header = static_cast<const ProgramHeader*>(program);
    for (int i = 0; i < 8; ++i)
      if (header->magic[i] != program_magic[i]) return "the program does not begin with its magic";
    if (header->version != program_version) return "the program is of a version this runtime does not read";
    if (header->bytes != size) return "the program's size is not the one its header states";
    bytes = program;
    byte_count = size;
    main = header->main;
    const auto take = [&](Section section, uint64_t record_bytes, auto& table) {
      const SectionRecord& at = header->sections[static_cast<uint32_t>(section)];
      if (at.offset % 8 != 0 || at.offset > size || at.count > (size - at.offset) / record_bytes) return false;
      using Pointer = decltype(table.records);
      table.records = reinterpret_cast<Pointer>(static_cast<const char*>(program) + at.offset);
      table.count = at.count;
      return true;
    };
#define X(name, record) \
  if (!take(Section::name, sizeof(record), name)) return "the program's section '" #name "' lies outside of it";
    LATHE_PROGRAM_SECTIONS(X)
#undef X
    return nullptr;
  }

  // Of inputs and outputs those that are no states': a caller's.
  uint64_t given_inputs() const { return inputs.count - states.count; }
  uint64_t given_outputs() const {
    uint64_t replaced = 0;
    for (const StateRecord& state : states) replaced += state.output != absent ? 1 : 0;
    return outputs.count - replaced;
  }

  // A text as a C string; "" where it is absent. Only for a verified program.
  const char* text(uint32_t index) const { return index == absent ? "" : text_bytes.records + texts[index].offset; }
};

}  // namespace lathe::abi
