// Kernels by their names in profilers: the file perf-PID.map, which Linux's perf reads from /tmp.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include "codegen/llvm/debug/kernel_names.h"

namespace lathe::codegen {

// Appends a line "address size name" for each function that is linked, those inside of kernels too.
class PerfMap : public llvm::orc::ObjectLinkingLayer::Plugin {
 public:
  // `folder` is where the file is.
  PerfMap(const std::string& folder, KernelNames names);

  void modifyPassConfig(llvm::orc::MaterializationResponsibility& responsibility, llvm::jitlink::LinkGraph& graph,
                        llvm::jitlink::PassConfiguration& config) override;
  llvm::Error notifyFailed(llvm::orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey) override {
    return llvm::Error::success();
  }
  void notifyTransferringResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey, llvm::orc::ResourceKey) override {}

 private:
  std::string path_;
  KernelNames names_;
};

}  // namespace lathe::codegen
