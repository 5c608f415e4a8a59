// Text to programs: a class of functions, or functions alone, of the dialects that the caller passes.
#pragma once

#include "script/dialect.h"

namespace lathe::script {

using support::Result;

Result<ir::IRModule> parse(support::SourceText text, Dialects dialects, const ParseOptions& options = {});
// The only function of a text.
Result<ir::BaseFunc> parse_function(support::SourceText text, Dialects dialects, const ParseOptions& options = {});

// Variables that a function's body declares on lines of its own ("n = T.int64(is_size_var=True)") are known in its
// signature too: defines them, and gives the lines that did.
std::vector<const syntax::Stmt*> declare_symbols(class ExprReader& reader,
                                                 const std::vector<const syntax::Stmt*>& body);

}  // namespace lathe::script
