// Kernels by their names in profilers: the file perf-PID.map, which Linux's perf reads from /tmp.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include "codegen/llvm/compile.h"

namespace lathe::codegen {

// Appends a line "address size name" for each function that is linked, those inside of kernels too. Kernels of one
// content share a function, which is called after all of them.
class PerfMap : public llvm::orc::ObjectLinkingLayer::Plugin {
 public:
  // `folder` is where the file is.
  PerfMap(const std::string& folder, const std::vector<CompiledKernel>& kernels);

  void modifyPassConfig(llvm::orc::MaterializationResponsibility& responsibility, llvm::jitlink::LinkGraph& graph,
                        llvm::jitlink::PassConfiguration& config) override;
  llvm::Error notifyFailed(llvm::orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey) override {
    return llvm::Error::success();
  }
  void notifyTransferringResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey, llvm::orc::ResourceKey) override {}

 private:
  std::string name_of(llvm::StringRef symbol) const;

  std::string path_;
  std::map<std::string, std::string, std::less<>> names_;  // by symbol
};

}  // namespace lathe::codegen
