// Operators on encoded images: how they are imported. What they compute is tests/operators/images.py's.
#include "interchange/onnx/model_fixture.h"
#include "relax/infer.h"

namespace lathe::onnx {
namespace images_test {

using namespace testing;  // NOLINT

ModelBuilder decoder(const std::vector<Dim>& dims, const std::vector<Attribute>& attributes = {},
                     int element = Type::UINT8) {
  ModelBuilder m(20);
  m.input("x", dims, element).node("ImageDecoder", {"x"}, {"y"}, attributes).output("y");
  return m;
}

std::string type_of_image(const ModelBuilder& model) {
  const ir::IRModule module = model.import().value_or_throw();
  const auto* body = module.find_as<relax::FunctionNode>("main")->body.as<relax::SeqExpr>();
  return relax::text_of(*relax::as_tensor(body->body));
}

TEST(images, their_sizes_are_the_runs) {
  EXPECT_EQ(type_of_image(decoder({"n"})), "uint8[image_0, image_1, 3]");
  EXPECT_EQ(type_of_image(decoder({7}, {{"pixel_format", "BGR"}})), "uint8[image_0, image_1, 3]");
  EXPECT_EQ(type_of_image(decoder({"n"}, {{"pixel_format", "Grayscale"}})), "uint8[image_0, image_1, 1]");
}

TEST(images, what_does_not_fit_is_refused) {
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(decoder({"n"}, {{"pixel_format", "CMYK"}}).refusal(), "not one of"));
  EXPECT_TRUE(has(decoder({"n", 3}).refusal(), "the input has 2 dimensions"));
  EXPECT_TRUE(has(decoder({"n"}, {}, Type::INT8).refusal(), "is int8, but uint8 fits"));
}

}  // namespace images_test
}  // namespace lathe::onnx
