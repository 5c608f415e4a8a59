// Knowledge: what one Analyzer knows, and the free functions that reason from it. Internal to the room.
#pragma once

#include "arith/analyzer.h"
#include "arith/sum.h"

namespace lathe::arith {

// What is known of one variable.
struct VarFacts {
  ConstIntBound bound;
  ModularSet set;
  Expr value;  // the variable stands for this; or null
};

// What is known of an expression that is no variable.
struct TermFacts {
  Expr term;
  ConstIntBound bound;
  ModularSet set;
};

struct Knowledge {
  std::unordered_map<const VarNode*, VarFacts> vars;
  std::vector<Var> kept;                      // keeps the keys of `vars` alive
  std::vector<Sum> facts;                     // each is >= 0
  std::vector<TermFacts> terms;               // bounds and sets from constraints
  std::vector<std::pair<Expr, bool>> truths;  // conditions assumed true or false, that are no inequality
  VarNumbers numbers;

  // int64 arithmetic on loaded or computed data wraps: set while a value, not an index, is simplified.
  bool value_position = false;
  // Steps left in the query that runs; at 0 everything answers "unknown" and expressions stay as they are.
  int budget = 0;
  static constexpr int budget_per_query = 20000;
  static constexpr int sum_steps_per_query = 400;  // of the search among facts, see prove.cpp
  int search_budget = 0;

  // What a constraint must undo.
  struct Level {
    size_t facts, terms, truths, changes;
    uint64_t epoch;
    bool contradiction;
  };
  std::vector<Level> levels;
  std::vector<std::pair<const VarNode*, VarFacts>> changes;  // earlier facts, newest last
  bool contradiction = false;                                // the constraints cannot hold together

  // Results by node, valid in one epoch; an epoch ends when knowledge changes. Direct-mapped: a newer entry replaces.
  struct Memo {
    Expr key, result;
    ConstIntBound bound;
    uint64_t result_epoch = 0, bound_epoch = 0;
  };
  std::vector<Memo> memo;  // of a length that is a power of two; it grows with the questions, most of them few
  size_t asked = 0;
  uint64_t epoch = 1, last_epoch = 1;

  Memo& entry(const Expr& e);  // until the next one is asked for
  VarFacts& facts_of(const Var& v);
  const VarFacts* find(const VarNode* v) const {
    const auto it = vars.find(v);
    return it == vars.end() ? nullptr : &it->second;
  }
  void new_epoch() { epoch = ++last_epoch; }
  void enter();
  void leave(size_t depth);
};

// While it lives, expressions stand in a value's position or in an index's.
class InPosition {
 public:
  InPosition(Knowledge& known, bool value) : known_(known), before_(known.value_position), epoch_(known.epoch) {
    if (value == before_) return;
    known_.value_position = value;
    known_.new_epoch();
  }
  ~InPosition() {
    if (known_.value_position == before_) return;
    known_.value_position = before_;
    known_.epoch = epoch_;
  }
  InPosition(const InPosition&) = delete;

 private:
  Knowledge& known_;
  bool before_;
  uint64_t epoch_;
};

// While it lives, `condition` is `truth`.
class Assumption {
 public:
  Assumption(Knowledge& known, const Expr& condition, bool truth);
  ~Assumption() { known_.leave(depth_); }
  Assumption(const Assumption&) = delete;

 private:
  Knowledge& known_;
  size_t depth_;
};

// Whether arithmetic on `e` is on mathematical integers: int64 scalars, unless the position is a value's and `e` holds
// data (a load, a call, a conversion).
bool is_index(const Knowledge& known, const Expr& e);

// bounds.cpp
ConstIntBound bound_of(Knowledge& known, const Expr& e);
ConstIntBound bound_of(Knowledge& known, const Sum& sum);
// The bound of the operation on mathematical integers, before it is cut to what the dtype holds.
ConstIntBound exact_bound_of(Knowledge& known, const Expr& e);

// modular.cpp
ModularSet set_of(Knowledge& known, const Expr& e);
ModularSet set_of(Knowledge& known, const Sum& sum);

// prove.cpp
inline constexpr int whole_depth = 3;  // of a search that has just begun
bool prove_nonnegative(Knowledge& known, const Sum& sum, int depth = whole_depth);
// Adds what `condition` being `truth` implies; `known.contradiction` is set where it cannot be.
void assume(Knowledge& known, const Expr& condition, bool truth);
// Adds `sum` >= 0.
void assume_nonnegative(Knowledge& known, Sum sum);

// simplify.cpp
Expr simplify(Knowledge& known, const Expr& e);

// divide.cpp: quotient and remainder of an index sum by a constant > 0, rounding down.
Expr floordiv_sum(Knowledge& known, Sum numerator, int64_t divisor);
Sum floordiv_to_sum(Knowledge& known, Sum numerator, int64_t divisor);
Sum floormod_to_sum(Knowledge& known, Sum numerator, int64_t divisor);
// Splits a sum by a symbolic divisor: terms that are its multiples, and the rest. False where there are none.
bool split_by(Knowledge& known, const Sum& numerator, const Expr& divisor, Sum& multiples, Sum& rest);

// compare.cpp: `sum` < 0, == 0 on index sums, in simplest form.
Expr less_than_zero(Knowledge& known, Sum sum);
Expr equal_to_zero(Knowledge& known, Sum sum);

}  // namespace lathe::arith
