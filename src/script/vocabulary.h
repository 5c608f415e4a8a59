// The names of `T`, for errors about one that it does not have.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lathe::script {

// For the path of a name that is not there ("tir.gird"), the help that names the nearest: "the nearest name is T.grid".
// Empty for paths of other namespaces.
std::string nearest_help(std::string_view path);
// The same among some names after `prefix`, which begins with "T.".
std::string nearest_help(std::string_view name, std::string_view prefix, std::span<const std::string_view> known);

}  // namespace lathe::script
