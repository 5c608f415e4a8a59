// Products, windows and normalisation, against plain loops.
#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

double element(const TensorData& x, std::initializer_list<int64_t> index) {
  int64_t at = 0;
  size_t d = 0;
  for (const int64_t i : index) at = at * x->shape[d++] + i;
  return ir::float_at(*x, at);
}

TEST(Gemm, all_its_forms) {
  const int64_t M = 3, N = 4, K = 5;
  for (const bool flip_a : {false, true})
    for (const bool flip_b : {false, true})
      for (const std::vector<int64_t>& c_dims : {std::vector<int64_t>{}, {1}, {4}, {3, 1}, {1, 4}, {3, 4}}) {
        const TensorData a = random_floats(flip_a ? std::vector{K, M} : std::vector{M, K}, 1);
        const TensorData b = random_floats(flip_b ? std::vector{N, K} : std::vector{K, N}, 2);
        const TensorData c = random_floats(c_dims, 3);
        ModelBuilder m(13);
        for (const auto& [name, t] : {std::pair{"a", a}, {"b", b}, {"c", c}})
          m.input(name, std::vector<Dim>(t->shape.begin(), t->shape.end()));
        m.node("Gemm", {"a", "b", "c"}, {"y"},
               {{"alpha", 0.5f}, {"beta", -2.0f}, {"transA", int(flip_a)}, {"transB", int(flip_b)}});
        std::vector<float> expected;
        for (int64_t i = 0; i < M; ++i)
          for (int64_t j = 0; j < N; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < K; ++k)
              sum += (flip_a ? element(a, {k, i}) : element(a, {i, k})) *
                     (flip_b ? element(b, {j, k}) : element(b, {k, j}));
            const int64_t rows = c_dims.size() == 2 ? c_dims[0] : 1, columns = c_dims.empty() ? 1 : c_dims.back();
            expected.push_back(static_cast<float>(
                0.5 * sum - 2 * ir::float_at(*c, (rows == 1 ? 0 : i) * columns + (columns == 1 ? 0 : j))));
          }
        expect_floats(m.output("y").run({a, b, c}).at(0), {M, N}, expected);
      }
  ModelBuilder wrong(13);
  wrong.input("a", {3, 5}).input("b", {5, 4}).input("c", {2, 3, 4}).node("Gemm", {"a", "b", "c"}, {"y"}).output("y");
  EXPECT_NE(wrong.refusal().find("onnx-wrong-shape"), std::string::npos);
  ModelBuilder vector(13);
  vector.input("a", {5}).input("b", {5, 4}).node("Gemm", {"a", "b"}, {"y"}).output("y");
  EXPECT_NE(vector.refusal().find("Gemm takes matrices, but its input 0 has 1"), std::string::npos);
}

TEST(MatMul, batches_broadcast) {
  const TensorData a = random_floats({2, 1, 3, 4}, 1), b = random_floats({5, 4, 2}, 2);
  ModelBuilder m;
  m.input("a", {2, 1, 3, 4}).input("b", {5, 4, 2}).node("MatMul", {"a", "b"}, {"y"}).output("y");
  std::vector<float> expected;
  for (int64_t p = 0; p < 2; ++p)
    for (int64_t q = 0; q < 5; ++q)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 2; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < 4; ++k) sum += element(a, {p, 0, i, k}) * element(b, {q, k, j});
          expected.push_back(static_cast<float>(sum));
        }
  expect_floats(m.run({a, b}).at(0), {2, 5, 3, 2}, expected);
}

struct ConvCase {
  std::vector<Attribute> attributes;
  int64_t groups, stride, dilation, top, left, bottom, right;
};

TEST(Conv, strides_pads_dilations_groups_and_bias) {
  const int64_t H = 7, W = 6, KH = 3, KW = 2;
  const std::vector<ConvCase> cases = {
      {{}, 1, 1, 1, 0, 0, 0, 0},
      {{{"pads", std::vector<int64_t>{1, 0, 2, 1}}, {"strides", std::vector<int64_t>{2, 2}}}, 1, 2, 1, 1, 0, 2, 1},
      {{{"group", 2}, {"dilations", std::vector<int64_t>{2, 2}}}, 2, 1, 2, 0, 0, 0, 0},
      {{{"auto_pad", "SAME_UPPER"}}, 1, 1, 1, 1, 0, 1, 1},
      {{{"auto_pad", "SAME_LOWER"}}, 1, 1, 1, 1, 1, 1, 0},
      {{{"auto_pad", "VALID"}, {"kernel_shape", std::vector<int64_t>{3, 2}}}, 1, 1, 1, 0, 0, 0, 0},
  };
  for (const ConvCase& c : cases) {
    const int64_t in = 4, out = 6, per = in / c.groups;
    const TensorData x = random_floats({2, in, H, W}, 1), w = random_floats({out, per, KH, KW}, 2),
                     b = random_floats({out}, 3);
    ModelBuilder m(11);
    m.input("x", {2, in, H, W}).input("w", {out, per, KH, KW}).input("b", {out});
    m.node("Conv", {"x", "w", "b"}, {"y"}, c.attributes).output("y");
    const int64_t OH = (H + c.top + c.bottom - (KH - 1) * c.dilation - 1) / c.stride + 1;
    const int64_t OW = (W + c.left + c.right - (KW - 1) * c.dilation - 1) / c.stride + 1;
    std::vector<float> expected;
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t i = 0; i < OH; ++i)
          for (int64_t j = 0; j < OW; ++j) {
            double sum = ir::float_at(*b, o);
            for (int64_t k = 0; k < per; ++k)
              for (int64_t p = 0; p < KH; ++p)
                for (int64_t q = 0; q < KW; ++q) {
                  const int64_t row = i * c.stride - c.top + p * c.dilation,
                                column = j * c.stride - c.left + q * c.dilation;
                  if (row < 0 || row >= H || column < 0 || column >= W) continue;
                  sum += element(x, {n, o / (out / c.groups) * per + k, row, column}) * element(w, {o, k, p, q});
                }
            expected.push_back(static_cast<float>(sum));
          }
    expect_floats(m.run({x, w, b}).at(0), {2, out, OH, OW}, expected);
  }
}

TEST(Conv, wrong_forms_are_refused) {
  const auto refused = [](const std::vector<Attribute>& a) {
    ModelBuilder m;
    return m.input("x", {1, 2, 5, 5}).input("w", {3, 2, 3, 3}).node("Conv", {"x", "w"}, {"y"}, a).output("y").refusal();
  };
  using Ints = std::vector<int64_t>;
  EXPECT_NE(refused({{"strides", Ints{0, 0}}}).find("'strides' has the value 0, which is out of range"),
            std::string::npos);
  EXPECT_NE(refused({{"pads", Ints{0, 0}}}).find("'pads' has 2 values, not 4"), std::string::npos);
  EXPECT_NE(refused({{"pads", Ints{int64_t{1} << 40, 0, 0, 0}}}).find("out of range"), std::string::npos);
  EXPECT_NE(refused({{"kernel_shape", Ints{2, 2}}}).find("'kernel_shape' has 2 at 0"), std::string::npos);
  EXPECT_NE(refused({{"auto_pad", "SOMEHOW"}}).find("'auto_pad' is 'SOMEHOW', not one of 'NOTSET'"), std::string::npos);
  EXPECT_NE(refused({{"group", 0}}).find("'group' is 0"), std::string::npos);
  EXPECT_NE(refused({{"group", 3}}).find("relax-shape-mismatch"), std::string::npos);
}

TEST(Pool, windows_over_space) {
  const TensorData x = random_floats({1, 2, 5, 4}, 5);
  const auto pooled = [&](bool largest, bool count_pad) {
    std::vector<float> expected;
    for (int64_t c = 0; c < 2; ++c)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 2; ++j) {
          double best = -1e30, sum = 0;
          int count = 0;
          for (int64_t p = 0; p < 3; ++p)
            for (int64_t q = 0; q < 2; ++q) {
              const int64_t row = i * 2 - 1 + p, column = j * 2 + q;
              if (row < 0 || row >= 5 || column >= 4) continue;
              best = std::max(best, element(x, {0, c, row, column}));
              sum += element(x, {0, c, row, column});
              ++count;
            }
          expected.push_back(static_cast<float>(largest ? best : sum / (count_pad ? 6 : count)));
        }
    return expected;
  };
  const std::vector<Attribute> window = {{"kernel_shape", std::vector<int64_t>{3, 2}},
                                         {"strides", std::vector<int64_t>{2, 2}},
                                         {"pads", std::vector<int64_t>{1, 0, 1, 0}}};
  ModelBuilder largest;
  expect_floats(largest.input("x", {1, 2, 5, 4}).node("MaxPool", {"x"}, {"y"}, window).output("y").run({x}).at(0),
                {1, 2, 3, 2}, pooled(true, false));
  ModelBuilder mean;
  expect_floats(mean.input("x", {1, 2, 5, 4}).node("AveragePool", {"x"}, {"y"}, window).output("y").run({x}).at(0),
                {1, 2, 3, 2}, pooled(false, false));
  auto counted = window;
  counted.push_back({"count_include_pad", 1});
  ModelBuilder all;
  expect_floats(all.input("x", {1, 2, 5, 4}).node("AveragePool", {"x"}, {"y"}, counted).output("y").run({x}).at(0),
                {1, 2, 3, 2}, pooled(false, true));
  ModelBuilder missing;
  missing.input("x", {1, 2, 5, 4}).node("MaxPool", {"x"}, {"y"}).output("y");
  EXPECT_NE(missing.refusal().find("'kernel_shape' is missing"), std::string::npos);
}

TEST(Pool, indices_by_row_and_by_column) {
  ModelBuilder m;
  const std::vector<int64_t> two{2, 2};
  m.input("x", {1, 1, 2, 3});
  m.node("MaxPool", {"x"}, {"y", "i"}, {{"kernel_shape", two}});
  m.node("MaxPool", {"x"}, {"z", "j"}, {{"kernel_shape", two}, {"storage_order", 1}})
      .output("y")
      .output("i")
      .output("j");
  const auto outputs = m.run({floats({1, 1, 2, 3}, {1, 9, 2, 3, 4, 5})});
  expect_floats(outputs.at(0), {1, 1, 1, 2}, {9, 9});
  expect_longs(outputs.at(1), {1, 1, 1, 2}, {1, 1});
  expect_longs(outputs.at(2), {1, 1, 1, 2}, {2, 2});
}

TEST(Pool, over_all_of_space) {
  ModelBuilder m;
  m.input("x", {1, 2, 2, 2})
      .node("GlobalAveragePool", {"x"}, {"a"})
      .node("GlobalMaxPool", {"x"}, {"b"})
      .output("a")
      .output("b");
  const auto outputs = m.run({floats({1, 2, 2, 2}, {1, 2, 3, 4, -1, -2, -3, -6})});
  expect_floats(outputs.at(0), {1, 2, 1, 1}, {2.5, -3});
  expect_floats(outputs.at(1), {1, 2, 1, 1}, {4, -1});
}

TEST(BatchNormalization, by_stored_and_by_batch_statistics) {
  const TensorData x = random_floats({2, 3, 4}, 7), scale = random_floats({3}, 8), bias = random_floats({3}, 9),
                   mean = random_floats({3}, 10), variance = floats({3}, {0.5, 1.5, 2.5});
  const auto model = [](int opset, const std::vector<std::string>& outputs, const std::vector<Attribute>& a) {
    ModelBuilder m(opset);
    m.input("x", {2, 3, 4});
    for (const char* name : {"s", "b", "m", "v"}) m.input(name, {3});
    m.node("BatchNormalization", {"x", "s", "b", "m", "v"}, outputs, a);
    for (const std::string& name : outputs) m.output(name);
    return m;
  };
  const auto normal = [&](const std::vector<double>& m, const std::vector<double>& v, double epsilon) {
    std::vector<float> y;
    for (int64_t i = 0; i < 24; ++i) {
      const auto c = static_cast<size_t>(i / 4 % 3);
      const double s = ir::float_at(*scale, static_cast<int64_t>(c)), b = ir::float_at(*bias, static_cast<int64_t>(c));
      y.push_back(static_cast<float>((ir::float_at(*x, i) - m[c]) / std::sqrt(v[c] + epsilon) * s + b));
    }
    return y;
  };
  std::vector<double> m(3), v(3), batch_mean(3, 0), batch_variance(3, 0);
  for (int64_t c = 0; c < 3; ++c) {
    m[static_cast<size_t>(c)] = ir::float_at(*mean, c);
    v[static_cast<size_t>(c)] = ir::float_at(*variance, c);
  }
  for (int64_t i = 0; i < 24; ++i) batch_mean[static_cast<size_t>(i / 4 % 3)] += ir::float_at(*x, i) / 8;
  for (int64_t i = 0; i < 24; ++i)
    batch_variance[static_cast<size_t>(i / 4 % 3)] +=
        std::pow(ir::float_at(*x, i) - batch_mean[static_cast<size_t>(i / 4 % 3)], 2) / 8;
  const std::vector<TensorData> inputs{x, scale, bias, mean, variance};
  expect_floats(model(9, {"y"}, {{"epsilon", 0.01f}}).run(inputs).at(0), {2, 3, 4}, normal(m, v, 0.01));
  expect_floats(model(15, {"y"}, {}).run(inputs).at(0), {2, 3, 4}, normal(m, v, 1e-5));
  const auto trained = model(15, {"y", "rm", "rv"}, {{"training_mode", 1}, {"momentum", 0.75f}}).run(inputs);
  expect_floats(trained.at(0), {2, 3, 4}, normal(batch_mean, batch_variance, 1e-5));
  for (int64_t c = 0; c < 3; ++c) {
    const auto k = static_cast<size_t>(c);
    EXPECT_NEAR(ir::float_at(*trained.at(1), c), 0.75 * m[k] + 0.25 * batch_mean[k], 1e-5);
    EXPECT_NEAR(ir::float_at(*trained.at(2), c), 0.75 * v[k] + 0.25 * batch_variance[k], 1e-5);
  }
  EXPECT_NE(model(7, {"y"}, {{"spatial", 0}}).refusal().find("onnx-unsupported"), std::string::npos);
  EXPECT_NE(model(9, {"y", "a"}, {}).refusal().find("in training mode only"), std::string::npos);
}

TEST(LayerNormalization, gives_its_statistics) {
  const TensorData x = random_floats({2, 3, 4}, 11), scale = random_floats({3, 4}, 12),
                   bias = random_floats({3, 4}, 13);
  ModelBuilder m(17);
  m.input("x", {2, 3, 4}).input("s", {3, 4}).input("b", {3, 4});
  m.node("LayerNormalization", {"x", "s", "b"}, {"y", "mean", "inv"}, {{"axis", 1}})
      .output("y")
      .output("mean")
      .output("inv");
  const auto outputs = m.run({x, scale, bias});
  std::vector<float> y, means, inverses;
  for (int64_t n = 0; n < 2; ++n) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < 12; ++i) mean += ir::float_at(*x, n * 12 + i) / 12;
    for (int64_t i = 0; i < 12; ++i) variance += std::pow(ir::float_at(*x, n * 12 + i) - mean, 2) / 12;
    means.push_back(static_cast<float>(mean));
    inverses.push_back(static_cast<float>(1 / std::sqrt(variance + 1e-5)));
    for (int64_t i = 0; i < 12; ++i)
      y.push_back(static_cast<float>((ir::float_at(*x, n * 12 + i) - mean) / std::sqrt(variance + 1e-5) *
                                         ir::float_at(*scale, i) +
                                     ir::float_at(*bias, i)));
  }
  expect_floats(outputs.at(0), {2, 3, 4}, y);
  expect_floats(outputs.at(1), {2, 1, 1}, means);
  expect_floats(outputs.at(2), {2, 1, 1}, inverses);
}

// From opset 13 along the axis; before it over everything from the axis on.
TEST(Softmax, means_another_thing_before_opset_13) {
  const TensorData x = random_floats({2, 3, 4}, 14);
  const auto run = [&](int opset, const std::string& type, int axis) {
    ModelBuilder m(opset);
    return m.input("x", {2, 3, 4}).node(type, {"x"}, {"y"}, {{"axis", axis}}).output("y").run({x}).at(0);
  };
  const auto expected = [&](const std::function<bool(int64_t, int64_t)>& together, bool log) {
    std::vector<float> y;
    for (int64_t i = 0; i < 24; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < 24; ++j)
        if (together(i, j)) sum += std::exp(ir::float_at(*x, j));
      const double value = std::exp(ir::float_at(*x, i)) / sum;
      y.push_back(static_cast<float>(log ? std::log(value) : value));
    }
    return floats({2, 3, 4}, y);
  };
  const auto same_axis_1 = [](int64_t i, int64_t j) { return i / 12 == j / 12 && i % 4 == j % 4; };
  const auto from_axis_1 = [](int64_t i, int64_t j) { return i / 12 == j / 12; };
  const auto last = [](int64_t i, int64_t j) { return i / 4 == j / 4; };
  expect_close(run(13, "Softmax", 1), expected(same_axis_1, false));
  expect_close(run(11, "Softmax", 1), expected(from_axis_1, false));
  expect_close(run(11, "Softmax", -1), expected(last, false));
  expect_close(run(13, "LogSoftmax", -1), expected(last, true));
  expect_close(run(9, "LogSoftmax", 1), expected(from_axis_1, true));
}

}  // namespace
}  // namespace lathe::onnx
