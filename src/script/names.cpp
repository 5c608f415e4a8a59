#include "script/names.h"

#include <algorithm>
#include <array>

#include "script/token.h"

namespace lathe::script {
namespace {

constexpr std::array<uint64_t, 35> keywords = {
    packed_word("as"),      packed_word("if"),       packed_word("in"),      packed_word("is"),
    packed_word("or"),      packed_word("and"),      packed_word("def"),     packed_word("del"),
    packed_word("for"),     packed_word("not"),      packed_word("try"),     packed_word("None"),
    packed_word("True"),    packed_word("elif"),     packed_word("else"),    packed_word("from"),
    packed_word("pass"),    packed_word("with"),     packed_word("False"),   packed_word("async"),
    packed_word("await"),   packed_word("break"),    packed_word("class"),   packed_word("raise"),
    packed_word("while"),   packed_word("yield"),    packed_word("assert"),  packed_word("except"),
    packed_word("global"),  packed_word("import"),   packed_word("lambda"),  packed_word("return"),
    packed_word("finally"), packed_word("continue"), packed_word("nonlocal")};

// Names with a meaning of their own in scripts.
constexpr std::array builtins = {std::string_view("range"), std::string_view("float"), std::string_view("cls")};

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// Where a keyword stands, the next places after its own where others are.
constexpr size_t keyword_slots = 128;
constexpr size_t keyword_slot(uint64_t word) { return (word * 0x9e3779b97f4a7c15) >> 57; }
constexpr std::array<uint64_t, keyword_slots> keyword_table = [] {
  std::array<uint64_t, keyword_slots> table{};
  for (const uint64_t word : keywords) {
    size_t slot = keyword_slot(word);
    while (table[slot] != 0) slot = (slot + 1) % keyword_slots;
    table[slot] = word;
  }
  return table;
}();

bool is_keyword(std::string_view name) { return is_keyword(packed_word(name)); }

bool is_keyword(uint64_t word) {
  if (word == 0) return false;
  for (size_t slot = keyword_slot(word); keyword_table[slot] != 0; slot = (slot + 1) % keyword_slots)
    if (keyword_table[slot] == word) return true;
  return false;
}

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
