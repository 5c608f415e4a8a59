// Names in a script while it is read. They resolve in the IR's scope first, then as import aliases, then as values
// captured from the host language.
#pragma once

#include <functional>
#include <unordered_map>

#include "ir/function.h"
#include "ir/tensor_data.h"
#include "script/host.h"
#include "script/syntax.h"

namespace lathe::script {

// A hash of texts that tables of strings take without making one.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <class T>
using ByName = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

// The values of IR variables, by name; inner scopes hide outer ones.
class Scope {
 public:
  struct Entry {
    ir::Value value;
    uint32_t begin = 0, end = 0;  // where it was defined
  };
  Scope() = default;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  void push() { marks_.push_back(log_.size()); }
  void pop();
  void define(std::string_view name, ir::Value value, uint32_t begin, uint32_t end);
  const Entry* find(std::string_view name) const;

 private:
  ByName<std::vector<Entry>> entries_;
  std::vector<std::vector<Entry>*> log_;  // what was defined since the outermost scope, the last one's last
  std::vector<size_t> marks_;
};

struct ParseOptions {
  HostLanguage* host = nullptr;  // null: the text comes from a file
  // Names that stand for a dialect ("T": "tir") or for another module before the text imports any.
  ByName<std::string> aliases = {{"T", "tir"}, {"R", "relax"}, {"I", "ir"}};
  bool indented = false;  // the text was cut out of a suite: its first line says how deep it stands
  // The data of a constant by its content name; null when it is not known.
  std::function<ir::TensorData(const std::string&)> constants;
};

// What the functions of one text share.
struct Context {
  syntax::Tree& tree;
  const ParseOptions& options;
  ByName<std::string> aliases;         // name: "tir", "relax", "ir", or the path of another module
  std::string module_name;             // the class that holds the functions
  ByName<std::string> function_names;  // as written in `def`: the function's name
  ByName<ir::Value> signatures;        // by function name: what its dialect declared
  ByName<const syntax::Stmt*> macros;  // of this text, by name
};

}  // namespace lathe::script
