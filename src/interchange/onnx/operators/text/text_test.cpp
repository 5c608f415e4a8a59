// Operators on strings: how they are imported. What they compute is tests/python/test_strings.py's.
#include "interchange/onnx/model_fixture.h"
#include "relax/infer.h"
#include "relax/strings.h"

namespace lathe::onnx {
namespace text_test {

using namespace testing;  // NOLINT

ModelBuilder of(const std::string& type, const std::vector<std::string>& inputs, const std::vector<Dim>& dims,
                const std::vector<Attribute>& attributes = {}, int element = Type::STRING) {
  ModelBuilder m(20);
  for (const char* name : {"x", "z"}) m.input(name, dims, element);
  m.node(type, inputs, {"y"}, attributes).output("y");
  return m;
}

std::string type_of_result(const ModelBuilder& model) {
  const ir::IRModule module = model.import().value_or_throw();
  const auto* body = module.find_as<relax::FunctionNode>("main")->body.as<relax::SeqExpr>();
  return relax::text_of(*relax::as_tensor(body->body));
}

TEST(strings, results_have_the_types_of_their_operators) {
  EXPECT_EQ(type_of_result(of("Identity", {"x"}, {2, "n"})), "string[2, n]");
  EXPECT_EQ(type_of_result(of("StringConcat", {"x", "z"}, {2, "n"})), "string[2, n]");
  EXPECT_EQ(type_of_result(of("StringSplit", {"x"}, {2, "n"})), "string[2, n, parts_2]");
  EXPECT_EQ(type_of_result(of("StringNormalizer", {"x"}, {1, "n"})), "string[1, kept_1]");
  EXPECT_EQ(type_of_result(of("RegexFullMatch", {"x"}, {2, "n"}, {{"pattern", "a|b"}})), "bool[2, n]");
  EXPECT_EQ(type_of_result(of("Equal", {"x", "z"}, {2, "n"})), "bool[2, n]");
  EXPECT_EQ(type_of_result(of("Cast", {"x"}, {2}, {{"to", Type::INT16}})), "int16[2]");
  EXPECT_EQ(type_of_result(of("Cast", {"x"}, {2}, {{"to", Type::STRING}}, Type::UINT8)), "string[2]");
  // A tensor program that makes numbers of its own: the strings they are of.
  EXPECT_EQ(type_of_result(of("ReverseSequence", {"x", "lengths"}, {2, 3}).integers("lengths", {3}, {1, 2, 0})),
            "string[2, 3]");
}

TEST(strings, what_does_not_fit_is_refused) {
  const auto refused = [](const ModelBuilder& m) { return m.refusal(); };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(refused(of("Add", {"x", "z"}, {2})), "('A') is string, but"));
  EXPECT_TRUE(has(refused(of("StringConcat", {"x", "z"}, {2}, {}, Type::FLOAT)), "is float32, but string fits"));
  EXPECT_TRUE(has(refused(of("StringNormalizer", {"x"}, {2, 2})), "the input has 2"));
  EXPECT_TRUE(has(refused(of("StringNormalizer", {"x"}, {2, 2, 2})), "3 dimensions"));
  EXPECT_TRUE(has(refused(of("StringNormalizer", {"x"}, {2}, {{"case_change_action", "Title"}})), "not one of"));
  EXPECT_TRUE(has(refused(of("RegexFullMatch", {"x"}, {2})), "'pattern' is missing"));
  EXPECT_TRUE(
      has(refused(of("RegexFullMatch", {"x"}, {2}, {{"pattern", "a(b"}})), "wrong at byte 3: a ')' is missing"));
  EXPECT_TRUE(has(refused(of("Cast", {"x"}, {2}, {{"to", Type::BOOL}})), "strings as bool"));
  EXPECT_TRUE(has(refused(of("Cast", {"x"}, {2}, {{"to", Type::STRING}}, Type::FLOAT16)), "numbers of float16"));
}

}  // namespace text_test
}  // namespace lathe::onnx
