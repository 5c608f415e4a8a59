// What the primitives work on: a numbered function, and what became of its loops and blocks.
#pragma once

#include <unordered_map>

#include "support/result.h"
#include "tir/stmt.h"

namespace lathe::schedule {

using namespace tir;  // NOLINT: this room is written over tir's statements
using support::Diagnostic;
using support::Result;
using support::Status;

class Proofs;  // schedule/analysis/proofs.h

// A function whose loops and blocks all carry different ids, each below `next`.
struct Program {
  Function function;
  Id next = 1;
  Proofs* proofs = nullptr;  // of the schedule that it belongs to; null: nothing is kept
  // Whether dependences and regions must be shown to allow a primitive; else the caller vouches for them, and only what
  // a primitive needs to build its result is asked.
  bool proves = true;
};

// A buffer of a block: by its number among those that the block reads (its own results not counted) or writes.
struct BufferIndex {
  bool writes = false;
  int64_t number = 0;
};

// What a prefetch asks for: of what the next iteration reads, the pieces from `begin` to before `end` of so many equal
// ones; and the level of cache to which it shall come. `in_turn`: each iteration inside asks for what the same one
// reads then, wherever that lies. `turns`: how many iterations of loops of unknown extent share what one of them would
// ask for, each its part in turn; where fewer run, the rest is not asked for.
struct Prefetch {
  int64_t begin = 0, end = 1, of = 1;
  int64_t level = 2;  // 1 to 3
  bool in_turn = false;
  int64_t turns = 1;
};

// Old id -> new id; 0 means gone. An id without an entry keeps its number.
struct IdMap {
  std::unordered_map<Id, Id> changed;
  Id operator()(Id old) const {
    const auto it = changed.find(old);
    return it == changed.end() ? old : it->second;
  }
};

// What a primitive returns: the program, the fate of the ids, and the loops or blocks it made, in the order that the
// primitive documents.
struct Edit {
  Program program;
  IdMap ids;
  std::vector<Id> created;
};

// Numbers what has no id yet, and renumbers what shares one with an earlier loop or block.
Program number(Function function, Id next = 1);
// The edit from `before` to the function with body `body`: ids that vanished are found by comparing.
Edit edited(const Program& before, Function after, Id next, std::vector<Id> created = {});

}  // namespace lathe::schedule
