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

int64_t NotingDecider::decide(const DecisionPoint& point) {
  const int64_t answer = decider_.decide(point);
  text_ += (text_.empty() ? "" : " ") + point.name + "=" + std::to_string(answer);
  return answer;
}

}  // namespace lathe::schedule
