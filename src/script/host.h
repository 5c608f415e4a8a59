// What a script may leave to the language around it: captured names, and constructs that only it can evaluate.
#pragma once

#include <map>

#include "ir/value.h"
#include "support/result.h"

namespace lathe::script {

// One sub-expression, with the IR values of the script's names that occur in it.
struct HostRequest {
  support::TextRange range;
  std::string_view text;
  std::map<std::string, ir::Value> names;
};

class HostLanguage;

// Statements with parameters, written in the host language's file: what a call of it in a program stands for.
struct HostMacro {
  support::SourceText text;  // of its definition
  bool indented = false;
  bool hygienic = true;  // its free names mean what they do where it is defined, else what they do at the call
  std::shared_ptr<HostLanguage> host;
  std::map<std::string, std::string> aliases;
};

class HostLanguage {
 public:
  virtual ~HostLanguage() = default;
  // The value of a name in the frames around the script, or nothing. A callable is an empty Value: a call of it comes
  // as an expression to `evaluate`.
  virtual std::optional<ir::Value> captured(std::string_view name) = 0;
  virtual support::Result<ir::Value> evaluate(const HostRequest& request) = 0;
  // The macro that a callee's text ("m", "self.m") names, or nothing.
  virtual std::optional<HostMacro> macro(std::string_view) { return std::nullopt; }
};

}  // namespace lathe::script
