#include "codegen/llvm/machine.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "codegen/emit/codes.h"

namespace lathe::codegen {

void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
  });
}

namespace {

std::string feature_text(const target::Target& target) {
  std::string text;
  for (const std::string& feature : target.features) text += (text.empty() ? "+" : ",+") + feature;
  return text;
}

std::string cpu_of(const target::Target& target) {
  if (!target.cpu.empty()) return target.cpu;
  return llvm::Triple(target.triple).isX86() ? "x86-64" : "generic";
}

}  // namespace

support::Result<std::unique_ptr<llvm::TargetMachine>> make_machine(const target::Target& target, Effort effort) {
  initialise_llvm();
  std::string error;
  const llvm::Target* known = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (!known)
    return support::Diagnostic{.code = codes::unsupported_target,
                               .message = fmt::format("no code can be generated for the triple '{}'", target.triple)};
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  options.FunctionSections = true;
  options.MCOptions.AsmVerbose = false;
  std::unique_ptr<llvm::TargetMachine> machine(known->createTargetMachine(
      target.triple, cpu_of(target), feature_text(target), options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      effort == Effort::full ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::None));
  support::require(machine != nullptr, "LLVM made no target machine");
  return machine;
}

void describe_module(llvm::Module& module, const target::Target& target, llvm::TargetMachine& machine) {
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine.createDataLayout());
}

void set_target_attributes(llvm::Function& function, const target::Target& target) {
  function.addFnAttr("target-cpu", cpu_of(target));
  function.addFnAttr("target-features", feature_text(target));
  // The tuning of one CPU model helps it and may hurt another; the feature set decides the code.
  if (llvm::Triple(target.triple).isX86()) function.addFnAttr("tune-cpu", "generic");
  if (target.vector_bits >= 512) {
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr("min-legal-vector-width", "512");
  }
  function.addFnAttr(llvm::Attribute::NoUnwind);
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine, Effort effort) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(effort == Effort::full));
  if (effort == Effort::full) {
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
    passes.addPass(llvm::EarlyCSEPass(true));
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::DSEPass());
    passes.addPass(llvm::SimplifyCFGPass());
  }
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes.run(function, functions);
}

namespace {

// Keeps the scheduler of instructions from functions with `kept_order`: LLVM asks it about each pass over each.
class OrderGate : public llvm::OptPassGate {
 public:
  explicit OrderGate(const llvm::Module& module) {
    for (const llvm::Function& f : module)
      if (f.hasFnAttribute(kept_order)) kept_.insert(fmt::format("function ({})", f.getName().str()));
  }
  bool isEnabled() const override { return !kept_.empty(); }
  bool shouldRunPass(const llvm::StringRef pass, llvm::StringRef function) override {
    return pass != "Machine Instruction Scheduler" || kept_.count(function.str()) == 0;
  }

 private:
  std::unordered_set<std::string> kept_;
};

}  // namespace

std::string write_module(llvm::Module& module, llvm::TargetMachine& machine, EmitKind kind) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  if (kind == EmitKind::llvm_ir || kind == EmitKind::listing) {
    module.print(stream, nullptr);
  } else {
    llvm::legacy::PassManager passes;
    const auto type =
        kind == EmitKind::assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
    const bool refused = machine.addPassesToEmitFile(passes, stream, nullptr, type);
    support::require(!refused, "the target writes no such file");
    OrderGate gate(module);
    llvm::OptPassGate& other = module.getContext().getOptPassGate();
    module.getContext().setOptPassGate(gate);
    passes.run(module);
    module.getContext().setOptPassGate(other);
  }
  return std::string(bytes.data(), bytes.size());
}

}  // namespace lathe::codegen
