// The names of variables, buffers and functions while a program is printed: legal in Python, and unique among those in
// scope.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/node.h"

namespace lathe::script {

class Names {
 public:
  Names() { push(); }
  void push() { scopes_.emplace_back(); }
  void pop();

  // A name nothing uses here or in outer scopes.
  void reserve(std::string_view name);
  // Names the node for the rest of the innermost scope: its hint, made legal, with a number where it is taken.
  const std::string& define(const ir::NodeRef& node, std::string_view hint);
  // Names the node in the outermost scope by a name that no scope has used so far.
  const std::string& define_outermost(const ir::NodeRef& node, std::string_view hint);
  // Lets `text` stand for the node for the rest of the innermost scope ("A.data").
  void set(const ir::NodeRef& node, std::string text);
  // What stands for the node, or null.
  const std::string* find(const ir::Node* node) const;

  static std::string legal(std::string_view hint);

 private:
  struct Scope {
    std::vector<std::string> taken;
    std::vector<const ir::Node*> nodes;
  };
  const std::string& take(Scope& scope, const ir::NodeRef& node, std::string name);
  bool used(const std::string& name, bool ever) const;

  std::vector<Scope> scopes_;
  std::unordered_map<std::string, int> taken_;  // how many scopes hold it now; 0: it was used
  std::unordered_map<const ir::Node*, std::string> texts_;
  std::unordered_map<std::string, int> next_;
};

bool is_keyword(std::string_view name);
bool is_keyword(uint64_t packed_word);
bool is_identifier(std::string_view name);

}  // namespace lathe::script
