#include "codegen/llvm/debug/debug_lines.h"

#include <llvm/BinaryFormat/Dwarf.h>

#include <filesystem>

namespace lathe::codegen {

DebugLines::DebugLines(llvm::Module& module, const KernelText& text) : text_(text), builder_(module) {
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  // Version 4 is read by every debugger and profiler of today, and needs fewer sections than 5.
  module.addModuleFlag(llvm::Module::Max, "Dwarf Version", 4);
  const std::filesystem::path path(text.path);
  file_ = builder_.createFile(path.filename().string(), path.parent_path().string());
  // Of the languages that debuggers know, the one whose expressions they evaluate with the least around them.
  builder_.createCompileUnit(llvm::dwarf::DW_LANG_C99, file_, "lathe", /*isOptimized=*/true, "", 0);
}

llvm::DebugLoc DebugLines::begin(llvm::Function& function, const std::string& name, const Kernel& kernel,
                                 const ir::Node* at) {
  const auto& lines = lines_of(kernel);
  const auto found = lines.find(at ? at : static_cast<const ir::Node*>(kernel.function.get()));
  const uint32_t line = found == lines.end() ? 0 : found->second;
  llvm::DISubroutineType* type = builder_.createSubroutineType(builder_.getOrCreateTypeArray({}));
  llvm::DISubprogram* program =
      builder_.createFunction(file_, name, "", file_, line, type, line, llvm::DINode::FlagPrototyped,
                              llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
  function.setSubprogram(program);
  return llvm::DILocation::get(function.getContext(), line, 0, program);
}

llvm::DebugLoc DebugLines::at(const ir::Node* statement, const llvm::Function& function, const Kernel& kernel,
                              const llvm::DebugLoc& otherwise) const {
  const auto& lines = lines_of(kernel);
  const auto found = lines.find(statement);
  if (found == lines.end()) return otherwise;
  return llvm::DILocation::get(function.getContext(), found->second, 0, function.getSubprogram());
}

}  // namespace lathe::codegen
