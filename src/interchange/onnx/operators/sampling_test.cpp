// Reading between elements, spectra, determinants, states, training: values worked out by hand, and what is refused.
#include <complex>
#include <numbers>

#include "interchange/onnx/model_fixture.h"

namespace lathe::onnx {
namespace {

using namespace testing;  // NOLINT: the fixture is this file's vocabulary

ModelBuilder one_node(int opset, const std::string& type, const std::vector<std::vector<Dim>>& shapes,
                      const std::vector<Attribute>& attributes = {}, size_t outputs = 1) {
  ModelBuilder m(opset);
  std::vector<std::string> inputs, results;
  for (const auto& shape : shapes) {
    inputs.push_back("x" + std::to_string(inputs.size()));
    m.input(inputs.back(), shape);
  }
  for (size_t k = 0; k < outputs; ++k) results.push_back("y" + std::to_string(k));
  m.node(type, inputs, results, attributes);
  for (const std::string& name : results) m.output(name);
  return m;
}

TEST(GridSample, reads_between_elements_and_around_the_border) {
  const TensorData x = floats({1, 1, 1, 3}, {1, 2, 4}), grid = floats({1, 1, 3, 2}, {0.5f, 0, -1, 0, 2, 0});
  const auto sampled = [&](const char* mode, const char* outside, int corners) {
    return one_node(20, "GridSample", {{1, 1, 1, 3}, {1, 1, 3, 2}},
                    {{"mode", mode}, {"padding_mode", outside}, {"align_corners", corners}})
        .run({x, grid})[0];
  };
  expect_close(sampled("linear", "zeros", 1), floats({1, 1, 1, 3}, {3, 1, 0}));
  expect_close(sampled("linear", "border", 1), floats({1, 1, 1, 3}, {3, 1, 4}));
  expect_close(sampled("nearest", "reflection", 1), floats({1, 1, 1, 3}, {4, 1, 2}));
  expect_close(sampled("linear", "zeros", 0), floats({1, 1, 1, 3}, {3.5f, 0.5f, 0}));
}

TEST(GridSample, of_no_elements_is_zero) {
  const auto y = one_node(20, "GridSample", {{1, 1, 0}, {1, 2, 1}}, {{"padding_mode", "border"}})
                     .run({floats({1, 1, 0}, {}), floats({1, 2, 1}, {0, std::nanf("")})});
  expect_close(y[0], floats({1, 1, 2}, {0, 0}));
}

TEST(GridSample, of_another_rank_is_refused) {
  EXPECT_NE(one_node(20, "GridSample", {{1, 1, 3, 3}, {1, 2, 1}}).refusal().find("dimensions, not 4"),
            std::string::npos);
  EXPECT_NE(one_node(20, "GridSample", {{2, 1, 3}, {1, 2, 1}}).refusal().find("must be 2"), std::string::npos);
}

TEST(RoiAlign, averages_the_samples_of_a_bin) {
  ModelBuilder m(16);
  m.input("x", {1, 1, 2, 2}).input("rois", {1, 4}).integers("batch", {1}, {0});
  m.node("RoiAlign", {"x", "rois", "batch"}, {"y"}, {{"sampling_ratio", 2}}).output("y");
  expect_close(m.run({floats({1, 1, 2, 2}, {1, 2, 3, 4}), floats({1, 4}, {0, 0, 2, 2})})[0],
               floats({1, 1, 1, 1}, {2.5f}));
}

TEST(RoiAlign, into_nothing_is_refused) {
  ModelBuilder m(16);
  m.input("x", {1, 1, 2, 2}).input("rois", {1, 4}).integers("batch", {1}, {0});
  m.node("RoiAlign", {"x", "rois", "batch"}, {"y"}, {{"output_height", 0}}).output("y");
  EXPECT_NE(m.refusal().find("an extent of 0"), std::string::npos) << m.refusal();
}

TEST(DeformConv, moves_what_a_window_reads) {
  // A window of one element, moved half an element to the right.
  const auto y =
      one_node(19, "DeformConv", {{1, 1, 1, 2}, {1, 1, 1, 1}, {1, 2, 1, 2}})
          .run({floats({1, 1, 1, 2}, {2, 6}), floats({1, 1, 1, 1}, {10}), floats({1, 2, 1, 2}, {0, 0, 0.5f, 0.5f})});
  expect_close(y[0], floats({1, 1, 1, 2}, {40, 30}));
}

TEST(DeformConv, without_groups_is_refused) {
  const auto m = one_node(19, "DeformConv", {{1, 1, 1, 2}, {1, 1, 1, 1}, {1, 2, 1, 2}}, {{"offset_group", 0}});
  EXPECT_NE(m.refusal().find("0 groups"), std::string::npos) << m.refusal();
}

TEST(Col2Im, adds_up_blocks_that_overlap) {
  ModelBuilder m(18);
  m.input("x", {1, 2, 2}).integers("image", {1}, {3}).integers("block", {1}, {2});
  m.node("Col2Im", {"x", "image", "block"}, {"y"}).output("y");
  expect_close(m.run({floats({1, 2, 2}, {1, 2, 3, 4})})[0], floats({1, 1, 3}, {1, 5, 4}));
  ModelBuilder other(18);
  other.input("x", {1, 2, 2}).integers("image", {1}, {3}).integers("block", {1}, {2});
  other.node("Col2Im", {"x", "image", "block"}, {"y"}, {{"strides", std::vector<int64_t>{0}}}).output("y");
  EXPECT_NE(other.refusal().find("'strides' has the value 0"), std::string::npos) << other.refusal();
}

TEST(MaxUnpool, puts_elements_where_they_were) {
  ModelBuilder m(11);
  m.input("x", {1, 1, 2}).integers("i", {1, 1, 2}, {1, 2}).integers("shape", {3}, {1, 1, 5});
  m.node("MaxUnpool", {"x", "i", "shape"}, {"y"},
         {{"kernel_shape", std::vector<int64_t>{2}}, {"strides", std::vector<int64_t>{2}}});
  m.output("y");
  expect_close(m.run({floats({1, 1, 2}, {7, 9})})[0], floats({1, 1, 5}, {0, 7, 9, 0, 0}));
}

TEST(AffineGrid, of_the_identity_are_the_centres) {
  ModelBuilder m(20);
  m.input("theta", {1, 1, 2}).integers("size", {3}, {1, 1, 2});
  m.node("AffineGrid", {"theta", "size"}, {"y"}).output("y");
  expect_close(m.run({floats({1, 1, 2}, {1, 0})})[0], floats({1, 2, 1}, {-0.5f, 0.5f}));
  ModelBuilder flat(20);
  flat.input("theta", {1, 1, 2}).integers("size", {2}, {1, 1});
  flat.node("AffineGrid", {"theta", "size"}, {"y"}).output("y");
  EXPECT_NE(flat.refusal().find("the size has 2 extents"), std::string::npos) << flat.refusal();
}

TEST(DFT, of_an_impulse_is_flat_and_back) {
  const auto there = one_node(17, "DFT", {{1, 3, 1}}).run({floats({1, 3, 1}, {2, 0, 0})});
  expect_close(there[0], floats({1, 3, 2}, {2, 0, 2, 0, 2, 0}));
  const auto back = one_node(17, "DFT", {{1, 3, 2}}, {{"inverse", 1}}).run(there);
  expect_close(back[0], floats({1, 3, 2}, {2, 0, 0, 0, 0, 0}));
  const auto half =
      one_node(17, "DFT", {{1, 2, 2}}, {{"inverse", 1}, {"onesided", 1}}).run({floats({1, 2, 2}, {3, 0, 1, 0})});
  expect_close(half[0], floats({1, 2, 1}, {2, 1}));
}

// Against the definition, term by term, for lengths that divide in different ways, cut, padded, and halved.
TEST(DFT, of_lengths_with_and_without_factors) {
  struct Case {
    int64_t given, length;
    bool inverse, onesided, complex;
  };
  const std::vector<Case> cases{{48, 48, false, false, true}, {48, 48, true, false, true},
                                {30, 36, false, true, false}, {64, 60, true, false, true},
                                {17, 17, false, false, true}, {25, 48, true, true, true},
                                {20, 45, true, true, true},   {40, 74, false, false, false}};
  for (const Case& each : cases) {
    const int64_t parts = each.complex ? 2 : 1, n = each.length;
    const TensorData x = random_floats({2, each.given, 3, parts}, static_cast<uint32_t>(n));
    ModelBuilder m(20);
    m.input("x", {2, each.given, 3, parts}).integers("n", {}, {n}).integers("axis", {}, {1});
    m.node("DFT", {"x", "n", "axis"}, {"y"}, {{"inverse", each.inverse ? 1 : 0}, {"onesided", each.onesided ? 1 : 0}});
    const TensorData y = m.output("y").run({x})[0];
    const bool gives_real = each.inverse && each.onesided;
    const int64_t bins = each.onesided && !each.inverse ? n / 2 + 1 : n, out_parts = gives_real ? 1 : 2;
    ASSERT_EQ(y->shape, (std::vector<int64_t>{2, bins, 3, out_parts}));
    const auto element = [&](int64_t outer, int64_t t, int64_t inner) {
      // The other half of half a spectrum are the conjugates.
      const bool is_mirrored = gives_real && t > n / 2;
      const int64_t from = is_mirrored ? n - t : t;
      if (from >= each.given) return std::complex<double>();
      const int64_t at = ((outer * each.given + from) * 3 + inner) * parts;
      const double im = parts == 2 ? ir::float_at(*x, at + 1) : 0;
      const bool is_real = gives_real && (t == 0 || 2 * t == n);
      return std::complex<double>(ir::float_at(*x, at), is_real ? 0 : is_mirrored ? -im : im);
    };
    for (int64_t i = 0; i < y->elements() / out_parts; ++i) {
      const int64_t inner = i % 3, k = i / 3 % bins, outer = i / 3 / bins;
      std::complex<double> sum;
      for (int64_t t = 0; t < n; ++t) {
        const double angle = 2 * std::numbers::pi * static_cast<double>(k * t % n) / static_cast<double>(n);
        sum += element(outer, t, inner) * std::polar(1.0, each.inverse ? angle : -angle);
      }
      if (each.inverse) sum /= static_cast<double>(n);
      EXPECT_NEAR(ir::float_at(*y, i * out_parts), sum.real(), 1e-4) << n << " " << k;
      if (!gives_real) EXPECT_NEAR(ir::float_at(*y, i * out_parts + 1), sum.imag(), 1e-4) << n << " " << k;
    }
  }
}

TEST(DFT, along_real_and_imaginary_part_is_refused) {
  EXPECT_NE(one_node(17, "DFT", {{1, 3, 2}}, {{"axis", 2}}).refusal().find("the axis is the last"), std::string::npos);
  EXPECT_NE(one_node(17, "DFT", {{1, 3, 4}}).refusal().find("last dimension is 1 or 2"), std::string::npos);
}

TEST(STFT, cuts_a_signal_into_frames) {
  ModelBuilder m(17);
  m.input("x", {1, 4, 1}).integers("step", {}, {2}).weight("window", {2}, {1, 0.5f});
  m.node("STFT", {"x", "step", "window"}, {"y"}).output("y");
  expect_close(m.run({floats({1, 4, 1}, {1, 2, 3, 4})})[0], floats({1, 2, 2, 2}, {2, 0, 0, 0, 5, 0, 1, 0}));
  ModelBuilder still(17);
  still.input("x", {1, 4, 1}).integers("step", {}, {0}).weight("window", {2}, {1, 1});
  still.node("STFT", {"x", "step", "window"}, {"y"}).output("y");
  EXPECT_NE(still.refusal().find("the step is 0"), std::string::npos) << still.refusal();
}

TEST(Det, finds_a_pivot_below) {
  const auto y = one_node(11, "Det", {{2, 2, 2}}).run({floats({2, 2, 2}, {0, 2, 3, 4, 1, 2, 2, 4})});
  expect_close(y[0], floats({2}, {-6, 0}));
  expect_close(one_node(11, "Det", {{0, 0}}).run({floats({0, 0}, {})})[0], floats({}, {1}));
}

TEST(LinearAttention, remembers_by_the_rule) {
  const std::vector<Attribute> attributes{
      {"q_num_heads", 1}, {"kv_num_heads", 1}, {"update_rule", "linear"}, {"scale", 1.0f}};
  const TensorData ones = floats({1, 2, 1}, {1, 1}), values = floats({1, 2, 1}, {3, 5});
  const auto y =
      one_node(27, "LinearAttention", {{1, 2, 1}, {1, 2, 1}, {1, 2, 1}}, attributes, 2).run({ones, ones, values});
  expect_close(y[0], floats({1, 2, 1}, {3, 8}));
  expect_close(y[1], floats({1, 1, 1, 1}, {8}));
  const auto decayed = one_node(27, "LinearAttention", {{1, 2, 1}, {1, 2, 1}, {1, 2, 1}},
                                {{"q_num_heads", 1}, {"kv_num_heads", 1}, {"update_rule", "gated"}}, 2);
  EXPECT_NE(decayed.refusal().find("takes a decay and no beta"), std::string::npos) << decayed.refusal();
  const auto shared = one_node(27, "LinearAttention", {{1, 2, 3}, {1, 2, 2}, {1, 2, 2}},
                               {{"q_num_heads", 3}, {"kv_num_heads", 2}, {"update_rule", "linear"}}, 2);
  EXPECT_NE(shared.refusal().find("cannot share"), std::string::npos) << shared.refusal();
}

TEST(CausalConvWithState, keeps_the_last_inputs) {
  const auto y = one_node(27, "CausalConvWithState", {{1, 1, 3}, {1, 1, 2}}, {}, 2)
                     .run({floats({1, 1, 3}, {1, 2, 3}), floats({1, 1, 2}, {10, 1})});
  expect_close(y[0], floats({1, 1, 3}, {1, 12, 23}));
  expect_close(y[1], floats({1, 1, 1}, {3}));
  const auto wide = one_node(27, "CausalConvWithState", {{1, "c", 3}, {"c", 2, 2}}, {}, 2);
  EXPECT_NE(wide.refusal().find("the extent 2 must be 1"), std::string::npos) << wide.refusal();
}

TEST(Momentum, of_two_weights_takes_a_step_each) {
  ModelBuilder m(1);
  m.proto.mutable_opset_import(0)->set_domain("ai.onnx.preview.training");
  m.input("r", {}).input("t", {}, Type::INT64);
  std::vector<std::string> names{"r", "t"};
  for (const char* name : {"x0", "x1", "g0", "g1", "v0", "v1"}) {
    m.input(name, {1});
    names.emplace_back(name);
  }
  m.node("Momentum", names, {"a", "b", "c", "d"},
         {{"alpha", 0.5f}, {"beta", 0.25f}, {"norm_coefficient", 0.0f}, {"mode", "standard"}});
  m.proto.mutable_graph()->mutable_node(0)->set_domain("ai.onnx.preview.training");
  for (const char* name : {"a", "b", "c", "d"}) m.output(name);
  const auto one = [](float value) { return floats({1}, {value}); };
  const TensorData step = ir::tensor_of<int64_t>(DType::int64(), {}, {0});
  const auto y = m.run({floats({}, {0.1f}), step, one(1), one(2), one(10), one(20), one(4), one(8)});
  expect_close(y[2], one(12));
  expect_close(y[3], one(24));
  expect_close(y[0], one(-0.2f));
  expect_close(y[1], one(-0.4f));
}

}  // namespace
}  // namespace lathe::onnx
