// For the tests of this room: what is in an object.
#pragma once

#include <llvm/Object/ELFObjectFile.h>

#include "support/std.h"

namespace lathe::codegen::test {

inline std::unique_ptr<llvm::object::ObjectFile> read_object(const std::string& bytes) {
  return llvm::cantFail(llvm::object::ObjectFile::createObjectFile({llvm::StringRef(bytes), "object"}));
}

// The sections that are loaded, with what is relocated in them, as text to compare. Debug sections are not loaded.
inline std::map<std::string, std::string> loaded_sections(const std::string& bytes) {
  const auto object = read_object(bytes);
  std::map<std::string, std::string> sections;
  for (const llvm::object::SectionRef& section : object->sections()) {
    if ((llvm::object::ELFSectionRef(section).getFlags() & llvm::ELF::SHF_ALLOC) == 0) continue;
    sections[llvm::cantFail(section.getName()).str()] += llvm::cantFail(section.getContents()).str();
  }
  for (const llvm::object::SectionRef& section : object->sections()) {
    const auto relocated = llvm::cantFail(section.getRelocatedSection());
    if (relocated == object->section_end() ||
        (llvm::object::ELFSectionRef(*relocated).getFlags() & llvm::ELF::SHF_ALLOC) == 0)
      continue;
    for (const llvm::object::RelocationRef& r : section.relocations())
      sections[llvm::cantFail(relocated->getName()).str()] +=
          fmt::format("\n{} {} {}", r.getOffset(), r.getType(), llvm::cantFail(r.getSymbol()->getName()).str());
  }
  return sections;
}

// The functions that the table of symbols names, and where they are.
inline std::map<std::string, uint64_t> functions_of(const std::string& bytes) {
  const auto object = read_object(bytes);
  std::map<std::string, uint64_t> functions;
  for (const llvm::object::SymbolRef& symbol : object->symbols())
    if (llvm::cantFail(symbol.getType()) == llvm::object::SymbolRef::ST_Function)
      functions[llvm::cantFail(symbol.getName()).str()] = llvm::cantFail(symbol.getAddress());
  return functions;
}

}  // namespace lathe::codegen::test
