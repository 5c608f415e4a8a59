#include "codegen/llvm/load/gdb.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/ExecutionEngine/Orc/TargetProcess/JITLoaderGDB.h>

// LLVM's: one list a process, which others that use this LLVM may share.
extern "C" {
extern jit_descriptor __jit_debug_descriptor;  // NOLINT: the interface's names
void __jit_debug_register_code();              // NOLINT
}

namespace lathe::codegen {

// ---- where sections are ----

const SectionAddresses::Sections& SectionAddresses::of(const std::string& object) const {
  static const Sections none;
  const std::lock_guard lock(mutex_);
  const auto it = sections_.find(object);
  return it == sections_.end() ? none : it->second;
}

void SectionAddresses::modifyPassConfig(llvm::orc::MaterializationResponsibility&, llvm::jitlink::LinkGraph&,
                                        llvm::jitlink::PassConfiguration& config) {
  config.PostAllocationPasses.push_back([this](llvm::jitlink::LinkGraph& graph) {
    const std::lock_guard lock(mutex_);
    Sections& sections = sections_[graph.getName()];
    for (const llvm::jitlink::Section& section : graph.sections())
      if (const llvm::jitlink::SectionRange range(section); !range.empty())
        sections.emplace(section.getName().str(), range.getStart().getValue());
    return llvm::Error::success();
  });
}

// ---- the list ----

namespace {

// The object as GDB takes it: relocatable, but with sections that say where they are.
std::string placed_object(std::string object, const SectionAddresses::Sections& sections) {
  using namespace llvm::ELF;  // NOLINT
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof(header));
  const auto section_at = [&](uint64_t index) { return object.data() + header.e_shoff + index * sizeof(Elf64_Shdr); };
  Elf64_Shdr names;
  std::memcpy(&names, section_at(header.e_shstrndx), sizeof(names));
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, section_at(i), sizeof(section));
    const auto found = sections.find(std::string_view(object.data() + names.sh_offset + section.sh_name));
    if (found == sections.end() || (section.sh_flags & SHF_ALLOC) == 0) continue;
    section.sh_addr = found->second;
    std::memcpy(section_at(i), &section, sizeof(section));
  }
  return object;
}

std::mutex& list_mutex() {
  static std::mutex mutex;
  return mutex;
}

void tell_debugger(jit_code_entry* entry, jit_actions_t action) {
  __jit_debug_descriptor.relevant_entry = entry;
  __jit_debug_descriptor.action_flag = static_cast<uint32_t>(action);
  __jit_debug_register_code();
  __jit_debug_descriptor.relevant_entry = nullptr;
  __jit_debug_descriptor.action_flag = JIT_NOACTION;
}

}  // namespace

struct DebuggerEntry::Entry {
  std::string object;
  jit_code_entry listed{};
};

DebuggerEntry::DebuggerEntry(const std::string& object, const SectionAddresses::Sections& sections,
                             const KernelNames& names)
    : entry_(new Entry{with_kernel_names(placed_object(object, sections), names)}) {
  jit_code_entry& listed = entry_->listed;
  listed.symfile_addr = entry_->object.data();
  listed.symfile_size = entry_->object.size();
  const std::lock_guard lock(list_mutex());
  listed.next_entry = __jit_debug_descriptor.first_entry;
  if (listed.next_entry) listed.next_entry->prev_entry = &listed;
  __jit_debug_descriptor.first_entry = &listed;
  tell_debugger(&listed, JIT_REGISTER_FN);
}

DebuggerEntry::DebuggerEntry(DebuggerEntry&&) noexcept = default;

DebuggerEntry::~DebuggerEntry() {
  if (!entry_) return;
  jit_code_entry& listed = entry_->listed;
  const std::lock_guard lock(list_mutex());
  if (listed.prev_entry)
    listed.prev_entry->next_entry = listed.next_entry;
  else
    __jit_debug_descriptor.first_entry = listed.next_entry;
  if (listed.next_entry) listed.next_entry->prev_entry = listed.prev_entry;
  tell_debugger(&listed, JIT_UNREGISTER_FN);
}

}  // namespace lathe::codegen
