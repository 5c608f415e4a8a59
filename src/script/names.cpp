#include "script/names.h"

#include <algorithm>
#include <array>

namespace lathe::script {
namespace {

constexpr std::array keywords = {
    std::string_view("False"),   std::string_view("None"),     std::string_view("True"),     std::string_view("and"),
    std::string_view("as"),      std::string_view("assert"),   std::string_view("async"),    std::string_view("await"),
    std::string_view("break"),   std::string_view("class"),    std::string_view("continue"), std::string_view("def"),
    std::string_view("del"),     std::string_view("elif"),     std::string_view("else"),     std::string_view("except"),
    std::string_view("finally"), std::string_view("for"),      std::string_view("from"),     std::string_view("global"),
    std::string_view("if"),      std::string_view("import"),   std::string_view("in"),       std::string_view("is"),
    std::string_view("lambda"),  std::string_view("nonlocal"), std::string_view("not"),      std::string_view("or"),
    std::string_view("pass"),    std::string_view("raise"),    std::string_view("return"),   std::string_view("try"),
    std::string_view("while"),   std::string_view("with"),     std::string_view("yield")};

// Names with a meaning of their own in scripts.
constexpr std::array builtins = {std::string_view("range"), std::string_view("float"), std::string_view("cls")};

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool is_keyword(std::string_view name) { return std::binary_search(keywords.begin(), keywords.end(), name); }

bool is_identifier(std::string_view name) {
  return !name.empty() && !is_keyword(name) && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) { return letter(c) || digit(c); });
}

std::string Names::legal(std::string_view hint) {
  std::string name;
  for (const char c : hint) name += letter(c) || digit(c) ? c : '_';
  if (name.empty()) name = "v";
  if (digit(name[0])) name = "_" + name;
  if (is_keyword(name) || std::find(builtins.begin(), builtins.end(), name) != builtins.end()) name += "_";
  return name;
}

void Names::pop() {
  for (const std::string& name : scopes_.back().taken) --taken_[name];
  for (const ir::Node* node : scopes_.back().nodes) texts_.erase(node);
  scopes_.pop_back();
}

void Names::reserve(std::string_view name) {
  scopes_.back().taken.emplace_back(name);
  ++taken_[std::string(name)];
}

bool Names::used(const std::string& name, bool ever) const {
  const auto it = taken_.find(name);
  return it != taken_.end() && (ever || it->second > 0);
}

const std::string& Names::take(Scope& scope, const ir::NodeRef& node, std::string name) {
  scope.taken.push_back(name);
  ++taken_[name];
  scope.nodes.push_back(node.get());
  return texts_[node.get()] = std::move(name);
}

const std::string& Names::define(const ir::NodeRef& node, std::string_view hint) {
  const std::string base = legal(hint);
  std::string name = base;
  if (used(name, false)) {
    int i = 1;
    if (const auto it = next_.find(base); it != next_.end() && used(base + "_1", false)) i = it->second;
    do name = base + "_" + std::to_string(i++);
    while (used(name, false));
    next_[base] = i;
  }
  return take(scopes_.back(), node, std::move(name));
}

const std::string& Names::define_outermost(const ir::NodeRef& node, std::string_view hint) {
  const std::string base = legal(hint);
  std::string name = base;
  for (int i = 1; used(name, true); ++i) name = base + "_" + std::to_string(i);
  return take(scopes_.front(), node, std::move(name));
}

void Names::set(const ir::NodeRef& node, std::string text) {
  scopes_.back().nodes.push_back(node.get());
  texts_[node.get()] = std::move(text);
}

const std::string* Names::find(const ir::Node* node) const {
  const auto it = texts_.find(node);
  return it == texts_.end() ? nullptr : &it->second;
}

}  // namespace lathe::script
