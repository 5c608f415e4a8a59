#include "target/features.h"

namespace lathe::target {

std::set<std::string> x86_level_features(int level) {
  std::set<std::string> features = {"cmov", "cx8", "fxsr", "mmx", "sse", "sse2"};
  if (level >= 2) features.merge(std::set<std::string>{"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"});
  if (level >= 3)
    features.merge(
        std::set<std::string>{"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave", "crc32"});
  if (level >= 4) features.merge(std::set<std::string>{"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"});
  return features;
}

std::string architecture(const std::string& triple) { return triple.substr(0, triple.find('-')); }

void derive_vectors(Target& target) {
  const std::string cpu = architecture(target.triple);
  if (cpu == "x86_64") {
    target.vector_bits = target.has("avx512f") && target.has("avx512vl") ? 512 : target.has("avx") ? 256 : 128;
    target.vector_registers = target.has("avx512f") && target.has("avx512vl") ? 32 : 16;
  } else if (cpu == "aarch64") {
    target.vector_bits = 128;
    target.vector_registers = 32;
  }
}

bool has_plain_names(const Target& target) {
  const auto is_plain = [](const std::string& name) {
    return std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("_.+-").find(c) != std::string_view::npos;
    });
  };
  return is_plain(target.triple) && is_plain(target.cpu) &&
         std::all_of(target.features.begin(), target.features.end(), [&](const std::string& name) {
           return is_plain(name) && !name.starts_with('+') && !name.starts_with('-');
         });
}

}  // namespace lathe::target
