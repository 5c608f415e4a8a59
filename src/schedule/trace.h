// Trace: what was done to a schedule, instruction by instruction. Prints as Python, reads back, and replays on another
// module.
#pragma once

#include "schedule/decider.h"
#include "schedule/index_map.h"

namespace lathe::schedule {

class Schedule;

// A loop, a block or a number of one schedule, by the number of its handle. Meaningful in that schedule and its copies.
struct LoopRV {
  uint32_t index = 0;
  friend bool operator==(const LoopRV&, const LoopRV&) = default;
};
struct BlockRV {
  uint32_t index = 0;
  friend bool operator==(const BlockRV&, const BlockRV&) = default;
};
struct ExprRV {
  uint32_t index = 0;
  friend bool operator==(const ExprRV&, const ExprRV&) = default;
};

// An input or attribute of an instruction; empty prints as None.
struct Argument {
  using List = std::vector<Argument>;
  using Variant =
      std::variant<std::monostate, LoopRV, BlockRV, ExprRV, bool, int64_t, double, std::string, IndexMap, List>;
  Argument() = default;
  template <class T>
    requires std::is_constructible_v<Variant, T>
  Argument(T value) : data(std::move(value)) {}
  Argument(const char* text) : data(std::string(text)) {}
  Argument(int value) : data(static_cast<int64_t>(value)) {}
  template <class T>
  const T* get() const {
    return std::get_if<T>(&data);
  }
  friend bool operator==(const Argument&, const Argument&) = default;
  Variant data;
};

struct InstructionKind;  // schedule/instruction.h: one row a public primitive

using NamedArguments = std::vector<std::pair<std::string, Argument>>;

struct Instruction {
  const InstructionKind* kind = nullptr;
  std::vector<Argument> inputs;  // positional
  NamedArguments attributes;
  std::vector<Argument> outputs;  // the handles it made
};

class Trace {
 public:
  const std::vector<Instruction>& instructions() const { return instructions_; }
  void append(Instruction instruction) { instructions_.push_back(std::move(instruction)); }
  // One Python statement a line: "l1, l2 = sch.split(l0, factors=[None, 4])".
  std::string as_python() const;
  // Refuses instructions that use a handle which none before them makes, or make what is no handle.
  Status check() const;
  // Does it all again on another schedule; refusals are those of `check`, and of the primitives. Decisions are taken
  // from the trace.
  Status apply(Schedule& schedule) const;

 private:
  std::vector<Instruction> instructions_;
};

// Reads what `as_python` prints.
Result<Trace> parse_trace(const std::string& text);

}  // namespace lathe::schedule
