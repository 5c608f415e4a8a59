#include "codegen/llvm/program/compile_program.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Verifier.h>

#include "codegen/llvm/machine.h"
#include "codegen/llvm/program/program_emitter.h"

namespace lathe::codegen {
namespace {

// Rises when the same program would give other code.
constexpr std::string_view program_build = "lathe-program-1 LLVM " LLVM_VERSION_STRING;

// Straight code between calls gains nothing that can be measured from more effort.
constexpr Effort effort = Effort::brief;

// Instructions of a program. Longer ones are interpreted: their kernels are small, so that compiling the program would
// take longer than compiling all of them.
constexpr uint64_t most_compiled = 4'000;

abi::ProgramView view_of(std::string_view program) {
  abi::ProgramView view;
  const char* problem = view.parse(program.data(), program.size());
  if (problem) throw support::InternalError(fmt::format("a program that cannot be read is compiled: {}", problem));
  return view;
}

using Values = std::vector<std::optional<ProgramValues>>;

Values analyse(const abi::ProgramView& view) {
  Values all;
  for (const abi::FunctionRecord& function : view.functions)
    all.push_back(view.instructions.count <= most_compiled ? analyse_function(view, function) : std::nullopt);
  return all;
}

std::string write(const abi::ProgramView& view, const Values& values, const std::vector<std::string>& symbols,
                  const target::Target& target, llvm::TargetMachine& machine, EmitKind kind) {
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);
  llvm::Module module("program", context);
  describe_module(module, target, machine);
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (!values[i]) continue;
    llvm::Function* function = ProgramEmitter(module, view, view.functions[i], *values[i]).emit(symbols[i]);
    set_target_attributes(*function, target);
  }
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream))
    throw support::InternalError("the register program became invalid LLVM IR: " + problem);
  optimise(module, machine, effort);
  return write_module(module, machine, kind);
}

}  // namespace

support::Result<CompiledProgram> compile_program(std::string_view program, const target::Target& target,
                                                 const CompileProgramOptions& options) {
  const abi::ProgramView view = view_of(program);
  const auto machine = TRY(make_machine(target, effort));
  machine->Options.ForceDwarfFrameSection = options.debug_frames;
  const Values values = analyse(view);
  support::Hasher hasher;
  hasher.add(program);
  hasher.add(target.str());
  hasher.add(program_build);
  if (options.debug_frames) hasher.add("debug frames");
  const support::Hash128 key = hasher.finish();
  CompiledProgram result;
  for (size_t i = 0; i < values.size(); ++i)
    result.symbols.push_back(values[i] ? fmt::format("lathe_program_{}_{}", key.hex(), i) : "");
  if (std::all_of(values.begin(), values.end(), [](const auto& each) { return !each; })) return result;
  if (options.cache) result.object = options.cache->find(key);
  if (result.object) return result;
  result.object =
      std::make_shared<const std::string>(write(view, values, result.symbols, target, *machine, EmitKind::object));
  if (options.cache) options.cache->insert(key, result.object);
  return result;
}

support::Result<std::string> emit_program(std::string_view program, const target::Target& target, EmitKind kind) {
  const abi::ProgramView view = view_of(program);
  const auto machine = TRY(make_machine(target, effort));
  std::vector<std::string> names;
  for (const abi::FunctionRecord& function : view.functions) names.emplace_back(view.text(function.name));
  return write(view, analyse(view), names, target, *machine, kind);
}

}  // namespace lathe::codegen
