// Kernels of this process in GDB: by name, and by line where they have line tables. GDB stops in a function of LLVM's,
// __jit_debug_register_code, and reads the list __jit_debug_descriptor ("JIT Compilation Interface" of its manual); so
// does LLDB.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include "codegen/llvm/debug/kernel_names.h"

namespace lathe::codegen {

// Notes where the sections of each object are put, by the object's name.
class SectionAddresses : public llvm::orc::ObjectLinkingLayer::Plugin {
 public:
  using Sections = std::map<std::string, uint64_t, std::less<>>;

  // Empty for an object that was not linked.
  const Sections& of(const std::string& object) const;

  void modifyPassConfig(llvm::orc::MaterializationResponsibility& responsibility, llvm::jitlink::LinkGraph& graph,
                        llvm::jitlink::PassConfiguration& config) override;
  llvm::Error notifyFailed(llvm::orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey) override {
    return llvm::Error::success();
  }
  void notifyTransferringResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey, llvm::orc::ResourceKey) override {}

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Sections> sections_;
};

// An object in GDB's list for as long as this lives.
class DebuggerEntry {
 public:
  // A copy of the object that was linked, with its symbols by kernels' names and its sections' addresses.
  DebuggerEntry(const std::string& object, const SectionAddresses::Sections& sections, const KernelNames& names);
  ~DebuggerEntry();
  DebuggerEntry(DebuggerEntry&&) noexcept;
  DebuggerEntry& operator=(DebuggerEntry&&) = delete;

 private:
  struct Entry;
  std::unique_ptr<Entry> entry_;
};

}  // namespace lathe::codegen
