#include "bindings.h"
#include "entry.h"

namespace lathe::python {

void bind_tool(nb::module_& m) {
  m.def(
      "run_command",
      [](const std::vector<std::string>& arguments) {
        std::vector<const char*> argv;
        for (const std::string& argument : arguments) argv.push_back(argument.c_str());
        int code = 0;
        {
          const nb::gil_scoped_release unlocked;
          code = tool::run_command(static_cast<int>(argv.size()), argv.data(), is_interrupted);
        }
        std::fflush(stdout);
        if (PyErr_CheckSignals() != 0) throw nb::python_error();  // a run was cancelled by it
        throw_if_interrupted();
        return code;
      },
      nb::arg("arguments"), "Runs the `lathe` command; arguments[0] is its name. Gives the exit code.");
}

}  // namespace lathe::python
