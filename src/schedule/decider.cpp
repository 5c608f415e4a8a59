#include "schedule/decider.h"

#include <algorithm>

namespace lathe::schedule {

int64_t RandomDecider::decide(const DecisionPoint& point) {
  return point.candidates[random_() % point.candidates.size()];
}

int64_t TableDecider::decide(const DecisionPoint& point) {
  for (const std::string& key : {point.subject + ":" + point.rule + "." + point.name, point.rule + "." + point.name}) {
    const auto it = answers_.find(key);
    if (it == answers_.end()) continue;
    if (std::find(point.candidates.begin(), point.candidates.end(), it->second) != point.candidates.end())
      return it->second;
  }
  return otherwise_.decide(point);
}

}  // namespace lathe::schedule
