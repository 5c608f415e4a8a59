// Makes a script smaller while something stays true of it, by editing its text: both IRs have one grammar, in which a
// statement is a line with what is indented under it.
#pragma once

#include <functional>
#include <string>

namespace lathe::driver {

struct ShrinkScriptOptions {
  int most_attempts = 5000;
  std::function<void(const std::string& what, int lines)> on_progress;  // after each edit that was kept
};

// What is tried: statements are dropped, loops and branches give way to what is in them (a loop variable to 0), numbers
// become smaller wherever they stand. `holds` says no of a text that does not parse. The answer is the smallest text
// for which it said yes.
std::string shrink_script(std::string text, const std::function<bool(const std::string&)>& holds,
                          const ShrinkScriptOptions& options = {});

}  // namespace lathe::driver
