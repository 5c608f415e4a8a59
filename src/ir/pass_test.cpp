#include "ir/pass.h"

#include <gtest/gtest.h>

#include "ir/build.h"

namespace lathe::ir {
namespace {

using support::Result;

struct FunctionOfNothing : FunctionNode {
  static constexpr std::string_view kind_name = "FunctionOfNothing";
  static constexpr auto fields() { return std::tuple{field("attrs", &FunctionOfNothing::attrs)}; }
};

// Passes that note their names in the module.
class Passes : public testing::Test {
 protected:
  std::string log;
  PassContext context;

  PassRow row(const std::string& name, std::vector<std::string> after = {}, bool changes = true) {
    return {name,
            [this, name, changes](IRModule module, const PassContext&) -> Result<IRModule> {
              log += name + " ";
              if (changes) module.attrs.set(name, true);
              return module;
            },
            std::move(after)};
  }
};

TEST_F(Passes, run_in_order) {
  const auto result = run_passes({}, {row("a"), row("b", {"a"}), row("c", {"a", "absent"})}, context);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(log, "a b c ");
  EXPECT_TRUE(result->attrs.contains("b"));
}

TEST_F(Passes, in_the_wrong_order_are_an_internal_error) {
  EXPECT_THROW((void)run_passes({}, {row("a", {"b"}), row("b")}, context), support::InternalError);
  EXPECT_EQ(log, "");
}

TEST_F(Passes, are_switched_off_by_name) {
  context.disabled = {"b"};
  ASSERT_TRUE(run_passes({}, {row("a"), row("b"), row("c")}, context).ok());
  EXPECT_EQ(log, "a c ");
}

TEST_F(Passes, stop_after_the_named_row) {
  context.stop_after = "b";
  ASSERT_TRUE(run_passes({}, {row("a"), row("b"), row("c")}, context).ok());
  EXPECT_EQ(log, "a b ");
}

TEST_F(Passes, stop_after_a_row_that_is_switched_off) {
  context.stop_after = "b";
  context.disabled = {"b"};
  ASSERT_TRUE(run_passes({}, {row("a"), row("b"), row("c")}, context).ok());
  EXPECT_EQ(log, "a ");
}

TEST_F(Passes, are_timed_and_shown_when_they_change_something) {
  std::string timed, changed;
  context.on_time = [&](const std::string& name, std::chrono::nanoseconds time) {
    EXPECT_GE(time.count(), 0);
    timed += name;
  };
  context.on_change = [&](int number, const std::string& name, const IRModule& module) {
    changed += std::to_string(number) + name;
    EXPECT_TRUE(module.attrs.contains(name));
  };
  ASSERT_TRUE(run_passes({}, {row("a"), row("b", {}, false), row("c")}, context).ok());
  EXPECT_EQ(timed, "abc");
  EXPECT_EQ(changed, "1a3c");
}

TEST_F(Passes, that_clean_up_are_skipped_where_there_is_nothing_behind) {
  PassRow cleans = row("c");
  cleans.behind = {"a", "b"};
  PassRow again = row("d");
  again.behind = {"c"};
  for (const auto& [a, b, disabled, ran] : std::vector<std::tuple<bool, bool, std::string, std::string>>{
           {false, false, "", "a b "},
           {true, false, "", "a b c d "},
           {false, true, "", "a b c d "},
           {false, false, "a", "b c d "},  // whether it would have changed something, nobody knows
       }) {
    log.clear();
    context.disabled = {disabled};
    ASSERT_TRUE(run_passes({}, {row("a", {}, a), row("b", {}, b), cleans, again}, context).ok());
    EXPECT_EQ(log, ran);
  }
}

TEST_F(Passes, that_change_a_function_are_seen) {
  IRModule module;
  module.set("main", make<FunctionOfNothing>());
  PassRow replaces = row("a", {}, false);
  replaces.run = [](IRModule given, const PassContext&) -> Result<IRModule> {
    given.set("main", make<FunctionOfNothing>());
    return given;
  };
  PassRow cleans = row("c");
  cleans.behind = {"a"};
  ASSERT_TRUE(run_passes(module, {replaces, cleans}, context).ok());
  EXPECT_EQ(log, "c ");
}

TEST_F(Passes, are_followed_by_the_verifier) {
  context.verify = true;
  std::string verified;
  const auto verifier = [&](const IRModule& module, const RowsRun& rows) -> support::Diagnostics {
    verified += std::to_string(rows.size()) + " ";
    if (!module.attrs.contains("bad")) return {};
    return {support::Diagnostic{.code = {"ir-broken"}, .message = "the module is broken"}};
  };
  ASSERT_TRUE(run_passes({}, {row("a"), row("b")}, context, verifier).ok());
  EXPECT_NE(verified.find("0 1 2 "), std::string::npos) << verified;
  try {
    (void)run_passes({}, {row("a"), row("bad"), row("c")}, context, verifier);
    FAIL() << "a broken module went through";
  } catch (const support::InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("bad"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("the module is broken"), std::string::npos);
  }
}

TEST_F(Passes, verify_what_they_are_given) {
  context.verify = true;
  const auto verifier = [](const IRModule& module, const RowsRun&) -> support::Diagnostics {
    if (!module.attrs.contains("bad")) return {};
    return {support::Diagnostic{.code = {"ir-broken"}, .message = "the module is broken"}};
  };
  IRModule broken;
  broken.attrs.set("bad", true);
  EXPECT_THROW((void)run_passes(broken, {row("a")}, context, verifier), support::InternalError);
  EXPECT_EQ(log, "") << "nothing runs on a module that is broken before";
}

TEST_F(Passes, stop_when_the_user_does) {
  int asked = 0;
  context.cancelled = [&] { return ++asked > 1; };
  const auto result = run_passes({}, {row("a"), row("b")}, context);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics()[0].code, support::Code{"ir-cancelled"});
  EXPECT_EQ(log, "a ");
}

TEST_F(Passes, hand_on_a_failure) {
  PassRow failing{"f",
                  [](IRModule, const PassContext&) -> Result<IRModule> {
                    return support::Diagnostic{.code = {"ir-refused"}, .message = "refused"};
                  },
                  {}};
  const auto result = run_passes({}, {row("a"), failing, row("c")}, context);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics()[0].message, "refused");
  EXPECT_EQ(log, "a ");
}

}  // namespace
}  // namespace lathe::ir
