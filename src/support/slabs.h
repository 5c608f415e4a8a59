// Memory for many small objects of few sizes: the nodes of programs and their lists. Objects of one size lie close
// together, and the lowest free place is taken first, so that passes which make one program out of another walk few
// lines of the cache.
//
// Each thread takes from slabs of its own; objects may be freed by any thread. Slabs serve one size at a time (after
// Bonwick, "The Slab Allocator", 1994); what other threads free comes back through one list per slab (after Leijen,
// Zorn and de Moura, "Mimalloc: Free List Sharding in Action", 2019, section 2.4).
#pragma once

#include <cstddef>

namespace lathe::support {

// Memory for one object, aligned to 16 bytes; from the general heap where it is larger than 512 bytes, and all of it
// where the address sanitizer is to see each object's end. Throws std::bad_alloc.
void* slab_allocate(size_t bytes);

// Gives back what `slab_allocate` gave for that many bytes.
void slab_free(void* at, size_t bytes) noexcept;

// The same for what takes an allocator: shared pointers, containers.
template <class T>
struct SlabAllocator {
  using value_type = T;
  SlabAllocator() = default;
  template <class U>
  SlabAllocator(const SlabAllocator<U>&) noexcept {}
  [[nodiscard]] T* allocate(size_t n) { return static_cast<T*>(slab_allocate(n * sizeof(T))); }
  void deallocate(T* at, size_t n) noexcept { slab_free(at, n * sizeof(T)); }
  friend bool operator==(const SlabAllocator&, const SlabAllocator&) { return true; }
};

}  // namespace lathe::support
