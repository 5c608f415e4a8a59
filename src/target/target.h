// Target: what a device is and what it can do. Choices in the compiler ask it, never the name of a CPU.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "support/result.h"

namespace lathe::target {

// What a cache line is taken to have by all that plans how memory is walked; `Cache::line_bytes` is what a machine
// says.
constexpr int64_t cache_line_bytes = 64;

struct Cache {
  int level = 1;
  int64_t bytes = 0;
  int64_t line_bytes = cache_line_bytes;
  int shared_by = 1;  // threads
};

// A value: as text ("native", "x86-64-v3", "aarch64-linux-gnu", a triple with "-mcpu=… -mattr=…"), or as a JSON file.
struct Target {
  std::string kind = "llvm";       // one of target_kinds()
  std::string triple;              // LLVM's
  std::string cpu;                 // for LLVM's tuning; code is chosen by features alone
  std::set<std::string> features;  // LLVM's names, without '+': "avx512f"
  int vector_bits = 128;           // widest useful vector register
  int vector_registers = 16;
  int cores = 1;
  std::vector<Cache> caches;  // data and unified, by level

  bool has(const std::string& feature) const { return features.count(feature) != 0; }
  // Lanes of a vector of `bits`-wide elements.
  int lanes(int bits) const { return vector_bits / bits < 1 ? 1 : vector_bits / bits; }
  // Whether so many elements beside one another are worth vectors: more than half of one, or half of one that has at
  // least four lanes, for which narrower registers do.
  bool fills_vector(int64_t count, int bits) const {
    return 2 * count > lanes(bits) || (count >= 4 && 2 * count == lanes(bits));
  }
  int64_t cache_bytes(int level, int64_t otherwise) const;
  std::string to_json() const;
  // One line for people and cache keys; equal targets give equal text.
  std::string str() const;
};

// Kinds of the backends (abi/backends.def), and "interp": in process, by the interpreter.
const std::vector<std::string>& target_kinds();

// The target named by `text`; "native" is this machine, by CPUID.
support::Result<Target> parse_target(const std::string& text);
support::Result<Target> target_from_json(const std::string& json);
Target native_target();

}  // namespace lathe::target
