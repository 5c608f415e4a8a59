// One subcommand of `lathe`: its options, and what it does. Every file of this folder declares one.
#pragma once

#include <CLI/CLI.hpp>

#include "relax/dim_sizes.h"
#include "support/result.h"
#include "support/std.h"

namespace lathe::driver {
struct CompiledModel;
}

namespace lathe::tool {

// Adds the subcommand; its callback runs after parsing and throws DiagnosticError on a user's error.
void add_compile(CLI::App& app);
void add_run(CLI::App& app);
void add_bench(CLI::App& app);
void add_explain(CLI::App& app);
void add_verify(CLI::App& app);
void add_reduce(CLI::App& app);
void add_opt(CLI::App& app);
void add_doctor(CLI::App& app);

// Whether Ctrl-C was pressed, where the caller of the command can tell (Python); kept for long steps to ask.
void set_interrupted(bool (*interrupted)());
bool is_interrupted();

// The diagnostics' codes on standard error, where LATHE_DEBUG asks for anything.
void show_codes(const support::Diagnostics& diagnostics);

// "name=value" pairs of options such as --dim and --input, split at the first '='.
std::pair<std::string, std::string> split_pair(const std::string& option, const std::string& text);
relax::DimSizesByName parse_dims(const std::vector<std::string>& options);
inline constexpr const char* dim_help =
    "Fix a symbolic dimension: name=size. Or tell its sizes: name=1..64 (others are refused when the model runs), "
    "name=1..64:8,16 (these get kernels of their own), name=1..";
// --decide: "rule.name=value".
std::map<std::string, int64_t> parse_decisions(const std::vector<std::string>& options);
inline constexpr const char* decide_help =
    "Answer a question of a schedule rule: rule.name=value, or kernel:rule.name=value; `lathe bench --profile` shows "
    "the answers taken. A value that is none of the rule's candidates is passed over";

inline constexpr const char* winograd_help =
    "Let convolutions of 3x3 become Winograd's where that is faster, and say what error it brings (docs/winograd.md)";
// What --winograd came to, in a line on standard error; nothing where it was not given.
void print_winograd(const driver::CompiledModel& model);

// A line on standard error when something takes over a second: stage and percentage; erased when it is done.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  void operator()(const std::string& stage, double fraction);

 private:
  std::chrono::steady_clock::time_point start_;
  bool enabled_;
  bool shown_ = false;
};

}  // namespace lathe::tool
