#include "schedule/index_map.h"

#include <gtest/gtest.h>

#include "arith/analyzer.h"

namespace lathe::schedule {
namespace {

std::string printed(const std::string& results) {
  const auto map = parse_index_map("lambda i, j: (" + results + ",)");
  return map.ok() ? map->text() : support::render(map.diagnostics());
}

TEST(index_map, prints_what_is_read_as_the_same) {
  for (const char* results : {"i // 4, j, i % 4",
                              "i * 4 + j",
                              "-3 * i",
                              "i - -3",
                              "i * -3 - (j - i)",
                              "-i",
                              "--i",
                              "2 * -(i + j)",
                              "(i + j) * (i - j)",
                              "-9223372036854775808",
                              "9223372036854775807",
                              "9223372036854775807 * 3 + i",
                              "0 - 9223372036854775807 - 1 + i",
                              "11 * 111 * 1111111111111 + 1 // 4",
                              "-7 // 2",
                              "-7 % 4 + i",
                              "-----------------i % 94",
                              "i - -------------------------------j",
                              "(0 - 9223372036854775807 - 1) // 3",
                              "-9223372036854775808 % 94"}) {
    const auto map = parse_index_map("lambda i, j: (" + std::string(results) + ",)");
    ASSERT_TRUE(map.ok()) << support::render(map.diagnostics());
    const auto again = parse_index_map(map->text());
    ASSERT_TRUE(again.ok()) << results << " is printed as " << map->text() << "\n"
                            << support::render(again.diagnostics());
    EXPECT_EQ(again->text(), map->text()) << results;
  }
}

TEST(index_map, computes_as_python_does) {
  for (const auto& [results, values] : std::vector<std::pair<std::string, std::vector<int64_t>>>{
           {"i // 4, j, i % 4", {4, 5, 3}},
           {"-i // 4, -i % 4", {-5, 1}},
           {"-7 // 2, -7 % 4, - 7", {-4, 1, -7}},
           {"i - j - 1, i - (j - 1), 2 * (i + j) % 5", {13, 15, 3}},
           {"11 * 111 * 1111111111111, -9223372036854775808", {1356666666666531, INT64_MIN}},
       }) {
    const IndexMap map = parse_index_map("lambda i, j: (" + results + ",)").value_or_throw();
    std::vector<int64_t> found;
    for (const Expr& e : map({int64(19), int64(5)})) found.push_back(as_int(arith::Analyzer().simplify(e)).value());
    EXPECT_EQ(found, values) << results;
  }
}

TEST(index_map, says_what_it_cannot_read) {
  for (const auto& [results, said] : std::vector<std::pair<std::string, std::string>>{
           {"9223372036854775808", "'9223372036854775808' is not a number of 64 bits"},
           {"-9223372036854775809", "'-9223372036854775809' is not a number of 64 bits"},
           {"i * 4x", "'4x' is neither a variable nor a number"},
           {"i * k", "'k' is neither a variable nor a number"},
           {"i // 0", "a divisor is not a positive number"},
           {"i % -2", "a divisor is not a positive number"},
           {"i // j", "a divisor is not a positive number"},
           {"i +", "expected an operand"},
           {"i -", "expected an operand"},
           {"(i", "expected ')'"},
           {std::string(40, '-') + "i", "signs are nested too deep"},
           {std::string(40, '(') + "i", "parentheses are nested too deep"},
       })
    EXPECT_NE(printed(results).find(said), std::string::npos) << printed(results);
}

}  // namespace
}  // namespace lathe::schedule
