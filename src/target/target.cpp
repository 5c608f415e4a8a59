#include "target/target.h"

#include "target/codes.h"
#include "target/features.h"
#include "target/nearest.h"

namespace lathe::target {

using support::Diagnostic;
using support::Result;

int64_t Target::cache_bytes(int level, int64_t otherwise) const {
  for (const Cache& cache : caches)
    if (cache.level == level) return cache.bytes;
  return otherwise;
}

const std::vector<std::string>& target_kinds() {
  static const std::vector<std::string> kinds = {
#define LATHE_BACKEND(device, type, kind, emitter) #kind,
#include "abi/backends.def"
#undef LATHE_BACKEND
      "interp",
  };
  return kinds;
}

std::string Target::str() const {
  std::string text = kind;
  if (!triple.empty()) text += " " + triple;
  if (!cpu.empty()) text += " -mcpu=" + cpu;
  if (!features.empty()) {
    text += " -mattr=";
    bool first = true;
    for (const std::string& feature : features) {
      text += (first ? "+" : ",+") + feature;
      first = false;
    }
  }
  text += fmt::format(" -vector={}x{} -cores={}", vector_registers, vector_bits, cores);
  for (const Cache& cache : caches)
    text += fmt::format(" -cache={}:{}:{}:{}", cache.level, cache.bytes, cache.line_bytes, cache.shared_by);
  return text;
}

namespace {

constexpr std::string_view x86_triple = "x86_64-unknown-linux-gnu";

// What a machine of the level is taken to have where nothing is known: small caches, so that choices fit every one.
std::vector<Cache> usual_caches() { return {{1, 32 << 10, 64, 1}, {2, 512 << 10, 64, 1}, {3, 8 << 20, 64, 4}}; }

Target x86_level(int level) {
  Target t;
  t.triple = x86_triple;
  t.features = x86_level_features(level);
  t.caches = usual_caches();
  derive_vectors(t);
  return t;
}

Target aarch64_linux() {
  Target t;
  t.triple = "aarch64-unknown-linux-gnu";
  t.features = {"fp-armv8", "neon"};
  t.caches = usual_caches();
  derive_vectors(t);
  return t;
}

Target of_kind(std::string kind) {
  Target t = native_target();
  t.kind = std::move(kind);
  return t;
}

// Targets by name, one row each.
struct Named {
  std::string name;
  std::function<Target()> make;
};

const std::vector<Named>& named_targets() {
  static const std::vector<Named> rows = [] {
    std::vector<Named> named = {
        {"native", [] { return native_target(); }},
        {"x86-64-v2", [] { return x86_level(2); }},
        {"x86-64-v3", [] { return x86_level(3); }},
        {"x86-64-v4", [] { return x86_level(4); }},
        {"aarch64-linux-gnu", [] { return aarch64_linux(); }},
    };
    for (const std::string& kind : target_kinds())
      if (kind != "llvm") named.push_back({kind, [kind] { return of_kind(kind); }});
    return named;
  }();
  return rows;
}

std::string names_in_words() {
  std::string text;
  for (const Named& row : named_targets()) text += (text.empty() ? "" : ", ") + row.name;
  return text;
}

Diagnostic unknown(const std::string& text) {
  std::vector<std::string> names;
  for (const Named& row : named_targets()) names.push_back(row.name);
  Diagnostic d{.code = codes::unknown_target, .message = fmt::format("there is no target '{}'", text)};
  const std::string meant = nearest(text, names);
  if (!meant.empty())
    d.help = fmt::format("did you mean '{}'?", meant);
  else
    d.help = "targets are " + names_in_words() + ", an LLVM triple with -mcpu= and -mattr=, or a .json file";
  return d;
}

// "+avx2,-fma,f16c" onto the features of the target.
Result<std::monostate> apply_attributes(Target& target, const std::string& text) {
  std::stringstream stream(text);
  std::string item;
  while (std::getline(stream, item, ',')) {
    const bool removes = item.starts_with('-');
    if (removes || item.starts_with('+')) item.erase(0, 1);
    if (item.empty())
      return Diagnostic{.code = codes::bad_option, .message = fmt::format("-mattr={} has an empty feature", text)};
    if (removes)
      target.features.erase(item);
    else
      target.features.insert(item);
  }
  return support::success();
}

// "x86_64-unknown-linux-gnu -mcpu=x86-64-v3 -mattr=+avx2", also with a named target in front.
Result<Target> with_options(const std::string& text) {
  std::stringstream stream(text);
  std::string word;
  stream >> word;
  Target target;
  bool found = false;
  for (const Named& row : named_targets())
    if (row.name == word) target = row.make(), found = true;
  if (!found) {
    const std::string cpu = architecture(word);
    if (word.find('-') == std::string::npos || (cpu != "x86_64" && cpu != "aarch64")) return unknown(word);
    target = cpu == "x86_64" ? x86_level(1) : aarch64_linux();
    target.triple = word;
  }
  while (stream >> word) {
    if (word.starts_with("-mcpu=")) {
      target.cpu = word.substr(6);
      for (int level = 2; level <= 4; ++level) {
        if (target.cpu != fmt::format("x86-64-v{}", level)) continue;
        target.features.merge(x86_level_features(level));
        target.cpu.clear();
      }
    } else if (word.starts_with("-mattr=")) {
      TRY(apply_attributes(target, word.substr(7)));
    } else {
      return Diagnostic{.code = codes::bad_option,
                        .message = fmt::format("'{}' is no option of a target", word),
                        .help = "options are -mcpu=NAME and -mattr=+FEATURE,-FEATURE"};
    }
  }
  if (!has_plain_names(target)) return Diagnostic{.code = codes::bad_option, .message = plain_names_only};
  derive_vectors(target);
  return target;
}

}  // namespace

Result<Target> parse_target(const std::string& text) {
  for (const Named& row : named_targets())
    if (row.name == text) return row.make();
  if (text.ends_with(".json")) {
    std::ifstream file(text);
    if (!file)
      return Diagnostic{.code = codes::bad_file, .message = fmt::format("the target file '{}' cannot be read", text)};
    std::stringstream content;
    content << file.rdbuf();
    return target_from_json(content.str());
  }
  if (text.find_first_not_of(' ') == std::string::npos)
    return Diagnostic{.code = codes::unknown_target,
                      .message = "the target's name is empty",
                      .help = "targets are " + names_in_words()};
  return with_options(text);
}

}  // namespace lathe::target
