#include "runtime/core/strings/string_pool.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/core/program_fixture.h"

namespace lathe::runtime::testing {
namespace {

std::string text_of(const StringPool& pool, int64_t number) {
  uint64_t bytes = 0;
  const char* text = pool.text(number, &bytes);
  return text == nullptr ? "<none>" : std::string(text, bytes);
}
int64_t number_of(StringPool& pool, const std::string& text) { return pool.number_of(text.data(), text.size()); }

TEST(string_pool, equal_strings_have_equal_numbers) {
  StringPool pool;
  std::vector<std::string> texts{"", "a", std::string("a\0b", 3), std::string("a\0c", 3), "ü"};
  // Long ones lie alone, short ones together.
  for (int i = 0; i < 5000; ++i) texts.push_back(std::to_string(i) + std::string(i % 97 == 0 ? 9000u : i % 7u, 'x'));
  std::vector<int64_t> numbers;
  for (const std::string& text : texts) numbers.push_back(number_of(pool, text));
  EXPECT_EQ(numbers[0], 0);
  EXPECT_EQ(std::set<int64_t>(numbers.begin(), numbers.end()).size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ(number_of(pool, texts[i]), numbers[i]);
    ASSERT_EQ(text_of(pool, numbers[i]), texts[i]);
  }
  EXPECT_EQ(text_of(pool, static_cast<int64_t>(texts.size())), "<none>");
  EXPECT_EQ(text_of(pool, -1), "<none>");
  pool.clear();
  EXPECT_EQ(text_of(pool, 1), "<none>");
  EXPECT_EQ(number_of(pool, "again"), 1);
}

TEST(string_pool, counts_against_the_limit_and_gives_back) {
  Account* account = make_account();
  current_account() = account;
  {
    StringPool pool;
    account->limit = 1 << 20;
    int64_t made = 0;
    while (number_of(pool, std::to_string(made) + std::string(100, 'x')) > 0) ++made;
    EXPECT_EQ(lathe_last_error()->code, LATHE_LIMIT_REACHED);
    EXPECT_GT(made, 4000);
    EXPECT_LT(made, 9000);
    EXPECT_LE(account->bytes.load(), uint64_t{1} << 20);
    EXPECT_EQ(number_of(pool, std::string(1 << 21, 'y')), -1) << "too long for the limit";
    EXPECT_EQ(text_of(pool, made).substr(0, 4), std::to_string(made - 1)) << "what is there stays";
  }
  EXPECT_EQ(account->bytes.load(), 0u);
  current_account() = nullptr;
  release(account);
}

}  // namespace
}  // namespace lathe::runtime::testing
