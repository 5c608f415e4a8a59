// Programs to text. `parse(print(x))` equals `x`, and printing that again gives the same text.
#pragma once

#include "script/dialect.h"

namespace lathe::script {

// The version of the text form, in the first line of every script.
inline constexpr int format_version = 1;
std::string version_line();

// A whole script: version, imports, and one class with the functions in order.
std::string print(const ir::IRModule& module, const PrintOptions& options, Dialects dialects);
// One function as a script.
std::string print_function(const std::string& name, const ir::BaseFunc& function, const PrintOptions& options,
                           Dialects dialects);
// A part of a program, for messages: a scalar expression, statement, struct info, ….
std::string print(const ir::NodeRef& node, const PrintOptions& options, Dialects dialects);

// "@T.prim_func" and the `def` line: `decoration` are the decorator's arguments, `signature` what follows the name
// ("(A: T.Buffer(...)):"). A name that is no identifier goes into the decorator.
void print_header(Lines& lines, const std::string& decorator, std::vector<std::string> decoration,
                  const std::string& name, const std::string& signature);

}  // namespace lathe::script
