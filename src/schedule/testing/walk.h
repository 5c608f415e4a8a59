// Random walks over the primitives: what is accepted must mean the same to the interpreter, and what is refused is
// held against the truth.
#pragma once

#include <map>

#include "schedule/testing/random_nests.h"

namespace lathe::schedule::testing {

// What became of the attempts at one primitive.
struct Tally {
  int tried = 0, accepted = 0;
  int cannot_be = 0;  // refused, and so it is without proofs: arguments or programs that it is not made for
  int illegal = 0;    // refused, and the program that comes of it without proofs is another one
  int legal = 0;      // refused, though the program that comes of it without proofs is the same
  int undecided = 0;  // refused, because the budget of the polyhedral proof was spent
  std::map<std::string, int> legal_reasons;  // why, without names and numbers

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

std::string table(const Tallies& tallies);

}  // namespace lathe::schedule::testing
