// What was proved about a loop's iterations, kept by the structure of the question (DESIGN, decision 8, the second
// tier): the same accesses under other names, in another function or in a copy of the schedule, are not proved again.
// An answer never goes stale: a program that changes asks another question.
#pragma once

#include <mutex>

#include "schedule/analysis/access.h"

namespace lathe::schedule {

// Shared by the copies of a schedule, on any threads. Keeps at most `capacity` answers; those asked for least recently
// go first, half of them at a time.
class Proofs {
 public:
  explicit Proofs(size_t capacity = 8192) : half_((capacity + 1) / 2) {}

  std::optional<bool> find(const std::string& question);
  void keep(std::string question, bool answer);

  struct Counts {
    uint64_t asked = 0, found = 0;
  };
  Counts counts() const;
  size_t size() const;

 private:
  using Answers = std::unordered_map<std::string, bool>;
  void insert(std::string question, bool answer);

  mutable std::mutex mutex_;
  size_t half_;
  Answers recent_, older_;
  Counts counts_;
};

// The ranges of variables bound above a statement: loops, and variables of blocks.
using Ranges = std::unordered_map<Var, Range>;
// Those above the loop or block of that id.
Ranges ranges_around(const PrimFunc& function, Id target);

// The question whether different iterations of `loop` touch different elements in `list` (accesses to one buffer), as
// text in which variables are numbered by their first occurrence: the extents of the loops, what is known of variables
// around, and each different access with its indices, its loops and its predicate. Nothing where an index is not made
// of sums, products, quotients and remainders of variables: such questions are rare, and are asked anew.
std::optional<std::string> question_of(const For& loop, const std::vector<const Access*>& list,
                                       const Ranges& around = {});

}  // namespace lathe::schedule
