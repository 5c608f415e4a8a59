#include "driver/rewrite/rewrite_model.h"
#include "ir/visit.h"
#include "relax/expr.h"

namespace lathe::driver {

namespace {

ir::TensorData rounded(const ir::TensorDataNode& data, int64_t levels) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (int64_t i = 0; i < data.elements(); ++i) {
    const double value = ir::float_at(data, i);
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  const double step = (most - least) / static_cast<double>(levels - 1);
  std::string bytes(data.view());
  const auto width = static_cast<size_t>(data.dtype.element_bytes());
  for (int64_t i = 0; i < data.elements() && step > 0; ++i) {
    const double value = ir::float_at(data, i);
    if (!std::isfinite(value)) continue;
    const uint64_t bits = ir::encode_float(data.dtype, least + std::round((value - least) / step) * step);
    std::memcpy(bytes.data() + static_cast<size_t>(i) * width, &bits, width);
  }
  return ir::tensor_data(data.dtype, data.shape, std::move(bytes));
}

}  // namespace

ir::IRModule round_weights(ir::IRModule module, int64_t levels) {
  std::unordered_map<const ir::Node*, ir::TensorData> made;  // a tensor that is used twice stays one
  const auto round = [&](ir::NodeRef n) -> ir::NodeRef {
    const auto* constant = n.as<relax::Constant>();
    if (!constant || !constant->data->dtype.is_floating() || constant->data->dtype.storage_bits() < 16 ||
        constant->data->elements() <= levels)
      return n;
    ir::TensorData& data = made[constant->data.get()];
    if (!data) data = rounded(*constant->data, levels);
    return ir::with_origin(relax::constant(data), n->origin());
  };
  const std::vector<ir::IRModule::Entry> functions = module.functions();
  for (const auto& [name, function] : functions) module.set(name, ir::rewrite_post_order(function, round));
  return module;
}

}  // namespace lathe::driver
