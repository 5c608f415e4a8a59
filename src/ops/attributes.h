// The attributes of the operators that have some: one struct each, with the operator that takes it.
#pragma once

#include <limits>

#include "relax/expr.h"

namespace lathe::ops {

using ir::field;
using relax::AttributesNode;

struct LeakyReluAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "LeakyReluAttributes";
  double alpha = 0.01;
  static constexpr auto fields() { return std::tuple{field("alpha", &LeakyReluAttributes::alpha)}; }
};

struct EluAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "EluAttributes";
  double alpha = 1;
  static constexpr auto fields() { return std::tuple{field("alpha", &EluAttributes::alpha)}; }
};

struct SeluAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "SeluAttributes";
  double alpha = 1.67326319217681884765625, gamma = 1.05070102214813232421875;  // ONNX's float32 defaults
  static constexpr auto fields() {
    return std::tuple{field("alpha", &SeluAttributes::alpha), field("gamma", &SeluAttributes::gamma)};
  }
};

struct HardSigmoidAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "HardSigmoidAttributes";
  double alpha = 0.2, beta = 0.5;
  static constexpr auto fields() {
    return std::tuple{field("alpha", &HardSigmoidAttributes::alpha), field("beta", &HardSigmoidAttributes::beta)};
  }
};

struct AstypeAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "AstypeAttributes";
  ir::DType dtype = ir::DType::float32();
  static constexpr auto fields() { return std::tuple{field("dtype", &AstypeAttributes::dtype)}; }
};

struct MatmulAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "MatmulAttributes";
  ir::DType out_dtype;          // void: the operands'
  std::string b_layout = "KN";  // or "NK{n}n": b is [batch…, ceil(N / n), K, n], zero padded
  int64_t columns = 0;          // N, where b is packed
  static constexpr auto fields() {
    return std::tuple{field("out_dtype", &MatmulAttributes::out_dtype), field("b_layout", &MatmulAttributes::b_layout),
                      field("columns", &MatmulAttributes::columns)};
  }
};

// Windows are given one value a spatial dimension; strides and dilation may be empty: ones; padding: begins, then ends;
// empty: zeros. auto_pad: "NOTSET" (padding counts), "VALID" (none), "SAME_UPPER", "SAME_LOWER". Layouts are named for
// two spatial dimensions and hold for any number: "NCHW", "NHWC".
struct ConvAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "ConvAttributes";
  std::vector<int64_t> strides, padding, dilation;
  int64_t groups = 1;
  std::string auto_pad = "NOTSET";
  std::string data_layout = "NCHW";
  std::string kernel_layout = "OIHW";  // or "OHWI{n}o": [ceil(O / n), spatial…, I, n], zero padded
  int64_t channels = 0;                // O, where the kernel is packed
  ir::DType out_dtype;                 // void: the operands'
  std::string out_layout;              // empty: data_layout
  // Of the input, its own padding around it, so many elements at the beginning and then at the end of each spatial axis
  // are zeros whose products may be left out: the kernel is finite. Empty: none are known.
  std::vector<int64_t> zero_border;
  static constexpr auto fields() {
    return std::tuple{field("strides", &ConvAttributes::strides),
                      field("padding", &ConvAttributes::padding),
                      field("dilation", &ConvAttributes::dilation),
                      field("groups", &ConvAttributes::groups),
                      field("auto_pad", &ConvAttributes::auto_pad),
                      field("data_layout", &ConvAttributes::data_layout),
                      field("kernel_layout", &ConvAttributes::kernel_layout),
                      field("channels", &ConvAttributes::channels),
                      field("out_dtype", &ConvAttributes::out_dtype),
                      field("out_layout", &ConvAttributes::out_layout),
                      field("zero_border", &ConvAttributes::zero_border)};
  }
};

struct PoolAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "PoolAttributes";
  std::vector<int64_t> pool_size, strides, padding, dilation;
  bool ceil_mode = false;
  std::string auto_pad = "NOTSET";
  std::string layout = "NCHW";
  bool count_include_pad = false;  // of avg_pool
  static constexpr auto fields() {
    return std::tuple{
        field("pool_size", &PoolAttributes::pool_size), field("strides", &PoolAttributes::strides),
        field("padding", &PoolAttributes::padding),     field("dilation", &PoolAttributes::dilation),
        field("ceil_mode", &PoolAttributes::ceil_mode), field("auto_pad", &PoolAttributes::auto_pad),
        field("layout", &PoolAttributes::layout),       field("count_include_pad", &PoolAttributes::count_include_pad)};
  }
};

struct PackAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "PackAttributes";
  int64_t lanes = 16;
  static constexpr auto fields() { return std::tuple{field("lanes", &PackAttributes::lanes)}; }
};

// Of Winograd's transforms: outputs of a tile in each of the two dimensions, and batch, height and width of what
// nn.winograd_output gives.
struct WinogradAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "WinogradAttributes";
  int64_t tile = 4;
  std::vector<int64_t> image;
  static constexpr auto fields() {
    return std::tuple{field("tile", &WinogradAttributes::tile), field("image", &WinogradAttributes::image)};
  }
};

struct BatchNormAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "BatchNormAttributes";
  int64_t axis = 1;
  double epsilon = 1e-5;
  static constexpr auto fields() {
    return std::tuple{field("axis", &BatchNormAttributes::axis), field("epsilon", &BatchNormAttributes::epsilon)};
  }
};

struct LayerNormAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "LayerNormAttributes";
  std::vector<int64_t> axes = {-1};
  double epsilon = 1e-5;
  static constexpr auto fields() {
    return std::tuple{field("axes", &LayerNormAttributes::axes), field("epsilon", &LayerNormAttributes::epsilon)};
  }
};

struct SoftmaxAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "SoftmaxAttributes";
  int64_t axis = -1;
  static constexpr auto fields() { return std::tuple{field("axis", &SoftmaxAttributes::axis)}; }
};

struct SoftmaxTermsAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "SoftmaxTermsAttributes";
  int64_t axis = -1;
  double scale = 1.0;  // above 0
  static constexpr auto fields() {
    return std::tuple{field("axis", &SoftmaxTermsAttributes::axis), field("scale", &SoftmaxTermsAttributes::scale)};
  }
};

struct ReduceAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "ReduceAttributes";
  std::optional<std::vector<int64_t>> axis;  // nothing: all
  bool keepdims = false;
  static constexpr auto fields() {
    return std::tuple{field("axis", &ReduceAttributes::axis), field("keepdims", &ReduceAttributes::keepdims)};
  }
};

struct ArgReduceAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "ArgReduceAttributes";
  std::optional<int64_t> axis;  // nothing: all, and the index is row-major
  bool keepdims = false;
  bool select_last_index = false;
  static constexpr auto fields() {
    return std::tuple{field("axis", &ArgReduceAttributes::axis), field("keepdims", &ArgReduceAttributes::keepdims),
                      field("select_last_index", &ArgReduceAttributes::select_last_index)};
  }
};

struct PermuteDimsAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "PermuteDimsAttributes";
  std::optional<std::vector<int64_t>> axes;  // nothing: reversed
  static constexpr auto fields() { return std::tuple{field("axes", &PermuteDimsAttributes::axes)}; }
};

// The map as schedules write it, "lambda i, j: (j, i // 4, i % 4)". Separators part the axes of a memory of several
// dimensions; the memory of a graph's tensors has one, so that they change nothing.
struct LayoutTransformAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "LayoutTransformAttributes";
  std::string index_map;
  double pad_value = 0;  // of the result's elements that the map meets none of
  std::vector<int64_t> axis_separators, input_axis_separators;
  static constexpr auto fields() {
    return std::tuple{field("index_map", &LayoutTransformAttributes::index_map),
                      field("pad_value", &LayoutTransformAttributes::pad_value),
                      field("axis_separators", &LayoutTransformAttributes::axis_separators),
                      field("input_axis_separators", &LayoutTransformAttributes::input_axis_separators)};
  }
};

// One axis: concat, take.
struct AxisAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "AxisAttributes";
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{field("axis", &AxisAttributes::axis)}; }
};

// Axes of expand_dims (of the result) and squeeze (of the input; nothing: every axis of extent 1).
struct AxesAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "AxesAttributes";
  std::optional<std::vector<int64_t>> axis;
  static constexpr auto fields() { return std::tuple{field("axis", &AxesAttributes::axis)}; }
};

// `sizes` along the axis, or `sections` parts of ceil(extent / sections), the last smaller.
struct SplitAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "SplitAttributes";
  int64_t axis = 0;
  std::vector<int64_t> sizes;
  int64_t sections = 0;
  static constexpr auto fields() {
    return std::tuple{field("axis", &SplitAttributes::axis), field("sizes", &SplitAttributes::sizes),
                      field("sections", &SplitAttributes::sections)};
  }
};

struct StridedSliceAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "StridedSliceAttributes";
  std::vector<int64_t> axes;
  std::vector<int64_t> strides;  // empty: ones
  static constexpr auto fields() {
    return std::tuple{field("axes", &StridedSliceAttributes::axes), field("strides", &StridedSliceAttributes::strides)};
  }
};

struct PadAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "PadAttributes";
  std::string mode = "constant";  // "reflect", "edge", "wrap"
  static constexpr auto fields() { return std::tuple{field("mode", &PadAttributes::mode)}; }
};

// n of a packed layout such as "NK16n" (prefix "NK", suffix "n"), 0 for another.
int64_t packed_lanes(std::string_view layout, std::string_view prefix, std::string_view suffix);

// An empty delimiter stands for runs of spaces; `most` splits of one string, or -1 for any number.
struct StringSplitAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "StringSplitAttributes";
  std::string delimiter;
  int64_t most = -1;
  static constexpr auto fields() {
    return std::tuple{field("delimiter", &StringSplitAttributes::delimiter),
                      field("most", &StringSplitAttributes::most)};
  }
};

struct StringNormalizeAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "StringNormalizeAttributes";
  std::string letter_case = "none";  // or "lower", "upper"
  bool is_case_sensitive = false;    // of stop words
  std::vector<std::string> stop_words;
  static constexpr auto fields() {
    return std::tuple{field("letter_case", &StringNormalizeAttributes::letter_case),
                      field("is_case_sensitive", &StringNormalizeAttributes::is_case_sensitive),
                      field("stop_words", &StringNormalizeAttributes::stop_words)};
  }
};

struct StringMatchAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "StringMatchAttributes";
  std::string pattern;  // ops/strings/regular_expression.h
  static constexpr auto fields() { return std::tuple{field("pattern", &StringMatchAttributes::pattern)}; }
};

// float64; or int64, where numbers below `least` or above `greatest` are refused (unsigned ones if least > greatest).
struct NumberOfStringAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "NumberOfStringAttributes";
  ir::DType dtype = ir::DType::float_(64);
  int64_t least = std::numeric_limits<int64_t>::min(), greatest = std::numeric_limits<int64_t>::max();
  static constexpr auto fields() {
    return std::tuple{field("dtype", &NumberOfStringAttributes::dtype),
                      field("least", &NumberOfStringAttributes::least),
                      field("greatest", &NumberOfStringAttributes::greatest)};
  }
};

struct ImageDecodeAttributes : AttributesNode {
  static constexpr std::string_view kind_name = "ImageDecodeAttributes";
  std::string order = "rgb";  // of a pixel's channels; or "bgr", "gray"
  static constexpr auto fields() { return std::tuple{field("order", &ImageDecodeAttributes::order)}; }
};

}  // namespace lathe::ops
