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

class HostLanguage {
 public:
  virtual ~HostLanguage() = default;
  // The value of a name in the frames around the script, or nothing. A callable is an empty Value: a call of it comes
  // as an expression to `evaluate`.
  virtual std::optional<ir::Value> captured(const std::string& name) = 0;
  virtual support::Result<ir::Value> evaluate(const HostRequest& request) = 0;
};

}  // namespace lathe::script
