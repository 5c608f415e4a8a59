#include "ir/function.h"

namespace lathe::ir {

BaseFunc IRModule::find(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? BaseFunc() : functions_[it->second].second;
}

void IRModule::set(const std::string& name, BaseFunc function) {
  const auto [it, added] = index_.emplace(name, functions_.size());
  if (added)
    functions_.emplace_back(name, std::move(function));
  else
    functions_[it->second].second = std::move(function);
}

bool IRModule::erase(const std::string& name) {
  const auto it = index_.find(name);
  if (it == index_.end()) return false;
  functions_.erase(functions_.begin() + static_cast<ptrdiff_t>(it->second));
  index_.clear();
  for (size_t i = 0; i < functions_.size(); ++i) index_[functions_[i].first] = i;
  return true;
}

std::string IRModule::unique_name(const std::string& hint) const {
  if (!index_.count(hint)) return hint;
  const auto numbered = [&](size_t i) { return hint + "_" + std::to_string(i); };
  // Numbers are mostly taken in order: the end of the first run of taken ones is found by doubling, then by halving,
  // and thousands of functions with one hint cost a few questions each.
  size_t taken = 0, is_free = 1;
  while (index_.count(numbered(is_free))) {
    taken = is_free;
    is_free *= 2;
  }
  while (is_free - taken > 1) {
    const size_t middle = taken + (is_free - taken) / 2;
    (index_.count(numbered(middle)) ? taken : is_free) = middle;
  }
  return numbered(is_free);
}

std::optional<std::string> first_difference(const IRModule& a, const IRModule& b) {
  for (const auto& [name, function] : b)
    if (!a.find(name)) return "function '" + name + "' is on the right only";
  for (const auto& [name, function] : a) {
    const BaseFunc other = b.find(name);
    if (!other) return "function '" + name + "' is on the left only";
    if (const auto difference = first_difference(NodeRef(function), NodeRef(other))) return name + "." + *difference;
  }
  Equality attributes(false);
  if (!attributes.values(Value(a.attrs.entries()), Value(b.attrs.entries())))
    return "attributes: " + attributes.difference().value_or("differ");
  return std::nullopt;
}

bool same_functions(const IRModule& a, const IRModule& b) {
  return a.functions() == b.functions() && Equality(false).values(Value(a.attrs.entries()), Value(b.attrs.entries()));
}

bool structural_equal(const IRModule& a, const IRModule& b) { return !first_difference(a, b); }

support::Hash128 structural_hash(const IRModule& module) {
  // Independent of the order of functions: by name.
  std::map<std::string, support::Hash128> hashes;
  for (const auto& [name, function] : module) hashes[name] = structural_hash(NodeRef(function));
  StructuralHasher hasher(true);
  for (const auto& [name, hash] : hashes) {
    hasher.text(name);
    hasher.word(hash.high);
    hasher.word(hash.low);
  }
  hasher.value(Value(module.attrs.entries()));
  return hasher.finish();
}

}  // namespace lathe::ir
