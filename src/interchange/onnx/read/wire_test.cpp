#include "interchange/onnx/read/wire.h"

#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

std::string varint(uint64_t value) {
  std::string out;
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7f) | 0x80);
    value >>= 7;
  }
  return out + static_cast<char>(value);
}
std::string field(uint64_t number, const std::string& payload) {
  return varint(number << 3 | 2) + varint(payload.size()) + payload;
}

std::string refused(const std::string& file, const WireLimits& limits = {}) {
  const auto outline = read_outline(file, "m.onnx", limits);
  EXPECT_FALSE(outline.ok());
  return outline.ok() ? "" : testing::text_of(outline.diagnostics());
}

TEST(Wire, payloads_become_places_in_the_file) {
  testing::ModelBuilder model;
  model.input("x", {3}).weight("w", {3}, {1, 2, 3}).node("Add", {"x", "w"}, {"y"}).output("y");
  const std::string file = model.bytes();
  const std::string outline = *read_outline(file, "m.onnx");
  schema::ModelProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(outline));
  PayloadPlace place;
  ASSERT_EQ(parsed.graph().initializer(0).raw_data().size(), sizeof place);
  std::memcpy(&place, parsed.graph().initializer(0).raw_data().data(), sizeof place);
  EXPECT_EQ(place.size, 12u);
  EXPECT_EQ(file.substr(place.offset, place.size), model.proto.graph().initializer(0).raw_data());
  EXPECT_EQ(parsed.graph().node(0).input(1), "w");
  EXPECT_EQ(parsed.opset_import(0).version(), 17);
}

TEST(Wire, a_payload_cannot_say_itself_where_it_lies) {
  testing::ModelBuilder model;
  model.input("x", {4}).weight("w", {4}, {1, 2, 3, 4}).node("Add", {"x", "w"}, {"y"}).output("y");
  const PayloadPlace forged{1u << 30, 16};  // sixteen bytes, as a place has
  model.proto.mutable_graph()->mutable_initializer(0)->set_raw_data(
      std::string(reinterpret_cast<const char*>(&forged), sizeof forged));
  const auto module = model.import();
  ASSERT_TRUE(module.ok());
}

TEST(Wire, what_is_not_compiled_is_left_out) {
  testing::ModelBuilder model;
  model.input("x", {3}).node("Relu", {"x"}, {"y"}).output("y");
  model.proto.set_doc_string(std::string(1000, 'd'));
  model.proto.mutable_graph()->set_doc_string(std::string(1000, 'd'));
  model.proto.mutable_graph()->mutable_node(0)->set_doc_string(std::string(1000, 'd'));
  model.proto.add_training_info()->mutable_initialization()->set_name(std::string(1000, 't'));
  model.proto.mutable_graph()->add_value_info()->set_name(std::string(1000, 'v'));
  EXPECT_LT(read_outline(model.bytes(), "m.onnx")->size(), 200u);
}

TEST(Wire, damage_is_told_with_its_place) {
  EXPECT_NE(refused("").find("onnx-damaged: m.onnx: the file is empty"), std::string::npos);
  EXPECT_NE(refused("this is not a model").find("onnx-damaged"), std::string::npos);
  EXPECT_NE(refused(std::string(100, '\0')).find("field number 0"), std::string::npos);
  EXPECT_NE(refused(std::string(100, '\xff')).find("more than 64 bits"), std::string::npos);
  EXPECT_NE(refused(varint(7 << 3 | 2) + varint(uint64_t{1} << 62) + "abc").find("3 are left"), std::string::npos);
  EXPECT_NE(refused(varint(7 << 3 | 2) + "\xff").find("cut off"), std::string::npos);
  EXPECT_NE(refused(varint(1 << 3 | 1) + "abc").find("cut off"), std::string::npos);
  EXPECT_NE(refused(varint(99 << 3 | 3)).find("kind that ONNX does not use"), std::string::npos);
}

TEST(Wire, nesting_is_bounded) {
  // Built from inside out: graph in attribute in node in graph, and types of types.
  std::string graphs;
  for (int i = 0; i < 60; ++i) graphs = field(1, field(5, field(6, graphs)));
  EXPECT_NE(refused(field(7, graphs)).find("onnx-too-deep"), std::string::npos);
  std::string types;
  for (int i = 0; i < 60; ++i) types = field(4, field(1, types));
  EXPECT_NE(refused(field(7, field(12, field(2, types)))).find("onnx-too-deep"), std::string::npos);
  std::string shallow;
  for (int i = 0; i < 20; ++i) shallow = field(1, field(5, field(6, shallow)));
  EXPECT_TRUE(read_outline(field(7, shallow), "m.onnx").ok());
}

TEST(Wire, counts_and_sizes_are_bounded) {
  std::string nodes;
  for (int i = 0; i < 1000; ++i) nodes += field(1, "");
  const std::string file = field(7, nodes);
  EXPECT_NE(refused(file, {.messages = 500}).find("onnx-too-large"), std::string::npos);
  EXPECT_NE(refused(file, {.fields = 500}).find("onnx-too-large"), std::string::npos);
  EXPECT_NE(refused(file, {.outline = 500}).find("onnx-too-large"), std::string::npos);
  EXPECT_TRUE(read_outline(file, "m.onnx").ok());
}

}  // namespace
}  // namespace lathe::onnx
