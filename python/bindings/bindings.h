// The extension lathe._lathe: what each file of this folder adds to the module, one file a room.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "support/result.h"
#include "support/std.h"

namespace nb = nanobind;

namespace lathe::python {

void bind_errors(nb::module_& m);      // support: diagnostics as exceptions
void bind_nodes(nb::module_& m);       // ir, tir, relax: nodes, from their declarations
void bind_operators(nb::module_& m);   // ir/build: what Python's operators make
void bind_ir(nb::module_& m);          // ir, driver/print: modules
void bind_saved(nb::module_& m);       // driver/saved: programs as JSON
void bind_script(nb::module_& m);      // script: texts, with the Python around them
void bind_intrinsics(nb::module_& m);  // tir: what users register
void bind_layouts(nb::module_& m);     // tir/layout
void bind_schedule(nb::module_& m);    // schedule
void bind_te(nb::module_& m);          // te
void bind_functions(nb::module_& m);   // driver/functions: tensor functions compiled and called
void bind_driver(nb::module_& m);      // driver: reading, compiling, saving
void bind_topi(nb::module_& m);        // te/topi, te/einsum, te/scan
void bind_passes(nb::module_& m);      // tir/passes, tir/analysis: programs transformed and asked
void bind_arith(nb::module_& m);       // arith: what can be shown of integer expressions
void bind_runtime(nb::module_& m);     // runtime: what runs
void bind_tool(nb::module_& m);        // tools/lathe: the command

// Raises the diagnostics as the Error subclass that lathe/errors.py chooses.
[[noreturn]] void raise(const support::Diagnostics& diagnostics);

// The value, or the diagnostics raised.
template <class T>
T unwrap(support::Result<T> result) {
  if (!result.ok()) raise(result.diagnostics());
  return *std::move(result);
}

// For long work that has given the interpreter lock away: whether Ctrl-C was pressed. Takes the lock a few times a
// second; the pending KeyboardInterrupt stays with the calling thread and is thrown by `throw_if_interrupted`.
bool is_interrupted();
void throw_if_interrupted();

}  // namespace lathe::python
