// What an internal failure leaves behind: a folder with the model, the options, the inputs and what happened, and the
// one line that runs it again.
#pragma once

#include "ir/function.h"
#include "support/diagnostic.h"
#include "support/function_ref.h"
#include "support/std.h"

namespace lathe::driver {

// A file besides the model that the rerun needs: copied from `path`, or made by `write`, which gets the path to write
// to and says whether it did.
struct ReproducerFile {
  std::string name;  // in the folder; "{name}" in an argument stands for its path
  std::string path;
  std::function<bool(const std::string&)> write;
};

struct Reproducer {
  std::string model;                   // the model's path, or empty
  std::string content;                 // its bytes, where there is no file
  std::optional<ir::IRModule> module;  // where there are neither: it is written as a script
  std::vector<ReproducerFile> files;
  // Of `lathe`: "compile", "{model}", "--target", …; "{model}" stands for the model, "{folder}" for the folder.
  std::vector<std::string> arguments;
  std::string stage;  // the last row that ran
  std::string what;   // the failure's text
};

// Makes the folder lathe-reproducer-… where LATHE_REPRODUCER_DIR says, else in the current folder, else in the one for
// temporary files, and gives the sentence to show: what failed, in which stage, where the folder is and how to rerun
// it. What would make it larger than reproducer_limit is not copied: the line names the original.
std::string leave_reproducer(const Reproducer& reproducer);
inline constexpr uint64_t reproducer_limit = uint64_t{1} << 30;  // bytes

// A file's part of a command: "{name}", and the file itself where there is one of that path.
std::string file_argument(Reproducer& reproducer, const std::string& path);

// --target, --dim, --disable-pass, --decide, --winograd and --state again, for a reproducer: those that are given.
struct CompileWords {
  std::string target;
  std::vector<std::string> dims, disabled = {}, decisions = {};
  bool winograd = false;
  std::vector<std::string> states = {};
};
void append_options(const CompileWords& given, Reproducer& reproducer);

// Carries that sentence out.
class ReportedFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs `step` so that a crash in it leaves the reproducer too (crash.h).
void watched(const Reproducer& reproducer, support::function_ref<void()> step);

// Runs `step`; an internal failure in it leaves a reproducer and becomes a ReportedFailure. A user's error and a want
// of memory pass as they are.
template <class Step>
auto reporting(Reproducer& reproducer, Step&& step) -> decltype(step()) {
  try {
    std::optional<decltype(step())> result;
    watched(reproducer, [&] { result.emplace(step()); });
    return std::move(*result);
  } catch (const support::DiagnosticError&) {
    throw;
  } catch (const ReportedFailure&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    reproducer.what = e.what();
    throw ReportedFailure(leave_reproducer(reproducer));
  }
}

}  // namespace lathe::driver
