// Writes a register program (program.h). Used by lower/program and by tests.
//
//   ProgramWriter program;
//   uint32_t kernel = program.kernel({.name = "add", .buffer_count = 3});
//   program.input({.name = "x", .dtype = f32, .dims = {{4}}}); ...
//   FunctionWriter main = program.function("main");
//   uint32_t x = main.parameter(ValueKind::tensor, f32, 1, "x");
//   main.emit(Opcode::call_kernel, {kernel, 3, x, y, z, 0}, "Add_1");
//   main.emit(Opcode::return_values, {1, z});
//   program.finish_function(std::move(main));
//   std::vector<char> bytes = program.finish();
//
// Operands are the words that instructions.def describes. The writer does not check them; the runtime's verifier does.
#pragma once

#include <cstring>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program.h"

namespace lathe::abi {

struct DimSpec {
  int64_t size = -1;
  std::string symbol = {};
};
struct PortSpec {
  std::string name;
  ValueKind kind = ValueKind::tensor;
  DLDataType dtype = {};
  std::vector<DimSpec> dims = {};
  bool unknown_rank = false;
};
struct ConstantSpec {
  std::string name;
  DLDataType dtype = {};
  std::vector<int64_t> shape = {};
  ConstantSection section = ConstantSection::weights;
  uint64_t offset = 0;  // of the section
  uint64_t bytes = 0;
  ValueKind kind = ValueKind::tensor;
};
struct KernelSpec {
  std::string name;
  uint32_t buffer_count = 0;
  uint32_t scalar_count = 0;
  Backend device = Backend::cpu;
};
struct ArenaSpec {
  uint64_t bytes = 0;
  uint32_t alignment = 64;
  Backend device = Backend::cpu;
  Scope scope = Scope::global;
};
struct StorageSpec {
  StorageKind kind = StorageKind::planned;
  uint32_t index = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t alignment = 64;
  Backend device = Backend::cpu;
  Scope scope = Scope::global;
};

class ProgramWriter;

// One function in the making. Labels are numbers from label(); emit them where an operand is 'l'.
class FunctionWriter {
 public:
  uint32_t parameter(ValueKind kind, DLDataType dtype = {}, int16_t rank = -1, std::string_view name = {});
  uint32_t reg(ValueKind kind, DLDataType dtype = {}, int16_t rank = -1, std::string_view name = {});

  void emit(Opcode opcode, std::vector<uint32_t> operands, std::string_view node = {});

  uint32_t label() {
    labels.push_back(absent);
    return static_cast<uint32_t>(labels.size() - 1);
  }
  // The label is the instruction that is emitted next.
  void bind(uint32_t label) { labels[label] = static_cast<uint32_t>(instructions.size()); }

  uint32_t instruction_count() const { return static_cast<uint32_t>(instructions.size()); }

 private:
  friend class ProgramWriter;
  FunctionWriter(ProgramWriter& program, uint32_t index) : program(&program), index(index) {}

  struct Emitted {
    Opcode opcode;
    uint32_t node;
    std::vector<uint32_t> operands;
  };
  ProgramWriter* program;
  uint32_t index;
  uint32_t parameters = 0;
  std::vector<RegisterRecord> registers;
  std::vector<Emitted> instructions;
  std::vector<uint32_t> labels;
};

class ProgramWriter {
 public:
  // The index of a text; equal texts share one.
  uint32_t text(std::string_view value) {
    const auto [at, is_new] = text_index.try_emplace(std::string(value), static_cast<uint32_t>(table.texts.size()));
    if (is_new) {
      table.texts.push_back({static_cast<uint32_t>(table.text_bytes.size()), static_cast<uint32_t>(value.size())});
      table.text_bytes.insert(table.text_bytes.end(), value.begin(), value.end());
      table.text_bytes.push_back('\0');
    }
    return at->second;
  }

  // A scalar operand that is this number.
  uint32_t immediate(int64_t value) {
    const auto [at, is_new] = integer_index.try_emplace(value, static_cast<uint32_t>(table.integers.size()));
    if (is_new) table.integers.push_back(value);
    return at->second | immediate_bit;
  }

  // Appends to the data section and gives the offset; for attributes use slice().
  uint64_t data(const void* source, uint64_t size, uint64_t alignment = 8) {
    while (table.data.size() % alignment != 0) table.data.push_back('\0');
    const uint64_t offset = table.data.size();
    const auto* from = static_cast<const char*>(source);
    table.data.insert(table.data.end(), from, from + size);
    return offset;
  }
  uint32_t slice(const void* source, uint64_t size) {
    table.slices.push_back({data(source, size), size});
    return static_cast<uint32_t>(table.slices.size() - 1);
  }

  uint32_t constant(const ConstantSpec& spec) {
    ConstantRecord record{};
    record.offset = spec.offset;
    record.bytes = spec.bytes;
    record.dtype = spec.dtype;
    record.kind = spec.kind;
    record.section = spec.section;
    record.rank = static_cast<uint16_t>(spec.shape.size());
    record.first_dim = static_cast<uint32_t>(table.dims.size());
    record.name = text(spec.name);
    for (const int64_t size : spec.shape) table.dims.push_back({size, absent, 0});
    table.constants.push_back(record);
    return static_cast<uint32_t>(table.constants.size() - 1);
  }

  // A constant tensor of strings, in the data section.
  uint32_t string_constant(std::string_view name, std::vector<int64_t> shape, const std::vector<std::string>& values) {
    std::vector<uint64_t> offsets = {0};
    std::string all;
    for (const std::string& value : values) {
      all += value;
      offsets.push_back(all.size());
    }
    const uint64_t offset = data(offsets.data(), offsets.size() * sizeof(uint64_t));
    data(all.data(), all.size(), 1);
    return constant({.name = std::string(name),
                     .shape = std::move(shape),
                     .section = ConstantSection::data,
                     .offset = offset,
                     .bytes = table.data.size() - offset,
                     .kind = ValueKind::strings});
  }

  uint32_t arena(const ArenaSpec& spec) {
    table.arenas.push_back({spec.bytes, spec.alignment, spec.device, spec.scope, 0});
    return static_cast<uint32_t>(table.arenas.size() - 1);
  }
  uint32_t storage(const StorageSpec& spec) {
    table.storages.push_back(
        {spec.offset, spec.bytes, spec.index, spec.alignment, spec.kind, spec.device, spec.scope, {}});
    return static_cast<uint32_t>(table.storages.size() - 1);
  }
  uint32_t kernel(const KernelSpec& spec) {
    table.kernels.push_back({text(spec.name), spec.buffer_count, spec.scalar_count, spec.device, {}});
    return static_cast<uint32_t>(table.kernels.size() - 1);
  }
  uint32_t runtime_kernel(std::string_view name) {
    table.runtime_kernels.push_back({text(name), 0});
    return static_cast<uint32_t>(table.runtime_kernels.size() - 1);
  }
  void input(const PortSpec& spec) { table.inputs.push_back(port(spec)); }
  void output(const PortSpec& spec) { table.outputs.push_back(port(spec)); }
  // States in the order of their inputs (program.h).
  void state(const StateRecord& record) { table.states.push_back(record); }

  // Functions are numbered in the order they are begun; call_function takes that number, so it may come before the
  // function is finished.
  FunctionWriter function(std::string_view name) {
    table.functions.push_back({});
    table.functions.back().name = text(name);
    return FunctionWriter(*this, static_cast<uint32_t>(table.functions.size() - 1));
  }
  static uint32_t index_of(const FunctionWriter& function) { return function.index; }

  void finish_function(FunctionWriter function) {
    FunctionRecord& record = table.functions[function.index];
    record.first_instruction = static_cast<uint32_t>(table.instructions.size());
    record.instruction_count = static_cast<uint32_t>(function.instructions.size());
    record.first_register = static_cast<uint32_t>(table.registers.size());
    record.register_count = static_cast<uint32_t>(function.registers.size());
    record.parameter_count = function.parameters;
    table.registers.insert(table.registers.end(), function.registers.begin(), function.registers.end());
    for (FunctionWriter::Emitted& at : function.instructions) {
      if (at.opcode == Opcode::return_values && !at.operands.empty()) record.result_count = at.operands[0];
      resolve_labels(at, function.labels);
      table.instructions.push_back({at.opcode, 0, at.node, static_cast<uint32_t>(table.operands.size()),
                                    static_cast<uint32_t>(at.operands.size())});
      table.operands.insert(table.operands.end(), at.operands.begin(), at.operands.end());
    }
  }

  // The program's bytes. `main` is the function that runs.
  std::vector<char> finish(uint32_t main = 0) const {
    std::vector<char> bytes(sizeof(ProgramHeader));
    ProgramHeader header{};
    std::memcpy(header.magic, program_magic, sizeof(program_magic));
    header.version = program_version;
    header.main = main;
    const auto put = [&](Section section, const auto& records) {
      bytes.resize((bytes.size() + 7) / 8 * 8);
      header.sections[static_cast<uint32_t>(section)] = {bytes.size(), records.size()};
      const auto* from = reinterpret_cast<const char*>(records.data());
      if (!records.empty()) bytes.insert(bytes.end(), from, from + records.size() * sizeof(records[0]));
    };
#define X(name, record) put(Section::name, table.name);
    LATHE_PROGRAM_SECTIONS(X)
#undef X
    bytes.resize((bytes.size() + 7) / 8 * 8);
    header.bytes = bytes.size();
    std::memcpy(bytes.data(), &header, sizeof(header));
    return bytes;
  }

 private:
  PortRecord port(const PortSpec& spec) {
    PortRecord record{};
    record.name = text(spec.name);
    record.dtype = spec.dtype;
    record.rank = spec.unknown_rank ? -1 : static_cast<int32_t>(spec.dims.size());
    record.first_dim = static_cast<uint32_t>(table.dims.size());
    record.kind = spec.kind;
    for (const DimSpec& dim : spec.dims)
      table.dims.push_back({dim.size, dim.symbol.empty() ? absent : text(dim.symbol), 0});
    return record;
  }

  // Replaces the numbers of labels by instruction indices, walking the operand letters.
  static void resolve_labels(FunctionWriter::Emitted& at, const std::vector<uint32_t>& labels) {
    size_t word = 0;
    for (const char* letter = opcode_rows[static_cast<uint16_t>(at.opcode)].operands; *letter != 0; ++letter) {
      if (*letter == '#') {
        word += word < at.operands.size() ? at.operands[word] + 1 : 1;
        ++letter;
        continue;
      }
      if (*letter == 'l' && word < at.operands.size() && at.operands[word] < labels.size())
        at.operands[word] = labels[at.operands[word]];
      ++word;
    }
  }

  std::map<std::string, uint32_t> text_index;
  std::map<int64_t, uint32_t> integer_index;
  struct Tables {
#define X(name, record) std::vector<record> name;
    LATHE_PROGRAM_SECTIONS(X)
#undef X
  } table;
};

inline uint32_t FunctionWriter::reg(ValueKind kind, DLDataType dtype, int16_t rank, std::string_view name) {
  registers.push_back({dtype, rank, kind, 0, name.empty() ? absent : program->text(name)});
  return static_cast<uint32_t>(registers.size() - 1);
}

inline uint32_t FunctionWriter::parameter(ValueKind kind, DLDataType dtype, int16_t rank, std::string_view name) {
  ++parameters;
  return reg(kind, dtype, rank, name);
}

inline void FunctionWriter::emit(Opcode opcode, std::vector<uint32_t> operands, std::string_view node) {
  instructions.push_back({opcode, node.empty() ? absent : program->text(node), std::move(operands)});
}

}  // namespace lathe::abi
