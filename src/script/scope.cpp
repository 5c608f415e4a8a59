#include "script/scope.h"

namespace lathe::script {

void Scope::pop() {
  for (; log_.size() > marks_.back(); log_.pop_back()) entries_[log_.back()].pop_back();
  marks_.pop_back();
}

void Scope::define(const std::string& name, ir::Value value, uint32_t begin, uint32_t end) {
  entries_[name].push_back({std::move(value), begin, end});
  log_.push_back(name);
}

const Scope::Entry* Scope::find(const std::string& name) const {
  const auto it = entries_.find(name);
  return it == entries_.end() || it->second.empty() ? nullptr : &it->second.back();
}

}  // namespace lathe::script
