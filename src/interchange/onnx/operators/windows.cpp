#include "interchange/onnx/operators/windows.h"

#include "interchange/onnx/codes.h"

namespace lathe::onnx::operators {

int64_t spatial_rank(NodeImport& c) {
  if (c.rank(0) < 3)
    c.fail(codes::wrong_node, "the input has " + std::to_string(c.rank(0)) +
                                  " dimensions; it needs batch, channels and at least one more");
  return c.rank(0) - 2;
}

WindowAttributes read_windows(NodeImport& c, bool kernel_optional, bool has_dilations) {
  const int64_t rank = spatial_rank(c);
  const auto read = [&](std::string_view name, int64_t count, int64_t least) {
    const auto values = c.attributes.integers(name);
    if (!values) return std::vector<int64_t>{};
    if (static_cast<int64_t>(values->size()) != count)
      c.fail(codes::wrong_attribute, "the attribute '" + std::string(name) + "' has " + std::to_string(values->size()) +
                                         " values, not " + std::to_string(count));
    for (const int64_t value : *values)
      if (value < least || value > std::numeric_limits<int32_t>::max())
        c.fail(codes::wrong_attribute, "the attribute '" + std::string(name) + "' has the value " +
                                           std::to_string(value) + ", which is out of range");
    return *values;
  };
  WindowAttributes w;
  w.auto_pad = c.attributes.word("auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  w.kernel = read("kernel_shape", rank, 1);
  w.strides = read("strides", rank, 1);
  if (has_dilations) w.dilations = read("dilations", rank, 1);
  w.pads = read("pads", 2 * rank, 0);
  if (w.kernel.empty() && !kernel_optional) c.fail(codes::wrong_attribute, "the attribute 'kernel_shape' is missing");
  return w;
}

}  // namespace lathe::onnx::operators
