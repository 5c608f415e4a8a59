// Memory of the process, in huge pages where it is large: fewer misses of the TLB.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

namespace lathe::runtime {

inline constexpr uint64_t huge_page = 2u << 20;

// Released by free(); null where there is none. `alignment` is a power of two, at least that of a pointer. What half a
// huge page holds at most gets ordinary ones; what is larger, whole huge ones.
inline void* allocate_large(uint64_t bytes, uint64_t alignment) {
  const bool is_huge = bytes > huge_page / 2 && bytes <= UINT64_MAX - huge_page;
  if (is_huge) {
    alignment = alignment < huge_page ? huge_page : alignment;
    bytes = (bytes + huge_page - 1) / huge_page * huge_page;
  }
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
  if (is_huge) madvise(memory, bytes, MADV_HUGEPAGE);  // refusing is harmless
#endif
  return memory;
}

// Says of memory that a file is mapped into that huge pages are welcome: those that the file system has of it are, and
// what is read from disk comes in such.
inline void want_huge_pages(const void* memory, uint64_t bytes) {
#ifdef MADV_HUGEPAGE
  const uint64_t begin = (reinterpret_cast<uint64_t>(memory) + 4095) / 4096 * 4096;
  const uint64_t end = reinterpret_cast<uint64_t>(memory) + bytes;
  if (bytes > huge_page && begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  (void)memory, (void)bytes;
#endif
}

}  // namespace lathe::runtime
