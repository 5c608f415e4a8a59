// Values of any kind in NumPy's files: tensors and strings as .npy, sequences and tuples as .npz (a .npy for each
// member, in order), an optional as what it holds.
#pragma once

#include "arrays/npy.h"
#include "driver/value.h"

namespace lathe::tool {

// Stands for a file where an optional is empty.
inline constexpr std::string_view no_value = "none";

// A value for the input: the file at `path`, or `no_value`.
support::Result<driver::Value> read_value(const std::string& path, const LatheValueInfo& input);

// ".npy", ".bfloat16.npy" or ".npz": how a name must end for read_value; empty for an optional that is.
std::string file_form(const LatheValue& value);
// Not for an empty optional.
support::Status write_value(const std::string& path, const LatheValue& value);
// One archive of all: a tensor y as y, members of a sequence y as y.0, y.1, …; an empty optional is left out.
support::Status write_values(const std::string& path,
                             const std::vector<std::pair<std::string, const LatheValue*>>& values);

}  // namespace lathe::tool
