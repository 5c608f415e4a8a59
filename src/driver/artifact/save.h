// Writing a compiled model in one of the forms it can leave Lathe in.
#pragma once

#include "driver/compile.h"

namespace lathe::driver {

struct Form {
  std::string_view name;       // of --emit
  std::string_view extension;  // ".so"
  std::string_view meaning;
};

// so, o, a, ll, s, relax, tir, py, program, listing.
const std::vector<Form>& forms();
// The form that an output path's extension names; a diagnostic lists those there are.
support::Result<const Form*> form_of_path(const std::string& path);
support::Result<const Form*> form_named(const std::string& name);

// Writes the model to `path`; an archive or object gets a header beside it. The file appears whole or not at all.
support::Status save(const CompiledModel& model, const Form& form, const std::string& path);

// The last row that `form` needs: the text of an IR needs no code. Empty: all.
std::string stop_row(const Form& form);

}  // namespace lathe::driver
