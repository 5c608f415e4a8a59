#include "codegen/llvm/load/jit.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/TargetParser/Host.h>

#include "codegen/emit/codes.h"
#include "codegen/llvm/load/gdb.h"
#include "codegen/llvm/load/perf_map.h"
#include "codegen/llvm/machine.h"
#include "support/environment.h"

namespace lathe::codegen {
namespace {

class OrcKernels : public LoadedKernels {
 public:
  OrcKernels(std::unique_ptr<llvm::orc::LLJIT> jit, std::vector<LatheKernel> functions,
             std::vector<LatheProgramFunction> program, std::vector<DebuggerEntry> debugger)
      : jit_(std::move(jit)), debugger_(std::move(debugger)) {
    functions_ = std::move(functions);
    program_ = std::move(program);
  }

 private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::vector<DebuggerEntry> debugger_;  // gone before the code is
};

// An error of ORC on objects that we made ourselves is a broken invariant.
template <class T>
T take(llvm::Expected<T> value) {
  if (!value) throw support::InternalError("loading kernels: " + llvm::toString(value.takeError()));
  return std::move(*value);
}
void take(llvm::Error error) {
  if (error) throw support::InternalError("loading kernels: " + llvm::toString(std::move(error)));
}

}  // namespace

support::Result<std::shared_ptr<LoadedKernels>> load_kernels(const CompiledKernels& compiled,
                                                             const CompiledProgram* program) {
  initialise_llvm();
  const llvm::Triple wanted(compiled.target.triple), here(llvm::sys::getProcessTriple());
  if (wanted.getArch() != here.getArch())
    return support::Diagnostic{.code = codes::unsupported_target,
                               .message = fmt::format("code for {} cannot run in this process, which is {}",
                                                      wanted.getArchName().str(), here.getArchName().str())};
  llvm::orc::JITTargetMachineBuilder machine(here);
  auto jit = take(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(machine)).create());
  const KernelNames names(compiled.kernels, program);
  const auto addresses = std::make_shared<SectionAddresses>();
  if (auto* linking = llvm::dyn_cast<llvm::orc::ObjectLinkingLayer>(&jit->getObjLinkingLayer())) {
    linking->addPlugin(addresses);
    if (const std::string folder = support::read_environment().perf_map; !folder.empty())
      linking->addPlugin(std::make_shared<PerfMap>(folder, names));
  }
  llvm::orc::JITDylib& library = jit->getMainJITDylib();
  std::map<const std::string*, std::string> added;  // an object may hold several kernels
  const auto add = [&](const std::string& object, const std::string& name) {
    if (added.emplace(&object, name).second)
      take(jit->addObjectFile(library, llvm::MemoryBuffer::getMemBufferCopy(object, name)));
  };
  for (const CompiledKernel& kernel : compiled.kernels) add(*kernel.object, kernel.symbol);
  std::vector<LatheKernel> functions;
  for (const CompiledKernel& kernel : compiled.kernels)
    functions.push_back(take(jit->lookup(kernel.symbol)).toPtr<LatheKernel>());
  std::vector<LatheProgramFunction> program_functions;
  if (program && program->object) {
    add(*program->object, "program");
    for (const std::string& symbol : program->symbols)
      program_functions.push_back(symbol.empty() ? nullptr : take(jit->lookup(symbol)).toPtr<LatheProgramFunction>());
  }
  std::vector<DebuggerEntry> debugger;
  for (const auto& [object, name] : added) debugger.emplace_back(*object, addresses->of(name), names);
  return std::shared_ptr<LoadedKernels>(std::make_shared<OrcKernels>(
      std::move(jit), std::move(functions), std::move(program_functions), std::move(debugger)));
}

}  // namespace lathe::codegen
