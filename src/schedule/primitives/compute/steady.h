// Whether a value may be computed once more, or later, in a loop: it is the same in each of its iterations.
#pragma once

#include "schedule/analysis/dependence.h"

namespace lathe::schedule {

// How many loops two accesses share.
size_t shared_loops(const Access& a, const Access& b);

// Whether what blocks compute for an element is the same in every iteration of a loop. `all` are the accesses of the
// whole function.
class Steadiness {
 public:
  Steadiness(const Program& program, const For& loop, const std::vector<Access>& all)
      : program_(program), loop_(loop), all_(all) {}

  // Why it is not, for the block at the path's end, whose reductions have to be complete in an iteration of each loop
  // of `complete_in`.
  std::optional<std::string> of_block(const Path& path, const std::vector<const For*>& complete_in);
  // Why an element that is read may have other values in other iterations.
  std::optional<std::string> of_read(const Access& read);

 private:
  const Program& program_;
  const For& loop_;
  const std::vector<Access>& all_;
  std::vector<const Block*> seen_;
};

}  // namespace lathe::schedule
