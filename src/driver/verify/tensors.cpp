#include "driver/verify/tensors.h"

namespace lathe::driver {
namespace {

// The standard's engine is the same everywhere and its distributions are not: bits are turned into values here.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  // Close enough to a normal distribution: the sum of twelve (Irwin-Hall).
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }
  int64_t below(int64_t bound) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(bound)); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace

ir::TensorData random_tensor(ir::DType dtype, std::vector<int64_t> shape, uint64_t seed) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  const int64_t width = dtype.storage_bits();
  std::string bytes(static_cast<size_t>(dtype.storage_bytes(count)), '\0');
  Random random(seed);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    if (dtype.is_bool())
      bits = static_cast<uint64_t>(random.below(2));
    else if (dtype.is_integer())
      bits = static_cast<uint64_t>(random.below(8) - (dtype.is_uint() ? 0 : 3));
    else
      bits = ir::encode_float(
          dtype, dtype.code == ir::TypeCode::float8_e8m0fnu ? std::exp2(random.normal()) : random.normal());
    if (width >= 8) {
      std::memcpy(bytes.data() + i * width / 8, &bits, static_cast<size_t>(width / 8));
    } else {
      const uint64_t low = bits & ((uint64_t{1} << width) - 1);
      char& to = bytes[static_cast<size_t>(i * width / 8)];
      to = static_cast<char>(static_cast<uint8_t>(to) | low << (i * width % 8));
    }
  }
  return ir::tensor_data(dtype, std::move(shape), std::move(bytes));
}

double tolerance_of(ir::DType dtype) {
  if (!dtype.is_floating()) return 0;
  if (dtype.is_ieee_float() && dtype.bits == 64) return 1e-9;
  if (dtype.is_ieee_float() && dtype.bits == 32) return 1e-4;
  if (dtype.is_ieee_float() && dtype.bits == 16) return 1e-2;
  return 0.1;
}

Difference compare(const ir::TensorDataNode& got, const ir::TensorDataNode& expected,
                   std::span<const int64_t> positions) {
  Difference d;
  if (got.dtype != expected.dtype || got.shape != expected.shape) {
    d.complaint = fmt::format("{} [{}] instead of {} [{}]", got.dtype.str(), fmt::join(got.shape, ", "),
                              expected.dtype.str(), fmt::join(expected.shape, ", "));
    return d;
  }
  const bool floating = got.dtype.is_floating();
  const auto value = [&](const ir::TensorDataNode& t, int64_t i) {
    return floating ? ir::float_at(t, i) : static_cast<double>(ir::int_at(t, i));
  };
  d.compared = positions.empty() ? got.elements() : static_cast<int64_t>(positions.size());
  const auto position = [&](int64_t k) { return positions.empty() ? k : positions[static_cast<size_t>(k)]; };
  for (int64_t k = 0; k < expected.elements(); ++k)
    if (const double magnitude = std::abs(value(expected, k)); std::isfinite(magnitude))
      d.largest_value = std::max(d.largest_value, magnitude);
  const double allowed = tolerance_of(got.dtype) * std::max(d.largest_value, 1e-6);
  for (int64_t k = 0; k < d.compared; ++k) {
    const int64_t i = position(k);
    if (!floating) {
      const int64_t a = ir::int_at(got, i), b = ir::int_at(expected, i);
      d.wrong += a != b;
      d.largest_error = std::max(d.largest_error, std::abs(static_cast<double>(a) - static_cast<double>(b)));
      continue;
    }
    const double a = value(got, i), b = value(expected, i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    const double error = std::abs(a - b);
    if (!std::isfinite(error)) {
      ++d.wrong;
      d.largest_error = std::numeric_limits<double>::infinity();
      continue;
    }
    d.largest_error = std::max(d.largest_error, error);
    d.wrong += error > allowed;
  }
  return d;
}

}  // namespace lathe::driver
