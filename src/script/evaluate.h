// One expression of a script by itself, with the values of its names: "T.exp(x) + 1", where x is given.
#pragma once

#include "script/scope.h"

namespace lathe::script {

support::Result<ir::Value> evaluate(support::SourceText text, const std::map<std::string, ir::Value>& names,
                                    const ParseOptions& options = {});

}  // namespace lathe::script
