#include "driver/saved/json.h"

#include <gtest/gtest.h>

#include "driver/codes.h"
#include "driver/saved/node_kinds.h"
#include "ir/structural.h"
#include "relax/strings.h"

namespace lathe::driver::saved {
namespace {

using ir::Value;

// A kind that no program has.
struct StrangeNode : ir::Node {
  static constexpr std::string_view family = "strange";
  using family_type = StrangeNode;
  static constexpr std::string_view kind_name = "Strange";
  static constexpr auto fields() { return std::tuple<>{}; }
};

std::string_view code_of(const auto& result) { return result.ok() ? "" : result.diagnostics().at(0).code.name; }

TEST(save_json, names_each_kind_by_its_own_name) {
  for (const ir::NodeClass* kind : node_kinds()) EXPECT_EQ(find_saved_kind(saved_kind(*kind)), kind);
  EXPECT_EQ(find_saved_kind("strange.Strange"), nullptr);
}

TEST(save_json, refuses_what_is_no_part_of_programs) {
  EXPECT_EQ(code_of(save_json(ir::make<StrangeNode>())), codes::json_holds.name);
  EXPECT_EQ(code_of(save_json(Value("\xff"))), codes::json_holds.name);
  EXPECT_EQ(code_of(save_json(Value::Map{{"\xff", 1}})), codes::json_holds.name);
  Value deep;
  for (int i = 0; i < 300; ++i) deep = Value::List{deep};
  EXPECT_EQ(code_of(save_json(deep)), codes::json_holds.name);
}

TEST(save_json, keeps_strings_that_are_bytes) {
  const ir::NodeRef strings = relax::strings({"a", "", std::string("\xff\0\xc3", 3)}, {3});
  const auto text = save_json(strings);
  ASSERT_TRUE(text.ok());
  const auto loaded = load_json(*text);
  ASSERT_TRUE(loaded.ok());
  EXPECT_TRUE(ir::structural_equal(*loaded->get<ir::NodeRef>(), strings));
}

TEST(save_json, keeps_what_is_known_of_graph_expressions) {
  const ir::NodeRef strings = relax::strings({"a", "b"}, {2});
  const auto text = save_json(strings).value_or_throw();
  const Value loaded = load_json(text).value_or_throw();
  const auto& call = static_cast<const relax::ExprNode&>(**loaded.get<ir::NodeRef>());
  EXPECT_TRUE(ir::structural_equal(call.struct_info, static_cast<const relax::ExprNode&>(*strings).struct_info));
}

TEST(load_json, says_what_is_wrong_in_utf8) {
  // The attribute is quoted with the bytes that it has.
  const auto result = load_json(
      R"({"format": "lathe", "version": 1, "root": null, "nodes": [["attributes.StringsAttributes",
          {"texts": [], "shape": {"bytes": "/w=="}}]]})");
  EXPECT_EQ(code_of(result), codes::json.name);
  EXPECT_NE(result.diagnostics()[0].message.find("'?'"), std::string::npos) << result.diagnostics()[0].message;
}

TEST(load_json, tells_a_newer_format) {
  EXPECT_EQ(code_of(load_json(R"({"format": "lathe", "version": 2})")), codes::json_version.name);
}

}  // namespace
}  // namespace lathe::driver::saved
