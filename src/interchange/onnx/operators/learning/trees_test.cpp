// Trees: values worked out by hand, and what is refused.
#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

using Longs = std::vector<int64_t>;

schema::TensorProto bytes_of(const std::vector<uint8_t>& values) {
  schema::TensorProto proto;
  proto.set_data_type(Type::UINT8);
  proto.add_dims(static_cast<int64_t>(values.size()));
  proto.set_raw_data(std::string(values.begin(), values.end()));
  return proto;
}

// Trees over two features. Node 0: x0 <= 1 ? leaf 0 : node 1; node 1: x1 > 5 ? leaf 1 : leaf 2. Node 2: x1 != 0 ? leaf
// 2 : leaf 0. Leaves give 1, 10, 100 to the targets 0, 1, 1.
struct Ensemble {
  std::vector<float> splits{1, 5, 0}, members{};
  std::vector<uint8_t> modes{0, 3, 5};
  Longs roots{0, 2}, if_false{1, 2, 0}, false_leafs{0, 1, 1}, missing{};
  int aggregate = 1, post = 0;

  ModelBuilder model(const std::vector<Dim>& dims = {"n", 2}) const {
    ModelBuilder m(22);
    const auto vector = [](const std::vector<float>& values) {
      return tensor_proto(floats({static_cast<int64_t>(values.size())}, values));
    };
    std::vector<Attribute> attributes{{"n_targets", 2},
                                      {"nodes_featureids", Longs{0, 1, 1}},
                                      {"nodes_modes", bytes_of(modes)},
                                      {"nodes_splits", vector(splits)},
                                      {"nodes_truenodeids", Longs{0, 1, 2}},
                                      {"nodes_trueleafs", Longs{1, 1, 1}},
                                      {"nodes_falsenodeids", if_false},
                                      {"nodes_falseleafs", false_leafs},
                                      {"leaf_targetids", Longs{0, 1, 1}},
                                      {"leaf_weights", vector({1, 10, 100})},
                                      {"tree_roots", roots},
                                      {"aggregate_function", aggregate},
                                      {"post_transform", post}};
    if (!members.empty()) attributes.push_back({"membership_values", vector(members)});
    if (!missing.empty()) attributes.push_back({"nodes_missing_value_tracks_true", missing});
    m.input("x", dims).node("TreeEnsemble", {"x"}, {"y"}, attributes).output("y");
    m.proto.mutable_graph()->mutable_node(0)->set_domain("ai.onnx.ml");
    auto* opset = m.proto.add_opset_import();
    opset->set_domain("ai.onnx.ml");
    opset->set_version(5);
    return m;
  }
};

const TensorData rows = floats({4, 2}, {1, 0, 2, 6, 2, 5, 0, 7});

TEST(TreeEnsemble, adds_up_what_each_tree_gives) {
  Ensemble e;
  expect_floats(e.model().run({rows}).at(0), {4, 2}, {2, 0, 0, 110, 0, 200, 1, 100});
  e.aggregate = 0;
  expect_floats(e.model().run({rows}).at(0), {4, 2}, {1, 0, 0, 55, 0, 100, 0.5f, 50});
  const float most = std::numeric_limits<float>::max();
  e.aggregate = 2;
  expect_floats(e.model().run({rows}).at(0), {4, 2}, {1, most, most, 10, most, 100, 1, 100});
  e.aggregate = 3;
  expect_floats(e.model().run({rows}).at(0), {4, 2}, {1, -most, -most, 100, -most, 100, 1, 100});
  e.aggregate = 1;
  e.post = 2;
  expect_close(e.model().run({floats({1, 2}, {1, 0})}).at(0), floats({1, 2}, {1 / (1 + std::exp(-2.0f)), 0.5f}));
  expect_floats(e.model().run({floats({0, 2}, {})}).at(0), {0, 2}, {});
}

TEST(TreeEnsemble, every_comparison_and_missing_values) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // The first tree goes to leaf 0 (1 for target 0) where x0 compares so with 1, of 0, 1, 2 and NaN.
  const std::vector<std::vector<float>> expected{{1, 1, 0, 0}, {1, 0, 0, 0}, {0, 1, 1, 0},
                                                 {0, 0, 1, 0}, {0, 1, 0, 0}, {1, 0, 1, 1}};
  for (uint8_t mode = 0; mode < 6; ++mode) {
    Ensemble e;
    e.modes[0] = mode;
    e.roots = {0};
    const TensorData y = e.model().run({floats({4, 2}, {0, 0, 1, 0, 2, 0, nan, 0})}).at(0);
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(ir::float_at(*y, 2 * i), expected[mode][static_cast<size_t>(i)]);
    e.missing = {1, 0, 0};
    EXPECT_EQ(ir::float_at(*e.model().run({floats({1, 2}, {nan, 0})}).at(0), 0), 1);
  }
}

TEST(TreeEnsemble, nodes_ask_for_members_of_sets) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Ensemble e;
  e.modes = {6, 3, 6};
  e.members = {1, 2, 0, nan, nan};
  expect_floats(e.model().run({floats({3, 2}, {0, 0, 3, 9, 2, 1})}).at(0), {3, 2}, {2, 0, 1, 10, 2, 0});
  e.members = {1, 2};
  EXPECT_NE(e.model().refusal().find("ends before the set of the node 0"), std::string::npos);
  e.members = {1, nan, 2, nan, 3, nan};
  EXPECT_NE(e.model().refusal().find("more sets than nodes"), std::string::npos);
}

TEST(TreeEnsemble, refuses_trees_that_are_none) {
  const auto refused = [](const std::function<void(Ensemble&)>& change, const std::vector<Dim>& dims = {"n", 2}) {
    Ensemble e;
    change(e);
    return e.model(dims).refusal();
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(refused([](Ensemble& e) { e.false_leafs[1] = 0, e.if_false[1] = 0; }),
         "the node 0 of the trees is below itself");
  expect(refused([](Ensemble& e) { e.if_false[0] = 3; }), "names the node 3 of 3");
  expect(refused([](Ensemble& e) { e.if_false[1] = -1; }), "names the leaf -1 of 3");
  expect(refused([](Ensemble& e) { e.roots = {3}; }), "a tree's root is the node 3 of 3");
  expect(refused([](Ensemble& e) { e.roots = {}; }), "names no tree");
  expect(refused([](Ensemble& e) { e.modes[0] = 7; }), "has the mode 7");
  expect(refused([](Ensemble& e) { e.post = 4; }), "the transform 4 of the scores");
  expect(refused([](Ensemble& e) { e.splits.pop_back(); }), "'nodes_splits' has 2 values, not 3");
  expect(refused([](Ensemble&) {}, {"n", 1}), "must be");
  expect(refused([](Ensemble&) {}, {2}), "1 dimensions, not 2");
}

}  // namespace
}  // namespace lathe::onnx
