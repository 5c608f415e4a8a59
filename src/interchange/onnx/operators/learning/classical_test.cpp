// Classical models: values worked out by hand, and what is refused.
#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

ModelBuilder of_domain(const std::string& type, const std::vector<Dim>& dims, const std::vector<Attribute>& attributes,
                       int dtype = Type::FLOAT) {
  ModelBuilder m(22);
  m.input("x", dims, dtype).node(type, {"x"}, {"y"}, attributes).output("y");
  m.proto.mutable_graph()->mutable_node(0)->set_domain("ai.onnx.ml");
  auto* opset = m.proto.add_opset_import();
  opset->set_domain("ai.onnx.ml");
  opset->set_version(4);
  return m;
}

const std::vector<float> no_number{std::numeric_limits<float>::quiet_NaN()};

TEST(LabelEncoder, finds_the_last_of_equal_keys_and_NaN) {
  const float nan = no_number[0];
  const auto y = of_domain("LabelEncoder", {5},
                           {{"keys_floats", std::vector<float>{1, nan, 2, 1}},
                            {"values_int64s", std::vector<int64_t>{10, 20, 30, 40}},
                            {"default_int64", 7}})
                     .run({floats({5}, {2, 1, nan, 3, -1})});
  expect_longs(y[0], {5}, {30, 40, 20, 7, 7});
}

TEST(LabelEncoder, of_tables_that_do_not_fit_is_refused) {
  const auto refused = [](const std::vector<Attribute>& attributes) {
    return of_domain("LabelEncoder", {2}, attributes).refusal();
  };
  const std::vector<float> one{1}, two{1, 2};
  EXPECT_NE(refused({{"keys_floats", one}, {"values_floats", two}}).find("1 keys do not go with 2"), std::string::npos);
  EXPECT_NE(refused({{"keys_floats", one}}).find("given 0 times"), std::string::npos);
  EXPECT_NE(refused({{"keys_int64s", std::vector<int64_t>{1}}, {"values_floats", one}}).find("not found among"),
            std::string::npos);
  EXPECT_NE(refused({{"keys_strings", std::vector<std::string>{"a"}}, {"values_floats", one}}).find("not found among"),
            std::string::npos);
}

TEST(Scaler, takes_one_number_or_one_for_each_feature) {
  const TensorData x = floats({2, 2}, {1, 2, 3, 4});
  const std::vector<Attribute> each{{"offset", std::vector<float>{1, 2}}, {"scale", std::vector<float>{2, 3}}};
  expect_floats(of_domain("Scaler", {2, 2}, each).run({x})[0], {2, 2}, {0, 0, 4, 6});
  const std::vector<Attribute> all{{"scale", std::vector<float>{0.5f}}};
  expect_floats(of_domain("Scaler", {2, 2}, all).run({x})[0], {2, 2}, {0.5f, 1, 1.5f, 2});
  const std::vector<Attribute> three{{"scale", std::vector<float>{1, 2, 3}}};
  EXPECT_NE(of_domain("Scaler", {2, 2}, three).refusal().find("must be 3"), std::string::npos);
}

TEST(Imputer, replaces_a_number_or_NaN) {
  const float nan = no_number[0];
  const std::vector<Attribute> missing{{"imputed_value_floats", std::vector<float>{8, 9}},
                                       {"replaced_value_float", nan}};
  expect_floats(of_domain("Imputer", {2, 2}, missing).run({floats({2, 2}, {1, nan, nan, 2})})[0], {2, 2}, {1, 9, 8, 2});
  const std::vector<Attribute> zeros{{"imputed_value_int64s", std::vector<int64_t>{5}}, {"replaced_value_int64", -1}};
  expect_longs(of_domain("Imputer", {3}, zeros, Type::INT64).run({longs({3}, {0, -1, 2})})[0], {3}, {0, 5, 2});
  EXPECT_NE(of_domain("Imputer", {3}, {}).refusal().find("is missing"), std::string::npos);
}

TEST(Normalizer, divides_each_row) {
  const TensorData x = floats({2, 2}, {3, -4, 0, 0});
  const auto by = [&](const char* norm) { return of_domain("Normalizer", {2, 2}, {{"norm", norm}}).run({x})[0]; };
  expect_close(by("MAX"), floats({2, 2}, {0.75f, -1, 0, 0}));
  expect_close(by("L1"), floats({2, 2}, {3 / 7.0f, -4 / 7.0f, 0, 0}));
  expect_close(by("L2"), floats({2, 2}, {0.6f, -0.8f, 0, 0}));
  EXPECT_NE(of_domain("Normalizer", {1, 2, 2}, {}).refusal().find("1 or 2 dimensions"), std::string::npos);
}

using Longs = std::vector<int64_t>;

// Unigrams 2, 3, then bigrams (5, 6), (6, 5), (2, 2).
ModelBuilder grams(const std::vector<Dim>& dims, const char* mode, int least, int skips,
                   std::vector<Attribute> attributes = {}) {
  if (attributes.empty()) attributes.push_back({"ngram_indexes", Longs{0, 3, 1, 2, 4}});
  attributes.insert(attributes.end(), {{"mode", mode},
                                       {"min_gram_length", least},
                                       {"max_gram_length", 2},
                                       {"max_skip_count", skips},
                                       {"ngram_counts", Longs{0, 2}},
                                       {"pool_int64s", Longs{2, 3, 5, 6, 6, 5, 2, 2}}});
  ModelBuilder m(9);
  m.input("x", dims, Type::INT64).node("TfIdfVectorizer", {"x"}, {"y"}, attributes).output("y");
  return m;
}

TEST(TfIdfVectorizer, counts_grams_and_skips) {
  const TensorData x = longs({6}, {5, 6, 5, 2, 2, 2});
  expect_floats(grams({"n"}, "TF", 1, 0).run({x})[0], {5}, {3, 1, 1, 0, 2});
  expect_floats(grams({6}, "TF", 2, 0).run({x})[0], {5}, {0, 1, 1, 0, 2});
  expect_floats(grams({6}, "TF", 2, 1).run({x})[0], {5}, {0, 1, 1, 0, 3});
  expect_floats(grams({6}, "TF", 1, 5).run({x})[0], {5}, {3, 1, 1, 0, 3});
  expect_floats(grams({"b", "n"}, "TF", 1, 0).run({longs({2, 2}, {2, 2, 6, 5})})[0], {2, 5},
                {2, 0, 0, 0, 1, 0, 0, 1, 0, 0});
  expect_floats(grams({"n"}, "TF", 1, 0).run({longs({0}, {})})[0], {5}, {0, 0, 0, 0, 0});
}

TEST(TfIdfVectorizer, weighs_columns_which_grams_may_share) {
  const TensorData x = longs({4}, {5, 6, 5, 3});
  const std::vector<Attribute> shared{{"ngram_indexes", Longs{0, 0, 1, 1, 1}},
                                      {"weights", std::vector<float>{0.5f, 2}}};
  expect_floats(grams({4}, "TF", 1, 0, shared).run({x})[0], {2}, {1, 2});
  expect_floats(grams({4}, "IDF", 1, 0, shared).run({x})[0], {2}, {0.5f, 2});
  expect_floats(grams({4}, "TFIDF", 1, 0, shared).run({x})[0], {2}, {0.5f, 4});
}

TEST(TfIdfVectorizer, refuses_what_does_not_fit) {
  EXPECT_NE(grams({4}, "TF", 3, 0).refusal().find("n-grams of 3 to 2 elements"), std::string::npos);
  EXPECT_NE(grams({4}, "TF", 1, 0, {{"ngram_indexes", Longs{0, 1, 2}}}).refusal().find("no column for the n-gram 3"),
            std::string::npos);
  EXPECT_NE(grams({1, 2, 4}, "TF", 1, 0).refusal().find("1 or 2 dimensions"), std::string::npos);
  ModelBuilder texts(9);
  texts.input("x", {4}, Type::INT64)
      .node("TfIdfVectorizer", {"x"}, {"y"},
            {{"pool_strings", std::vector<std::string>{"a"}}, {"mode", "TF"}, {"max_skip_count", 0}});
  EXPECT_NE(texts.output("y").refusal().find("the n-grams are strings, but the input holds"), std::string::npos);
}

}  // namespace
}  // namespace lathe::onnx
