// Every primitive on random programs, in random order: what is accepted must mean the same to the interpreter, and
// little that is legal may be refused. LATHE_LONG_WALKS=1 walks until ten thousand steps were accepted, and a hundred
// of each primitive.
#include <gtest/gtest.h>

#include "schedule/testing/walk.h"

namespace lathe::schedule {
namespace {

TEST(primitives, keep_the_meaning_of_random_programs) {
  const char* wanted = std::getenv("LATHE_LONG_WALKS");
  const bool long_walks = wanted != nullptr;
  const uint64_t first = long_walks ? std::strtoull(wanted, nullptr, 10) : 0;
  testing::Tallies tallies;
  const auto least = [&] {
    int count = std::numeric_limits<int>::max();
    for (const auto& [name, tally] : tallies) count = std::min(count, tally.accepted);
    return count;
  };
  const auto accepted = [&] {
    int sum = 0;
    for (const auto& [name, tally] : tallies) sum += tally.accepted;
    return sum;
  };
  const int of_each = long_walks ? 100 : 3, of_all = long_walks ? 10'000 : 600;
  const uint64_t walks = long_walks ? 20'000 : 2'000;
  for (uint64_t seed = first; seed < first + walks && (seed < first + 40 || least() < of_each || accepted() < of_all);
       ++seed) {
    std::string problem;
    EXPECT_NO_THROW(problem = testing::walk(seed, tallies)) << "seed " << seed;
    if (!problem.empty()) ADD_FAILURE() << "seed " << seed << "\n" << problem;
    if (HasFailure()) break;
  }
  fmt::print("{}", testing::table(tallies, long_walks));
  for (const auto& [name, tally] : tallies) {
    EXPECT_GE(tally.accepted, of_each) << name;
    if (long_walks) EXPECT_LT(tally.share_refused(), 0.05) << name << ": the share of legal steps that it refuses";
  }
  EXPECT_GE(accepted(), of_all);
}

}  // namespace
}  // namespace lathe::schedule
