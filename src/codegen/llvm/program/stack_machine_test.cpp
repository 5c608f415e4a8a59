// The register program beside a stack machine on the same programs: shape arithmetic, loops and branches, which both
// run alone. The stack machine is here for the comparison of docs/register-program.md, which these tests print.
#include <gtest/gtest.h>

#include <chrono>

#include "codegen/llvm/program/compile_into_test.h"

namespace lathe::codegen {
namespace {

using abi::FunctionWriter;
using abi::Opcode;
using abi::ProgramWriter;
using abi::ValueKind;
using namespace runtime::testing;  // NOLINT

// One byte for an operation, then what it takes: a local in one byte, a constant in eight, a target in four.
class StackMachine {
 public:
  enum Code : uint8_t {
    push_local,
    push_constant,
    pop_local,
    jump,
    jump_unless,
    add,
    subtract,
    multiply,
    floor_divide,
    floor_modulo,
    less,
    equal,
    stop
  };  // NOLINT

  // A translation, instruction by instruction, of a function of numbers.
  explicit StackMachine(const abi::ProgramView& program) : program_(program) {
    const abi::FunctionRecord& function = program.functions[program.main];
    locals_.resize(function.register_count);
    std::vector<size_t> starts;
    for (uint32_t i = 0; i < function.instruction_count; ++i) {
      starts.push_back(bytes_.size());
      const abi::InstructionRecord& at = program.instructions[function.first_instruction + uint64_t{i}];
      translate(at.opcode, program.operands.records + at.first_operand);
    }
    for (const auto& [where, label] : targets_) put_at(where, static_cast<uint32_t>(starts[label]));
  }

  size_t size() const { return bytes_.size(); }

  // Asks before each instruction whether the run is to end, and counts it, as the runtime does.
  int64_t run(std::span<const int64_t> arguments, const volatile uint32_t* ends, uint64_t* steps) {
    std::copy(arguments.begin(), arguments.end(), locals_.begin());
    int64_t stack[64];
    int64_t* top = stack;
    const uint8_t* at = bytes_.data();
    for (;;) {
      if (*ends != 0) return -1;
      ++*steps;
      switch (*at++) {
        case push_local:
          *top++ = locals_[*at++];
          break;
        case push_constant:
          std::memcpy(top++, at, 8);
          at += 8;
          break;
        case pop_local:
          locals_[*at++] = *--top;
          break;
        case jump:
          at = bytes_.data() + target(at);
          break;
        case jump_unless:
          at = *--top != 0 ? at + 4 : bytes_.data() + target(at);
          break;
        case add:
          --top, top[-1] += top[0];
          break;
        case subtract:
          --top, top[-1] -= top[0];
          break;
        case multiply:
          --top, top[-1] *= top[0];
          break;
        case floor_divide:
          --top, top[-1] = (top[-1] - modulo(top[-1], top[0])) / top[0];
          break;
        case floor_modulo:
          --top, top[-1] = modulo(top[-1], top[0]);
          break;
        case less:
          --top, top[-1] = top[-1] < top[0];
          break;
        case equal:
          --top, top[-1] = top[-1] == top[0];
          break;
        default:
          return top[-1];
      }
    }
  }

 private:
  static int64_t modulo(int64_t a, int64_t b) { return (a % b + b) % b; }
  static uint32_t target(const uint8_t* at) {
    uint32_t value = 0;
    std::memcpy(&value, at, 4);
    return value;
  }
  void put_at(size_t where, uint32_t value) { std::memcpy(bytes_.data() + where, &value, 4); }
  void local(Code code, uint32_t index) {
    bytes_.push_back(code);
    bytes_.push_back(static_cast<uint8_t>(index));
  }
  void to(Code code, uint32_t label) {
    bytes_.push_back(code);
    targets_.emplace_back(bytes_.size(), label);
    bytes_.resize(bytes_.size() + 4);
  }
  void push(uint32_t word) {
    if ((word & abi::immediate_bit) == 0) return local(push_local, word);
    bytes_.push_back(push_constant);
    bytes_.resize(bytes_.size() + 8);
    std::memcpy(&bytes_[bytes_.size() - 8], &program_.integers[word & ~abi::immediate_bit], 8);
  }
  void operation(Code code, uint32_t a, uint32_t b) {
    push(a);
    push(b);
    bytes_.push_back(code);
  }

  void translate(Opcode opcode, const uint32_t* words) {
    static const std::map<Opcode, Code> binary = {
        {Opcode::scalar_add, add},
        {Opcode::scalar_subtract, subtract},
        {Opcode::scalar_multiply, multiply},
        {Opcode::scalar_floor_divide, floor_divide},
        {Opcode::scalar_floor_modulo, floor_modulo},
        {Opcode::scalar_less, less},
        {Opcode::scalar_equal, equal},
    };
    if (const auto it = binary.find(opcode); it != binary.end()) {
      operation(it->second, words[1], words[2]);
      return local(pop_local, words[0]);
    }
    switch (opcode) {
      case Opcode::scalar_set:
        push(words[1]);
        return local(pop_local, words[0]);
      case Opcode::jump:
        return to(jump, words[0]);
      case Opcode::branch:
        push(words[0]);
        to(jump_unless, words[2]);
        return to(jump, words[1]);
      case Opcode::loop_begin:
        push(words[1]);
        local(pop_local, words[0]);
        operation(less, words[0], words[2]);
        return to(jump_unless, words[3]);
      case Opcode::loop_next: {
        push(words[0]);
        bytes_.push_back(push_constant);
        bytes_.resize(bytes_.size() + 8);
        bytes_[bytes_.size() - 8] = 1;
        bytes_.push_back(add);
        local(pop_local, words[0]);
        operation(less, words[0], words[1]);
        const size_t over = bytes_.size() + 10;  // the two jumps
        bytes_.push_back(jump_unless);
        bytes_.resize(bytes_.size() + 4);
        put_at(bytes_.size() - 4, static_cast<uint32_t>(over));
        return to(jump, words[2]);
      }
      case Opcode::return_values:
        push(words[1]);
        bytes_.push_back(stop);
        return;
      default:
        FAIL() << "an instruction that is not translated";
    }
  }

  const abi::ProgramView& program_;
  std::vector<uint8_t> bytes_;
  std::vector<std::pair<size_t, uint32_t>> targets_;
  std::vector<int64_t> locals_;
};

struct Numbers {
  ProgramWriter program;
  FunctionWriter main = program.function("main");
  uint32_t n = input();

  uint32_t input() {
    program.input({.name = "n", .kind = ValueKind::scalar});
    program.output({.name = "out", .kind = ValueKind::scalar});
    return main.parameter(ValueKind::scalar);
  }
  uint32_t reg() { return main.reg(ValueKind::scalar); }
  uint32_t imm(int64_t value) { return program.immediate(value); }
  uint32_t emit(Opcode opcode, uint32_t a, uint32_t b) {
    const uint32_t made = reg();
    main.emit(opcode, {made, a, b});
    return made;
  }
  std::vector<char> finish(uint32_t result) {
    main.emit(Opcode::return_values, {1, result});
    program.finish_function(std::move(main));
    return program.finish();
  }
};

// Sum of squares modulo 1009, by a loop.
std::vector<char> squares() {
  Numbers p;
  const uint32_t sum = p.reg(), i = p.reg(), body = p.main.label(), end = p.main.label();
  p.main.emit(Opcode::scalar_set, {sum, p.imm(0)});
  p.main.emit(Opcode::loop_begin, {i, p.imm(0), p.n, end});
  p.main.bind(body);
  const uint32_t square = p.emit(Opcode::scalar_multiply, i, i), more = p.emit(Opcode::scalar_add, sum, square);
  p.main.emit(Opcode::scalar_floor_modulo, {sum, more, p.imm(1009)});
  p.main.emit(Opcode::loop_next, {i, p.n, body});
  p.main.bind(end);
  return p.finish(sum);
}

// The extents of twelve convolutions, one after the other, and the bytes of what they give: n times.
std::vector<char> extents() {
  Numbers p;
  const uint32_t sum = p.reg(), i = p.reg(), body = p.main.label(), end = p.main.label();
  p.main.emit(Opcode::scalar_set, {sum, p.imm(0)});
  p.main.emit(Opcode::loop_begin, {i, p.imm(0), p.n, end});
  p.main.bind(body);
  uint32_t extent = p.emit(Opcode::scalar_add, i, p.imm(4096));
  for (int layer = 0; layer < 12; ++layer) {
    const uint32_t padded = p.emit(Opcode::scalar_add, extent, p.imm(layer % 3 - 2));
    const uint32_t strided = p.emit(Opcode::scalar_floor_divide, padded, p.imm(layer % 4 == 3 ? 2 : 1));
    extent = p.emit(Opcode::scalar_add, strided, p.imm(1));
    const uint32_t area = p.emit(Opcode::scalar_multiply, extent, extent);
    const uint32_t bytes = p.emit(Opcode::scalar_multiply, area, p.imm(64 * 4));
    p.main.emit(Opcode::scalar_add, {sum, sum, bytes});
  }
  p.main.emit(Opcode::loop_next, {i, p.n, body});
  p.main.bind(end);
  return p.finish(sum);
}

// The steps that Collatz's numbers take from n to 1, by branches.
std::vector<char> collatz() {
  Numbers p;
  const uint32_t x = p.reg(), steps = p.reg(), test = p.main.label(), go = p.main.label(), even = p.main.label(),
                 odd = p.main.label(), counted = p.main.label(), end = p.main.label();
  p.main.emit(Opcode::scalar_set, {x, p.n});
  p.main.emit(Opcode::scalar_set, {steps, p.imm(0)});
  p.main.bind(test);
  const uint32_t more = p.emit(Opcode::scalar_less, p.imm(1), x);
  p.main.emit(Opcode::branch, {more, go, end});
  p.main.bind(go);
  const uint32_t is_odd = p.emit(Opcode::scalar_floor_modulo, x, p.imm(2));
  p.main.emit(Opcode::branch, {is_odd, odd, even});
  p.main.bind(odd);
  const uint32_t tripled = p.emit(Opcode::scalar_multiply, x, p.imm(3));
  p.main.emit(Opcode::scalar_add, {x, tripled, p.imm(1)});
  p.main.emit(Opcode::jump, {counted});
  p.main.bind(even);
  p.main.emit(Opcode::scalar_floor_divide, {x, x, p.imm(2)});
  p.main.bind(counted);
  p.main.emit(Opcode::scalar_add, {steps, steps, p.imm(1)});
  p.main.emit(Opcode::jump, {test});
  p.main.bind(end);
  return p.finish(steps);
}

// Nanoseconds of a call, the best of several.
template <typename Call>
double nanoseconds(Call&& call) {
  double best = 1e300;
  for (int round = 0; round < 9; ++round) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count());
  }
  return best;
}

int64_t call(const Context& context, int64_t n) {
  const runtime::testing::Value given = number(n);
  const std::vector<runtime::testing::Value> results = run_values(context, {given.get()}, 1);
  return results.empty() ? -1 : lathe_value_scalar(results[0].get());
}

// The steps of an interpreted run: as many as it is just allowed to take.
uint64_t steps_of(const Model& model, int64_t n) {
  uint64_t too_few = 0, enough = uint64_t{1} << 40;
  while (enough - too_few > 1) {
    const uint64_t middle = too_few + (enough - too_few) / 2;
    (call(context_of(model, {.max_steps = middle}), n) >= 0 ? enough : too_few) = middle;
  }
  return enough;
}

TEST(stack_machine, gives_the_same_numbers) {
  const struct {
    const char* name;
    std::vector<char> (*make)();
    int64_t n;
  } rows[] = {{"sum of squares", squares, 1000}, {"extents of convolutions", extents, 200}, {"Collatz", collatz, 27}};
  for (const auto& row : rows) {
    TestArtifact artifact;
    artifact.program = row.make();
    const std::string_view bytes(artifact.program.data(), artifact.program.size());
    abi::ProgramView view;
    ASSERT_EQ(view.parse(bytes.data(), bytes.size()), nullptr);
    StackMachine machine(view);
    const Model model = open(artifact);
    ASSERT_NE(model, nullptr) << last_message();
    const auto loaded = test::compile_into(artifact);
    const Context by_words = context_of(model), by_code = context_of(open(artifact));
    const uint32_t goes_on = 0;
    for (const int64_t n : {int64_t{1}, int64_t{7}, row.n}) {
      uint64_t steps = 0;
      const int64_t interpreted = call(by_words, n);
      EXPECT_EQ(machine.run(std::array{n}, &goes_on, &steps), interpreted) << row.name << " " << n;
      EXPECT_EQ(call(by_code, n), interpreted) << row.name << " " << n;
    }
    uint64_t steps = 0;
    machine.run(std::array{row.n}, &goes_on, &steps);
    const uint64_t own_steps = steps_of(model, row.n);
    EXPECT_LT(own_steps, steps);
    const double compiled = nanoseconds([&] { call(by_code, row.n); });
    const double interpreted = nanoseconds([&] { call(by_words, row.n); });
    const double stack = nanoseconds([&] {
      uint64_t unused = 0;
      machine.run(std::array{row.n}, &goes_on, &unused);
    });
    std::cout << fmt::format(
        "{}: {} instructions, {} of the stack machine; {:.1f} us compiled, {:.1f} interpreted, "
        "{:.1f} by the stack machine\n",
        row.name, own_steps, steps, compiled / 1e3, interpreted / 1e3, stack / 1e3);
  }
}

}  // namespace
}  // namespace lathe::codegen
