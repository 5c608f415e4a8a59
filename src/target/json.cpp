// A target as a JSON file, so that another machine's choices can be made and tested on this one.
#include <nlohmann/json.hpp>

#include "target/codes.h"
#include "target/features.h"
#include "target/nearest.h"
#include "target/target.h"

namespace lathe::target {

using nlohmann::json;
using nlohmann::ordered_json;
using support::Diagnostic;
using support::Result;

namespace {

const std::vector<std::string> target_keys = {"kind",        "triple",           "cpu",   "features",
                                              "vector_bits", "vector_registers", "cores", "caches"};
const std::vector<std::string> cache_keys = {"level", "bytes", "line_bytes", "shared_by"};

std::optional<Diagnostic> unknown_key(const json& object, const std::vector<std::string>& keys, const std::string& of) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    Diagnostic d{.code = codes::unknown_key, .message = fmt::format("a {} has no key '{}'", of, key)};
    const std::string meant = nearest(key, keys);
    if (!meant.empty()) d.help = fmt::format("did you mean '{}'?", meant);
    return d;
  }
  return std::nullopt;
}

Diagnostic bad(std::string message) { return {.code = codes::bad_file, .message = std::move(message)}; }

Result<std::string> text_at(const json& object, const std::string& key) {
  const json& value = object.at(key);
  if (!value.is_string()) return bad(fmt::format("'{}' of a target is text, not {}", key, value.type_name()));
  return value.get<std::string>();
}

Result<int64_t> number_at(const json& object, const std::string& key, int64_t least, int64_t most) {
  const json& value = object.at(key);
  if (!value.is_number_integer()) return bad(fmt::format("'{}' of a target is an integer, not {}", key, value.dump()));
  const bool huge = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(most);
  const int64_t number = huge ? most : value.get<int64_t>();
  if (huge || number < least || number > most)
    return bad(fmt::format("'{}' of a target is {}, outside of {} to {}", key, value.dump(), least, most));
  return number;
}

Result<Cache> cache_from(const json& object) {
  if (!object.is_object()) return bad("a cache of a target is an object with level and bytes");
  if (auto problem = unknown_key(object, cache_keys, "cache")) return *problem;
  for (const char* key : {"level", "bytes"})
    if (!object.contains(key)) return bad(fmt::format("a cache of a target lacks '{}'", key));
  Cache cache;
  cache.level = static_cast<int>(TRY(number_at(object, "level", 1, 8)));
  cache.bytes = TRY(number_at(object, "bytes", 1, int64_t{1} << 40));
  if (object.contains("line_bytes")) cache.line_bytes = TRY(number_at(object, "line_bytes", 1, 4096));
  if (object.contains("shared_by")) cache.shared_by = static_cast<int>(TRY(number_at(object, "shared_by", 1, 65536)));
  return cache;
}

}  // namespace

std::string Target::to_json() const {
  ordered_json object;
  object["kind"] = kind;
  object["triple"] = triple;
  object["cpu"] = cpu;
  object["features"] = features;
  object["vector_bits"] = vector_bits;
  object["vector_registers"] = vector_registers;
  object["cores"] = cores;
  object["caches"] = ordered_json::array();
  for (const Cache& cache : caches)
    object["caches"].push_back({{"level", cache.level},
                                {"bytes", cache.bytes},
                                {"line_bytes", cache.line_bytes},
                                {"shared_by", cache.shared_by}});
  return object.dump(2) + "\n";
}

Result<Target> target_from_json(const std::string& text) {
  const json object = json::parse(text, nullptr, false);
  if (object.is_discarded()) return bad("the target file is not JSON");
  if (!object.is_object()) return bad("a target file holds one object");
  if (auto problem = unknown_key(object, target_keys, "target")) return *problem;
  Target target;
  if (object.contains("kind")) target.kind = TRY(text_at(object, "kind"));
  const std::vector<std::string>& kinds = target_kinds();
  if (std::find(kinds.begin(), kinds.end(), target.kind) == kinds.end()) {
    Diagnostic d = bad(fmt::format("there is no target kind '{}'", target.kind));
    const std::string meant = nearest(target.kind, kinds);
    d.help =
        meant.empty() ? fmt::format("kinds are {}", fmt::join(kinds, ", ")) : fmt::format("did you mean '{}'?", meant);
    return d;
  }
  if (object.contains("triple")) target.triple = TRY(text_at(object, "triple"));
  if (target.triple.empty()) return bad("a target file needs 'triple'");
  if (object.contains("cpu")) target.cpu = TRY(text_at(object, "cpu"));
  if (object.contains("features")) {
    const json& features = object.at("features");
    if (!features.is_array()) return bad(fmt::format("'features' of a target is a list, not {}", features.type_name()));
    for (const json& feature : features) {
      if (!feature.is_string()) return bad(fmt::format("a feature of a target is text, not {}", feature.dump()));
      target.features.insert(feature.get<std::string>());
    }
  }
  if (!has_plain_names(target)) return bad(plain_names_only);
  derive_vectors(target);
  if (object.contains("vector_bits"))
    target.vector_bits = static_cast<int>(TRY(number_at(object, "vector_bits", 32, 2048)));
  if (object.contains("vector_registers"))
    target.vector_registers = static_cast<int>(TRY(number_at(object, "vector_registers", 1, 256)));
  if (object.contains("cores")) target.cores = static_cast<int>(TRY(number_at(object, "cores", 1, 65536)));
  if (object.contains("caches")) {
    if (!object.at("caches").is_array()) return bad("'caches' of a target is a list");
    for (const json& cache : object.at("caches")) target.caches.push_back(TRY(cache_from(cache)));
  }
  return target;
}

}  // namespace lathe::target
