#include "script/scope.h"

namespace lathe::script {

void Scope::pop() {
  for (; log_.size() > marks_.back(); log_.pop_back()) log_.back()->pop_back();
  marks_.pop_back();
}

void Scope::define(std::string_view name, ir::Value value, uint32_t begin, uint32_t end) {
  auto it = entries_.find(name);
  if (it == entries_.end()) it = entries_.emplace(name, std::vector<Entry>()).first;
  it->second.push_back({std::move(value), begin, end});
  log_.push_back(&it->second);
}

const Scope::Entry* Scope::find(std::string_view name) const {
  const auto it = entries_.find(name);
  return it == entries_.end() || it->second.empty() ? nullptr : &it->second.back();
}

}  // namespace lathe::script
