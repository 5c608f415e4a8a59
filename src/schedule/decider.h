// Who answers a rule's questions (DESIGN, decision 7): the analytic model, a stored trace, the tuner, or the user.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

namespace lathe::schedule {

// A named question of a rule. `preferred` is the answer of the model written down beside the rule.
struct DecisionPoint {
  std::string rule;                 // "gemm"
  std::string name;                 // "tile_rows"
  std::string subject;              // the function or block it is about
  std::vector<int64_t> candidates;  // the legal answers
  int64_t preferred = 0;            // one of them
};

class Decider {
 public:
  virtual ~Decider() = default;
  // One of the point's candidates.
  virtual int64_t decide(const DecisionPoint& point) = 0;
  // Whether answers do not depend on the order of the questions, which several threads may then ask at once.
  virtual bool takes_any_order() const { return false; }
};

// Answers as the model does.
class AnalyticDecider : public Decider {
 public:
  int64_t decide(const DecisionPoint& point) override { return point.preferred; }
  bool takes_any_order() const override { return true; }
};

// Answers at random, the same for the same seed.
class RandomDecider : public Decider {
 public:
  explicit RandomDecider(uint64_t seed) : random_(seed) {}
  int64_t decide(const DecisionPoint& point) override;

 private:
  std::mt19937_64 random_;
};

// Answers from a table keyed "rule.name" (or "subject:rule.name", which goes first), else as another decider does.
class TableDecider : public Decider {
 public:
  TableDecider(std::map<std::string, int64_t> answers, Decider& otherwise)
      : answers_(std::move(answers)), otherwise_(otherwise) {}
  int64_t decide(const DecisionPoint& point) override;
  bool takes_any_order() const override { return otherwise_.takes_any_order(); }

 private:
  std::map<std::string, int64_t> answers_;
  Decider& otherwise_;
};

// Answers as another does, and notes each answer: "rows=14 steps=4".
class NotingDecider : public Decider {
 public:
  explicit NotingDecider(Decider& decider) : decider_(decider) {}
  int64_t decide(const DecisionPoint& point) override;
  const std::string& text() const { return text_; }

 private:
  Decider& decider_;
  std::string text_;
};

}  // namespace lathe::schedule
