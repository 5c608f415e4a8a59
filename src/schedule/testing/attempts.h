// What a walk may try: one row a primitive, each of which draws its arguments.
#pragma once

#include <functional>
#include <optional>
#include <random>
#include <span>

#include "schedule/schedule.h"

namespace lathe::schedule::testing {

// What the arguments of an attempt are drawn from, as handles of one copy of the schedule.
struct Choice {
  Schedule schedule;
  BlockRV block, other;
  std::vector<LoopRV> loops, others;  // around the one and the other
  LoopRV loop, other_loop;            // one of each
  int64_t factor = 1;                 // 1 to 5
};

// A primitive with its arguments, to run on copies of one schedule.
struct Attempt {
  std::function<support::Diagnostics(Schedule&)> run;  // empty where it was accepted
  std::optional<LoopRV> concurrent;                    // the loop whose iterations it lets run at once
  std::optional<BlockRV> moved;  // the block whose instances run elsewhere, each as often as before
};

inline size_t pick(std::mt19937& random, size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); }

// Draws from `random` what an attempt at `schedule` is about.
class Draw {
 public:
  Draw(std::mt19937& random, Schedule& schedule, DType element)
      : random_(random), schedule_(schedule), element_(element) {}

  size_t pick(size_t n) { return testing::pick(random_, n); }
  int64_t number(size_t n) { return static_cast<int64_t>(pick(n)); }
  std::mt19937& random() { return random_; }

  // None where there is no block with a loop.
  std::optional<Choice> choice();
  // `to`, from which the walk goes on whatever becomes of the attempt.
  void go_on_from(Choice& c, const Schedule& to) { schedule_ = c.schedule = to; }

  DType element() const { return element_; }

 private:
  std::mt19937& random_;
  Schedule& schedule_;
  DType element_;
};

struct Primitive {
  const char* name;  // of its tally
  Attempt (*attempt)(Draw& draw, Choice& c);
};

std::span<const Primitive> primitives();

// Intrinsics for what the random programs compute, "scale_4" and the like, over one loop of the extents they have. Each
// is its own implementation.
std::shared_ptr<const Context> row_intrins();

}  // namespace lathe::schedule::testing
