// What an internal failure leaves behind: a folder with the model, the options and what happened, and the one line
// that runs it again.
#pragma once

#include "support/diagnostic.h"
#include "support/std.h"

namespace lathe::driver {

struct Reproducer {
  std::string model;    // the model's path, or empty
  std::string content;  // its bytes, where there is no file
  std::vector<std::string>
      arguments;      // of `lathe`, without the model: "compile", "--target", …; "{model}" stands for it
  std::string stage;  // the last row that ran
  std::string what;   // the failure's text
};

// Makes the folder lathe-reproducer-… in the current folder (or the one for temporary files) and gives the sentence
// to show: what failed, in which stage, where the folder is and how to rerun it.
std::string leave_reproducer(const Reproducer& reproducer);

// Carries that sentence out.
class ReportedFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs `step`; an internal failure in it leaves a reproducer and becomes a ReportedFailure. A user's error and a want
// of memory pass as they are.
template <class Step>
auto reporting(Reproducer& reproducer, Step&& step) -> decltype(step()) {
  try {
    return step();
  } catch (const support::DiagnosticError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    reproducer.what = e.what();
    throw ReportedFailure(leave_reproducer(reproducer));
  }
}

}  // namespace lathe::driver
