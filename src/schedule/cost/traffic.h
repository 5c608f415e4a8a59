// How many bytes a program moves between a cache and what lies behind it, from the boxes that its loops touch.
#pragma once

#include "tir/analysis/buffer_accesses.h"

namespace lathe::schedule {

// The accesses of one program, in the order of execution, and what they touch. Extents must be constants.
//
// A loop nest brings each byte once while one iteration of its outermost loop fits the cache, and all of its bytes
// again in each iteration when it does not: the largest parts of the program whose iterations fit are counted, as often
// as they run. (The model of cache-oblivious analysis: Frigo, Leiserson, Prokop and Ramachandran, "Cache-Oblivious
// Algorithms", 1999, for caches that replace what was not used for longest and have no sets.)
class Traffic {
 public:
  // Nothing where an extent is not a constant.
  static std::optional<Traffic> of(const tir::Stmt& body);

  // The bytes, in whole cache lines, that all of it touches.
  double touched() const;
  // The bytes that a cache of so many bytes takes from behind it. Nothing (0) where all that is touched fits.
  double missed(double cache_bytes) const;

 private:
  struct Box;
  double touched(std::span<const tir::BufferAccess> accesses, size_t depth) const;
  double missed(std::span<const tir::BufferAccess> accesses, size_t depth, double cache_bytes) const;

  std::vector<tir::BufferAccess> accesses_;
};

}  // namespace lathe::schedule
