#include "codegen/llvm/debug/kernel_names.h"

#include <llvm/BinaryFormat/ELF.h>

namespace lathe::codegen {
namespace {

// What linkers and the files of profilers take in a name.
std::string plain_name(std::string_view name) {
  std::string plain(name);
  for (char& c : plain)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '_';
  return plain;
}

}  // namespace

KernelNames::KernelNames(const std::vector<CompiledKernel>& kernels, const CompiledProgram* program) {
  if (program)
    for (size_t i = 0; i < program->symbols.size(); ++i)
      if (!program->symbols[i].empty()) names_[program->symbols[i]] = fmt::format("lathe::program_{}", i);
  for (const CompiledKernel& kernel : kernels) {
    std::string& name = names_[kernel.symbol];
    name += (name.empty() ? "lathe::" : "|") + plain_name(kernel.name);
  }
  // Two names may differ in what is not plain.
  std::set<std::string_view> taken;
  for (auto& [symbol, name] : names_)
    if (!taken.insert(name).second) name += "." + symbol;
}

std::optional<std::string> KernelNames::find(std::string_view symbol) const {
  const auto it = names_.upper_bound(symbol);
  if (it == names_.begin()) return std::nullopt;
  const auto& [kernel, name] = *std::prev(it);
  if (!symbol.starts_with(kernel)) return std::nullopt;
  return name + std::string(symbol.substr(kernel.size()));
}

// The format is the ELF specification's, chapter 4, with 64-bit records. Names that do not fit where the old ones are
// go, behind the table of strings, to the end of the file.
std::string with_kernel_names(std::string object, const KernelNames& names) {
  using namespace llvm::ELF;  // NOLINT
  const auto record = [&]<class T>(T& into, uint64_t offset) { std::memcpy(&into, object.data() + offset, sizeof(T)); };
  const auto put = [&]<class T>(const T& from, uint64_t offset) {
    std::memcpy(object.data() + offset, &from, sizeof(T));
  };
  Elf64_Ehdr header;
  record(header, 0);
  const auto section_at = [&](uint64_t index) { return header.e_shoff + index * sizeof(Elf64_Shdr); };
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  for (size_t i = 0; i < sections.size(); ++i) record(sections[i], section_at(i));
  for (const Elf64_Shdr& symbols : sections) {
    if (symbols.sh_type != SHT_SYMTAB) continue;
    Elf64_Shdr strings = sections.at(symbols.sh_link);
    std::string longer;
    for (uint64_t at = 0; at < symbols.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      record(symbol, symbols.sh_offset + at);
      const char* old = object.data() + strings.sh_offset + symbol.st_name;
      const std::optional<std::string> name = names.find(old);
      if (!name) continue;
      if (const size_t room = std::strlen(old); name->size() <= room) {
        std::memcpy(object.data() + strings.sh_offset + symbol.st_name, name->c_str(), name->size() + 1);
        continue;
      }
      symbol.st_name = static_cast<uint32_t>(strings.sh_size + longer.size());
      put(symbol, symbols.sh_offset + at);
      longer += *name + '\0';
    }
    if (longer.empty()) continue;
    const std::string whole = object.substr(strings.sh_offset, strings.sh_size) + longer;
    strings.sh_offset = object.size();
    strings.sh_size = whole.size();
    object += whole;
    put(strings, section_at(symbols.sh_link));
  }
  return object;
}

}  // namespace lathe::codegen
