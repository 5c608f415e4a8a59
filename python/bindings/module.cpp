#include "bindings.h"
#include "support/version.h"

NB_MODULE(_lathe, m) {
  nb::set_leak_warnings(false);
  m.attr("__version__") = lathe::support::version;
  lathe::python::bind_errors(m);
  lathe::python::bind_nodes(m);
  lathe::python::bind_operators(m);
  lathe::python::bind_ir(m);
  lathe::python::bind_saved(m);
  lathe::python::bind_script(m);
  lathe::python::bind_intrinsics(m);
  lathe::python::bind_layouts(m);
  lathe::python::bind_schedule(m);
  lathe::python::bind_te(m);
  lathe::python::bind_topi(m);
  lathe::python::bind_passes(m);
  lathe::python::bind_arith(m);
  lathe::python::bind_driver(m);
  lathe::python::bind_runtime(m);
  lathe::python::bind_functions(m);
  lathe::python::bind_tool(m);
}
