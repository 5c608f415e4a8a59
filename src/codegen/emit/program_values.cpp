#include "codegen/emit/program_values.h"

#include "abi/tensor_extent.h"
#include "support/mutation.h"

namespace lathe::codegen {

using abi::Opcode;
using abi::StorageKind;
using abi::ValueKind;

LATHE_FAULT(program_dims_of_first, "codegen_llvm_test", "a register has the dims of what wrote it first");

namespace {

constexpr std::string_view written_letters = "tsxqouv", read_letters = "TSDXQOUVW";

bool contains(std::string_view letters, char letter) { return letters.find(letter) != std::string_view::npos; }

// One function with its instructions at hand.
class Analysis {
 public:
  Analysis(const abi::ProgramView& program, const abi::FunctionRecord& function)
      : program_(program), function_(function) {
    for (uint32_t i = 0; i < function.instruction_count; ++i) {
      const abi::InstructionRecord& at = program.instructions[function.first_instruction + uint64_t{i}];
      code_.push_back({at.opcode, program.operands.records + at.first_operand});
    }
  }

  std::optional<ProgramValues> run() {
    if (!runs_on_host()) return std::nullopt;
    find_labels();
    if (!assigned_before_read()) return std::nullopt;
    count_writers();
    find_lent();
    return std::move(values_);
  }

 private:
  struct Instruction {
    Opcode opcode;
    const uint32_t* words;
  };

  const abi::RegisterRecord& reg(uint32_t index) const {
    return program_.registers[function_.first_register + uint64_t{index}];
  }

  bool runs_on_host() const {
    const auto on_host = [](const auto& record) { return record.device == abi::Backend::cpu; };
    return std::all_of(program_.arenas.begin(), program_.arenas.end(), on_host) &&
           std::all_of(program_.storages.begin(), program_.storages.end(), on_host) &&
           std::all_of(program_.kernels.begin(), program_.kernels.end(), on_host);
  }

  void find_labels() {
    values_.is_label.resize(code_.size());
    for (const Instruction& at : code_)
      abi::for_each_operand(at.opcode, at.words, [&](char letter, uint32_t word, uint32_t) {
        if (letter == 'l') values_.is_label[word] = true;
      });
  }

  // ---- every read is of a register that has a value on all ways to it ----

  using Registers = std::vector<bool>;

  // The registers with a value after the instruction; false where it reads one that has none.
  bool step(const Instruction& at, Registers& has_value) const {
    bool is_good = true;
    abi::for_each_operand(at.opcode, at.words, [&](char letter, uint32_t word, uint32_t) {
      if (is_register(letter, word) && reads_operand(at.opcode, letter)) is_good = is_good && has_value[word];
    });
    abi::for_each_operand(at.opcode, at.words, [&](char letter, uint32_t word, uint32_t) {
      if (at.opcode == Opcode::kill) has_value[word] = false;
      if (is_register(letter, word) && writes_operand(letter)) has_value[word] = true;
    });
    return is_good;
  }

  // Runs over stretches between labels until nothing changes; what a label knows only shrinks.
  bool assigned_before_read() {
    values_.is_reached.resize(code_.size());
    std::map<uint32_t, Registers> at_label;
    Registers start(function_.register_count);
    std::fill_n(start.begin(), function_.parameter_count, true);
    std::vector<uint32_t> waiting = {0};
    at_label[0] = start;
    const auto flow = [&](uint32_t to, const Registers& has_value) {
      const auto [it, is_new] = at_label.try_emplace(to, has_value);
      bool is_changed = is_new;
      for (size_t r = 0; !is_new && r < has_value.size(); ++r)
        if (it->second[r] && !has_value[r]) it->second[r] = false, is_changed = true;
      if (is_changed) waiting.push_back(to);
    };
    while (!waiting.empty()) {
      uint32_t i = waiting.back();
      waiting.pop_back();
      Registers has_value = at_label.at(i);
      for (;;) {
        const Instruction& at = code_[i];
        values_.is_reached[i] = true;
        if (!step(at, has_value)) return false;
        abi::for_each_operand(at.opcode, at.words, [&](char letter, uint32_t word, uint32_t) {
          if (letter == 'l') flow(word, has_value);
        });
        const bool goes_on =
            at.opcode != Opcode::jump && at.opcode != Opcode::branch && at.opcode != Opcode::return_values;
        if (!goes_on || ++i == code_.size()) break;
        if (values_.is_label[i]) {
          flow(i, has_value);
          break;
        }
      }
    }
    return true;
  }

  void count_writers() {
    std::vector<int> writers(function_.register_count, 0);
    std::fill_n(writers.begin(), function_.parameter_count, 1);
    std::vector<bool>& one = values_.has_one_writer;
    one.assign(function_.register_count, true);
    for (size_t i = 0; i < code_.size(); ++i) {
      if (!values_.is_reached[i]) continue;
      const Instruction& at = code_[i];
      abi::for_each_operand(at.opcode, at.words, [&](char letter, uint32_t word, uint32_t) {
        if (is_register(letter, word) && reads_operand(at.opcode, letter) && writers[word] == 0) one[word] = false;
      });
      abi::for_each_operand(at.opcode, at.words, [&](char letter, uint32_t word, uint32_t) {
        if (is_register(letter, word) && writes_operand(letter) && ++writers[word] > 1) one[word] = false;
      });
    }
  }

  // ---- lent tensors ----

  // What an instruction would make of its register; none where that is an object of the runtime's.
  std::optional<LentTensor> made_by(const Instruction& at) const {
    const uint32_t* words = at.words;
    switch (at.opcode) {
      case Opcode::alloc_tensor:
        return allocated(words);
      case Opcode::load_constant:
        return constant(words);
      case Opcode::view:
        return viewed(words);
      case Opcode::move:
        return values_.lent[words[1]];
      default:
        return std::nullopt;
    }
  }

  std::optional<std::vector<int64_t>> immediates(const uint32_t* words, uint32_t count) const {
    std::vector<int64_t> dims;
    for (uint32_t i = 0; i < count; ++i) {
      if ((words[i] & abi::immediate_bit) == 0) return std::nullopt;
      dims.push_back(program_.integers[words[i] & ~abi::immediate_bit]);
    }
    return dims;
  }

  std::optional<LentTensor> allocated(const uint32_t* words) const {
    if (words[1] == abi::absent) return std::nullopt;
    const abi::StorageRecord& storage = program_.storages[words[1]];
    if (storage.kind == StorageKind::output) return std::nullopt;
    LentTensor made{.rank = words[2], .dims = immediates(words + 3, words[2])};
    const DLDataType dtype = reg(words[0]).dtype;
    if (!made.dims) return dtype.bits * dtype.lanes % 8 == 0 ? std::optional(made) : std::nullopt;
    const auto bytes = tensor_bytes(dtype, *made.dims);
    const bool fits = bytes && (storage.kind == StorageKind::dynamic || *bytes <= storage.bytes);
    return fits ? std::optional(made) : std::nullopt;
  }

  std::optional<LentTensor> constant(const uint32_t* words) const {
    const abi::ConstantRecord& at = program_.constants[words[1]];
    const DLDataType want = reg(words[0]).dtype;
    if (at.kind != ValueKind::tensor || std::memcmp(&want, &at.dtype, sizeof(want)) != 0) return std::nullopt;
    LentTensor made{.rank = at.rank, .is_constant = true, .dims = std::vector<int64_t>()};
    for (uint32_t i = 0; i < at.rank; ++i) made.dims->push_back(program_.dims[at.first_dim + uint64_t{i}].size);
    const auto bytes = tensor_bytes(at.dtype, *made.dims);
    return bytes && *bytes > 0 ? std::optional(made) : std::nullopt;
  }

  std::optional<LentTensor> viewed(const uint32_t* words) const {
    const std::optional<LentTensor>& source = values_.lent[words[1]];
    const DLDataType dtype = reg(words[0]).dtype;
    if (!source || dtype.bits * dtype.lanes % 8 != 0) return std::nullopt;
    return LentTensor{.rank = words[3], .is_constant = source->is_constant, .dims = immediates(words + 4, words[3])};
  }

  // The least upper bound of what all writers make, from none known upwards: a register that two writers disagree about
  // is an object, and with it what is made of it. Each round settles a register or takes dims away from one.
  void find_lent() {
    values_.lent.assign(function_.register_count, std::nullopt);
    std::vector<bool> is_object(function_.register_count, false);
    for (uint32_t r = 0; r < function_.register_count; ++r)
      is_object[r] = r < function_.parameter_count || reg(r).kind != ValueKind::tensor || reg(r).dtype.bits == 0;
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (size_t i = 0; i < code_.size(); ++i) {
        if (!values_.is_reached[i]) continue;
        const Instruction& at = code_[i];
        abi::for_each_operand(at.opcode, at.words, [&](char letter, uint32_t word, uint32_t position) {
          if (!is_register(letter, word) || !writes_operand(letter) || is_object[word]) return;
          if (is_pending(at, is_object)) return;
          is_changed |= join(word, position == 0 ? made_by(at) : std::nullopt, is_object);
        });
      }
    }
  }

  // Whether its source has no writer that was looked at yet.
  bool is_pending(const Instruction& at, const std::vector<bool>& is_object) const {
    const bool has_source = at.opcode == Opcode::view || at.opcode == Opcode::move;
    return has_source && !values_.lent[at.words[1]] && !is_object[at.words[1]];
  }

  bool join(uint32_t r, std::optional<LentTensor> made, std::vector<bool>& is_object) {
    std::optional<LentTensor>& known = values_.lent[r];
    if (made && !known) {
      known = std::move(made);
      return true;
    }
    if (!made || made->rank != known->rank || made->is_constant != known->is_constant) {
      is_object[r] = true;
      known.reset();
      return true;
    }
    if (!known->dims || known->dims == made->dims || support::flip(program_dims_of_first)) return false;
    known->dims.reset();
    return true;
  }

  const abi::ProgramView& program_;
  const abi::FunctionRecord& function_;
  std::vector<Instruction> code_;
  ProgramValues values_;
};

}  // namespace

bool reads_operand(Opcode opcode, char letter) {
  if (opcode == Opcode::kill) return false;
  return contains(read_letters, letter) || (opcode == Opcode::loop_next && letter == 's');
}

bool writes_operand(char letter) { return contains(written_letters, letter); }

bool is_register(char letter, uint32_t word) {
  if (!contains(read_letters, letter) && !contains(written_letters, letter)) return false;
  const bool may_be_other = letter == 'S' || letter == 'D' || letter == 'W';
  return !may_be_other || (word & abi::immediate_bit) == 0;  // an absent one has the bit too
}

std::optional<uint64_t> tensor_bytes(DLDataType dtype, std::span<const int64_t> dims) {
  int64_t elements = 0;
  uint64_t bytes = 0;
  const bool fits = abi::tensor_extent(dtype, static_cast<int32_t>(dims.size()), dims.data(), &elements, &bytes);
  return fits ? std::optional(bytes) : std::nullopt;
}

std::optional<ProgramValues> analyse_function(const abi::ProgramView& program, const abi::FunctionRecord& function) {
  return Analysis(program, function).run();
}

}  // namespace lathe::codegen
