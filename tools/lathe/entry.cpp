#include "entry.h"

#include "command.h"
#include "driver/report/reproducer.h"
#include "support/environment.h"
#include "support/version.h"

namespace {

constexpr int user_error = 1, usage_error = 2, internal_failure = 70;

int parse_and_run(int argc, const char* const* argv) {
  CLI::App app{"Lathe compiles machine-learning models to small native artifacts.", "lathe"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("lathe ") + lathe::support::version);
  app.footer("Example:\n  lathe compile model.onnx -o model.so && lathe run model.so --input x=image.npy -o out.npz");
  lathe::tool::add_compile(app);
  lathe::tool::add_run(app);
  lathe::tool::add_bench(app);
  lathe::tool::add_explain(app);
  lathe::tool::add_verify(app);
  lathe::tool::add_reduce(app);
  lathe::tool::add_opt(app);
  lathe::tool::add_doctor(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();
  } catch (const CLI::ParseError& e) {
    app.exit(e);
    return usage_error;
  }
  return 0;
}

}  // namespace

namespace lathe::tool {

void show_codes(const support::Diagnostics& diagnostics) {
  if (support::debug_level(support::read_environment()) == 0) return;
  for (const support::Diagnostic& diagnostic : diagnostics)
    std::fprintf(stderr, "  code: %s\n", std::string(diagnostic.code.name).c_str());
}

int run_command(int argc, const char* const* argv, bool (*interrupted)()) {
  set_interrupted(interrupted);
  try {
    return parse_and_run(argc, argv);
  } catch (const support::DiagnosticError& e) {
    std::fputs(e.what(), stderr);
    show_codes(e.diagnostics);
    return user_error;
  } catch (const std::bad_alloc&) {
    std::fputs("there is not enough memory for this\n", stderr);
    return user_error;
  } catch (const driver::ReportedFailure& e) {
    std::fputs(e.what(), stderr);
    return internal_failure;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "internal failure: %s\n", e.what());
    return internal_failure;
  }
}

}  // namespace lathe::tool
