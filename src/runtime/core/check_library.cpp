#include <cstring>
#if defined(__linux__)
#include <elf.h>
#endif

#include "abi/seal.h"
#include "runtime/core/error.h"
#include "runtime/core/model.h"
#include "runtime/cpu/host.h"

namespace lathe::runtime {

#if defined(__linux__)
namespace {

const char* machine_name(uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86_64";
    case EM_AARCH64:
      return "aarch64";
    case EM_386:
      return "i386";
    case EM_ARM:
      return "arm";
    case EM_RISCV:
      return "riscv";
    default:
      return "another architecture";
  }
}

template <typename Record>
bool read_at(const void* bytes, uint64_t size, uint64_t offset, Record* record) {
  if (offset > size || size - offset < sizeof(Record)) return false;
  std::memcpy(record, static_cast<const char*>(bytes) + offset, sizeof(Record));
  return true;
}

}  // namespace

int32_t check_library(const char* name, const void* bytes, uint64_t size) {
  const auto damaged = [&](const char* why) { return fail(LATHE_INVALID_ARTIFACT, nullptr, "%s: %s", name, why); };
  Elf64_Ehdr header;
  if (!read_at(bytes, size, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return damaged("this is not a 64-bit shared library");
  const char* machine = machine_name(header.e_machine);
  if (std::strcmp(machine, host().architecture) != 0)
    return fail(LATHE_WRONG_TARGET, nullptr, "%s: compiled for %s, but this machine is %s", name, machine,
                host().architecture);
  if (header.e_type != ET_DYN || header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0)
    return damaged("this is not a shared library");
  bool has_dynamic = false;
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (header.e_phoff > size || !read_at(bytes, size, header.e_phoff + uint64_t{i} * sizeof(segment), &segment) ||
        segment.p_offset > size || segment.p_filesz > size - segment.p_offset)
      return damaged("the file is truncated");
    has_dynamic = has_dynamic || segment.p_type == PT_DYNAMIC;
  }
  if (!has_dynamic) return damaged("this is not a shared library");
  const uint64_t sections = uint64_t{header.e_shnum} * header.e_shentsize;
  if (header.e_shoff > size || sections > size - header.e_shoff) return damaged("the file is truncated");
  switch (abi::check_seal(bytes, size)) {
    case abi::SealState::absent:
    case abi::SealState::intact:
      return 0;
    case abi::SealState::broken:
      return damaged("the file has changed since it was written (its seal does not match)");
  }
  __builtin_unreachable();
}
#else
int32_t check_library(const char*, const void*, uint64_t) { return 0; }
#endif

}  // namespace lathe::runtime
