// A growing array of trivially copyable elements. The runtime links the C library alone, so there is no std::vector;
// running out of memory is a return value.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <type_traits>

namespace lathe::runtime {

template <typename Element>
struct Vector {
  static_assert(std::is_trivially_copyable_v<Element>);

  Element* elements = nullptr;
  uint64_t count = 0;
  uint64_t capacity = 0;

  Vector() = default;
  Vector(const Vector&) = delete;
  Vector& operator=(const Vector&) = delete;
  ~Vector() { std::free(elements); }

  // False when there is no memory; nothing has changed then.
  bool reserve(uint64_t wanted) {
    if (wanted <= capacity) return true;
    uint64_t grown = capacity < 8 ? 8 : capacity * 2;
    if (grown < wanted) grown = wanted;
    if (grown > UINT64_MAX / sizeof(Element)) return false;  // NOLINT(bugprone-sizeof-expression)
    // Elements may be pointers themselves. NOLINTNEXTLINE(bugprone-sizeof-expression)
    void* moved = std::realloc(static_cast<void*>(elements), grown * sizeof(Element));
    if (moved == nullptr) return false;
    elements = static_cast<Element*>(moved);
    capacity = grown;
    return true;
  }
  // New elements are zero.
  bool resize(uint64_t wanted) {
    if (!reserve(wanted)) return false;
    for (uint64_t i = count; i < wanted; ++i) elements[i] = Element{};
    count = wanted;
    return true;
  }
  bool push(const Element& element) {
    if (!reserve(count + 1)) return false;
    elements[count++] = element;
    return true;
  }
  Element& operator[](uint64_t index) { return elements[index]; }
  const Element& operator[](uint64_t index) const { return elements[index]; }
  Element* begin() { return elements; }
  Element* end() { return elements + count; }
  const Element* begin() const { return elements; }
  const Element* end() const { return elements + count; }
};

}  // namespace lathe::runtime
