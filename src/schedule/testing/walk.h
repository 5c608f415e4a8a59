// Random walks over the primitives: what is accepted must mean the same to the interpreter, and what is refused is
// held against the truth.
#pragma once

#include <map>

#include "schedule/testing/random_nests.h"

namespace lathe::schedule::testing {

// What became of the attempts at one primitive.
struct Tally {
  int tried = 0, accepted = 0;
  int trivial = 0;    // of a program in which the block never runs, accepted or not
  int cannot_be = 0;  // refused, and so it is without proofs: arguments or programs that it is not made for
  int illegal = 0;    // refused, and the program that comes of it without proofs is another one
  int legal = 0;      // refused, though the program that comes of it without proofs is the same
  int undecided = 0;  // refused, because the budget of the polyhedral proof was spent
  struct Refusals {
    int count = 0;
    std::string example;  // the first of them: its message, the program
  };
  std::map<std::string, Refusals> legal_reasons;  // by why, without names

  // Of the legal steps, the share that was refused.
  double share_refused() const { return accepted + legal == 0 ? 0 : legal / static_cast<double>(accepted + legal); }
};
using Tallies = std::map<std::string, Tally>;

struct WalkOptions {
  int steps = 12;
  bool judges = true;  // whether refusals are held against the truth
};

// Walks on a random program of that seed. Empty, or what went wrong: a program that means something else, numbers given
// twice, a trace that does not replay, a refusal without a reason.
std::string walk(uint64_t seed, Tallies& tallies, const WalkOptions& options = {});

// A row each, with the reasons of what was refused though it is legal, and with an example of each where wanted.
std::string table(const Tallies& tallies, bool with_examples = false);

}  // namespace lathe::schedule::testing
