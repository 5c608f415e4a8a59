#include "support/slabs.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace lathe::support {

namespace {

constexpr size_t granule = 16;
constexpr size_t smallest = 16, largest = 512;
constexpr size_t slab_bytes = size_t{1} << 16;
constexpr size_t region_bytes = size_t{1} << 22;
constexpr size_t slabs_per_region = region_bytes / slab_bytes;
constexpr size_t words_per_slab = slab_bytes / smallest / 64;
constexpr size_t kept_empty = 256;  // beyond these, the pages of an empty slab go back to the system

size_t class_of(size_t bytes) { return (std::max(bytes, smallest) + granule - 1) / granule; }
constexpr size_t classes = largest / granule + 1;

#if defined(__has_feature)
#define LATHE_HAS_FEATURE(feature) __has_feature(feature)
#else
#define LATHE_HAS_FEATURE(feature) 0
#endif
bool in_slab(size_t bytes) { return bytes <= largest && !LATHE_HAS_FEATURE(address_sanitizer); }

// A free object, in the list of those that other threads freed.
struct Freed {
  Freed* next;
};

struct Slab {
  uint32_t size = 0;        // of an object, in bytes
  uint32_t inverse = 0;     // 2^32 / size, rounded up
  uint32_t index = 0;       // in its class
  uint32_t used = 0;        // objects, those in `remote` among them
  uint32_t capacity = 0;    // objects
  uint32_t first_free = 0;  // no word before this one has a free place
  Slab* next_returned = nullptr;
  std::atomic<Freed*> remote{nullptr};
  std::array<uint64_t, words_per_slab> free{};  // a bit for each place
};

// Slabs lie in regions, aligned to their size; the slabs' descriptions take the place of the first slab, side by side,
// so that they do not fall into one set of the cache.
struct Heap;
struct Region {
  Heap* owner;
  std::array<Slab, slabs_per_region> slabs;
};
static_assert(sizeof(Region) <= slab_bytes);

Region& region_of(const void* at) {
  return *reinterpret_cast<Region*>(reinterpret_cast<uintptr_t>(at) & ~(region_bytes - 1));
}
Slab& slab_of(const void* at) {
  return region_of(at).slabs[reinterpret_cast<uintptr_t>(at) % region_bytes / slab_bytes];
}
std::byte* begin_of(const Slab& slab) {
  Region& region = region_of(&slab);
  return reinterpret_cast<std::byte*>(&region) + static_cast<size_t>(&slab - region.slabs.data()) * slab_bytes;
}

// The slabs of one size, in the order in which they are filled.
struct Class {
  std::vector<Slab*> slabs;         // null: an index that is free
  std::vector<uint64_t> available;  // a bit for each slab with a free place
  Slab* current = nullptr;          // the first of these

  void set_available(uint32_t index) { available[index / 64] |= uint64_t{1} << index % 64; }
  void set_unavailable(uint32_t index) { available[index / 64] &= ~(uint64_t{1} << index % 64); }
  void find_current() {
    current = nullptr;
    for (size_t word = 0; word < available.size() && !current; ++word)
      if (available[word] != 0) current = slabs[word * 64 + static_cast<size_t>(std::countr_zero(available[word]))];
  }
};

// What one thread takes from. A heap outlives its thread, since objects in it may; the next thread takes it on.
struct Heap {
  std::array<Class, classes> by_size;
  std::vector<Slab*> empty;
  size_t regions = 0;
  std::atomic<Slab*> returned{nullptr};  // slabs in which other threads freed objects
  std::atomic<bool> taken{true};
  Heap* next = nullptr;  // of all heaps

  void* allocate(size_t size_class) {
    Class& sized = by_size[size_class];
    if (!sized.current) refill(sized, size_class);
    Slab& slab = *sized.current;
    while (slab.free[slab.first_free] == 0) ++slab.first_free;
    uint64_t& word = slab.free[slab.first_free];
    const size_t place = slab.first_free * 64 + static_cast<size_t>(std::countr_zero(word));
    word &= word - 1;
    if (++slab.used == slab.capacity) {
      sized.set_unavailable(slab.index);
      sized.find_current();
    }
    return begin_of(slab) + place * slab.size;
  }

  // Frees an object of a slab of this heap's, on its own thread.
  void free(Slab& slab, const void* at) {
    const auto offset = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(at) % slab_bytes);
    const auto place = static_cast<uint32_t>((uint64_t{offset} * slab.inverse) >> 32);
    slab.free[place / 64] |= uint64_t{1} << place % 64;
    slab.first_free = std::min(slab.first_free, place / 64);
    Class& sized = by_size[class_of(slab.size)];
    if (slab.used-- == slab.capacity) {
      sized.set_available(slab.index);
      if (!sized.current || slab.index < sized.current->index) sized.current = &slab;
    }
    if (slab.used == 0 && sized.current != &slab) retire(sized, slab);
  }

  // Frees an object of a slab of this heap's, on another thread.
  void free_from_afar(Slab& slab, void* at) {
    Freed* before = slab.remote.load(std::memory_order_relaxed);
    auto* freed = new (at) Freed;
    do freed->next = before;
    while (!slab.remote.compare_exchange_weak(before, freed, std::memory_order_acq_rel));
    if (before) return;  // then the slab is among the returned ones
    Slab* first = returned.load(std::memory_order_relaxed);
    do slab.next_returned = first;
    while (!returned.compare_exchange_weak(first, &slab, std::memory_order_acq_rel));
  }

  void take_returned() {
    Slab* slab = returned.exchange(nullptr, std::memory_order_acq_rel);
    while (slab) {
      Slab* next = slab->next_returned;
      Freed* freed = slab->remote.exchange(nullptr, std::memory_order_acq_rel);
      while (freed) {
        Freed* following = freed->next;
        free(*slab, freed);
        freed = following;
      }
      slab = next;
    }
  }

 private:
  void refill(Class& sized, size_t size_class) {
    take_returned();
    if (sized.current) return;
    const auto hole = std::find(sized.slabs.begin(), sized.slabs.end(), nullptr);
    const auto index = static_cast<uint32_t>(hole - sized.slabs.begin());
    if (hole == sized.slabs.end()) {
      sized.slabs.push_back(nullptr);
      sized.available.resize(sized.slabs.size() / 64 + 1);
    }
    if (empty.empty()) add_region();
    Slab& slab = *empty.back();
    empty.pop_back();
    const size_t size = size_class * granule;
    slab.size = static_cast<uint32_t>(size);
    slab.inverse = static_cast<uint32_t>(((uint64_t{1} << 32) + size - 1) / size);
    slab.index = index;
    slab.used = slab.first_free = 0;
    slab.capacity = static_cast<uint32_t>(slab_bytes / size);
    for (size_t word = 0; word < words_per_slab; ++word) {
      const size_t left = slab.capacity - std::min<size_t>(slab.capacity, word * 64);
      slab.free[word] = left >= 64 ? ~uint64_t{0} : (uint64_t{1} << left) - 1;
    }
    sized.slabs[index] = &slab;
    sized.set_available(index);
    sized.current = &slab;
  }

  void add_region() {
    empty.reserve((regions + 1) * slabs_per_region);  // so that no slab's return asks for memory
    constexpr size_t wanted = 2 * region_bytes;       // a region, aligned, is somewhere in it
    void* mapped = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    auto* first = static_cast<std::byte*>(mapped);
    const size_t before = -reinterpret_cast<uintptr_t>(first) % region_bytes;
    if (before > 0) munmap(first, before);
    if (before < region_bytes) munmap(first + before + region_bytes, region_bytes - before);
    auto* region = new (first + before) Region{.owner = this, .slabs = {}};
    ++regions;
    for (size_t i = slabs_per_region - 1; i > 0; --i) empty.push_back(&region->slabs[i]);
  }

  void retire(Class& sized, Slab& slab) {
    sized.set_unavailable(slab.index);
    sized.slabs[slab.index] = nullptr;
    if (empty.size() >= kept_empty) madvise(begin_of(slab), slab_bytes, MADV_DONTNEED);
    empty.push_back(&slab);
  }
};

std::atomic<Heap*> heaps{nullptr};

// A heap that no thread has, or a new one.
Heap* take_heap() {
  for (Heap* heap = heaps.load(std::memory_order_acquire); heap; heap = heap->next)
    if (!heap->taken.exchange(true, std::memory_order_acquire)) {
      heap->take_returned();
      return heap;
    }
  auto* heap = new Heap;
  Heap* first = heaps.load(std::memory_order_relaxed);
  do heap->next = first;
  while (!heaps.compare_exchange_weak(first, heap, std::memory_order_acq_rel));
  return heap;
}

thread_local Heap* mine = nullptr;

// Gives the thread's heap to others when the thread ends.
struct Holder {
  ~Holder() {
    if (Heap* heap = std::exchange(mine, nullptr)) heap->taken.store(false, std::memory_order_release);
  }
};

Heap& take_mine() {
  static thread_local Holder holder;
  mine = take_heap();
  return *mine;
}

}  // namespace

void* slab_allocate(size_t bytes) {
  if (!in_slab(bytes)) return ::operator new(bytes);
  Heap& heap = mine ? *mine : take_mine();
  return heap.allocate(class_of(bytes));
}

void slab_free(void* at, size_t bytes) noexcept {
  if (!in_slab(bytes)) return ::operator delete(at, bytes);
  Heap* owner = region_of(at).owner;
  if (owner == mine)
    owner->free(slab_of(at), at);
  else
    owner->free_from_afar(slab_of(at), at);
}

}  // namespace lathe::support
