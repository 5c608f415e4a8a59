// The text form of graph functions, both ways (the vocabulary of TVMScript's `R`).
#pragma once

#include <memory>

#include "relax/operator.h"
#include "script/dialect.h"

namespace lathe::relax {

// The dialect; `operators` are those that calls may name (it must outlive the dialect).
std::unique_ptr<script::Dialect> script_dialect(const OperatorTable& operators);

// A function, binding, expression or struct info alone, as text.
std::string graph_text(const NodeRef& node);

}  // namespace lathe::relax
