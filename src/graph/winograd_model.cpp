#include "graph/winograd_model.h"

#include <random>

#include "ops/winograd.h"

namespace lathe::graph {

namespace {

using ops::Winograd;

const ops::WinogradValues<float> of_floats{
    [](const float& x, double factor) { return x * static_cast<float>(factor); }};

// Rows, then columns, of a square of `from` values a side.
std::vector<float> both_ways(const std::vector<float>& square, size_t from,
                             const std::function<std::vector<float>(const std::vector<float>&)>& transform) {
  std::vector<std::vector<float>> columns;  // each transformed
  for (size_t c = 0; c < from; ++c) {
    std::vector<float> line;
    for (size_t r = 0; r < from; ++r) line.push_back(square[r * from + c]);
    columns.push_back(transform(line));
  }
  std::vector<float> result;
  for (size_t r = 0; r < columns[0].size(); ++r) {
    std::vector<float> line;
    for (const std::vector<float>& column : columns) line.push_back(column[r]);
    const std::vector<float> row = transform(line);
    result.insert(result.end(), row.begin(), row.end());
  }
  return result;
}

// [inputs][points] of output channel `o`.
std::vector<std::vector<float>> transformed_kernel(const Winograd& w, const ir::TensorDataNode& weights, int64_t o) {
  const int64_t inputs = weights.shape[1];
  std::vector<std::vector<float>> result;
  for (int64_t i = 0; i < inputs; ++i) {
    std::vector<float>& points = result.emplace_back();
    for (int64_t p = 0; p < w.size; ++p)
      for (int64_t q = 0; q < w.size; ++q) {
        double sum = 0;
        for (int64_t a = 0; a < 3; ++a)
          for (int64_t b = 0; b < 3; ++b)
            sum += w.kernel(p, a) * w.kernel(q, b) * ir::float_at(weights, ((o * inputs + i) * 3 + a) * 3 + b);
        points.push_back(static_cast<float>(sum));
      }
  }
  return result;
}

}  // namespace

WinogradError winograd_error(const ir::TensorDataNode& weights, int64_t tile) {
  const Winograd w = *ops::winograd(tile);
  constexpr int64_t most_channels = 16, tiles = 16;
  const int64_t outputs = weights.shape[0], inputs = weights.shape[1];
  const int64_t step = std::max<int64_t>(1, outputs / most_channels);
  const auto side = static_cast<size_t>(w.size);
  std::vector<std::vector<std::vector<float>>> kernels;
  for (int64_t o = 0; o < outputs; o += step) kernels.push_back(transformed_kernel(w, weights, o));

  std::mt19937 random(1);
  double largest = 0, apart = 0, direct_apart = 0;
  for (int64_t t = 0; t < tiles; ++t) {
    std::vector<std::vector<float>> d(static_cast<size_t>(inputs)), points;
    for (std::vector<float>& square : d) {
      for (size_t e = 0; e < side * side; ++e) square.push_back(static_cast<float>(random()) / 2147483648.0F - 1.0F);
      points.push_back(
          both_ways(square, side, [&](const auto& line) { return ops::winograd_input(w, line, of_floats); }));
    }
    for (size_t k = 0; k < kernels.size(); ++k) {
      std::vector<float> products(side * side, 0.0F);
      for (size_t i = 0; i < d.size(); ++i)
        for (size_t e = 0; e < products.size(); ++e) products[e] += points[i][e] * kernels[k][i][e];
      const std::vector<float> y =
          both_ways(products, side, [&](const auto& line) { return ops::winograd_output(w, line, of_floats); });
      for (int64_t r = 0; r < tile; ++r)
        for (int64_t s = 0; s < tile; ++s) {
          double exact = 0;
          float direct = 0;
          for (int64_t i = 0; i < inputs; ++i)
            for (int64_t a = 0; a < 3; ++a)
              for (int64_t b = 0; b < 3; ++b) {
                const float x = d[static_cast<size_t>(i)][static_cast<size_t>((r + a) * w.size + s + b)];
                const int64_t o = static_cast<int64_t>(k) * step;
                const double weight = ir::float_at(weights, ((o * inputs + i) * 3 + a) * 3 + b);
                exact += x * weight;
                direct += x * static_cast<float>(weight);
              }
          largest = std::max(largest, std::abs(exact));
          apart = std::max(apart, std::abs(y[static_cast<size_t>(r * tile + s)] - exact));
          direct_apart = std::max(direct_apart, std::abs(direct - exact));
        }
    }
  }
  if (largest == 0) return {};
  return {apart / largest, direct_apart / largest};
}

double winograd_cycles(const WinogradSizes& sizes, int64_t tile, const target::Target& target) {
  const double lanes = target.lanes(32);
  const auto product = [](auto... factors) { return (static_cast<double>(factors) * ...); };
  const double pairs = product(sizes.inputs, sizes.outputs);
  // Two multiply-adds of vectors a cycle. What comes from beyond the second cache comes at eight bytes a cycle, from
  // there at 32; weights are read once, while products run.
  const auto bytes_a_cycle = [&](double bytes) {
    return 2 * bytes > static_cast<double>(target.cache_bytes(2, 1 << 20)) ? 8.0 : 32.0;
  };
  const auto products = [&](double terms, double weights) {
    return std::max(terms / (2 * lanes), weights / bytes_a_cycle(weights));
  };
  if (tile == 0) {
    const double windows = product(sizes.images, sizes.height, sizes.width);
    return products(9 * windows * pairs, 4 * 9 * pairs);
  }
  const Winograd w = *ops::winograd(tile);
  const int64_t rows = (sizes.height + tile - 1) / tile, columns = (sizes.width + tile - 1) / tile;
  const double tiles = product(sizes.images, rows, columns), points = product(w.size, w.size);
  // Both transforms write or read each value once, and the products the other way round; and a tile takes so many
  // operations a channel, of which a vector does `lanes`.
  const double bytes = 4 * points * tiles * static_cast<double>(sizes.inputs + sizes.outputs);
  const double moved = 2 * bytes / bytes_a_cycle(bytes);
  const double added = 3 * points * tiles * static_cast<double>(sizes.inputs + sizes.outputs) / lanes;
  return products(points * tiles * pairs, 4 * points * pairs) + std::max(moved, added);
}

WinogradChoice choose_winograd(const WinogradSizes& sizes, const target::Target& target) {
  const int64_t lanes = target.lanes(32);
  for (const int64_t channels : {sizes.inputs, sizes.outputs})
    if (channels % lanes != 0) return {0, fmt::format("its {} channels are no multiple of {} lanes", channels, lanes)};
  const double direct = winograd_cycles(sizes, 0, target);
  WinogradChoice best;
  double fewest = direct;
  for (const int64_t tile : {2, 4}) {
    const double cycles = winograd_cycles(sizes, tile, target);
    if (cycles >= fewest) continue;
    fewest = cycles;
    best.tile = tile;
  }
  // Less than a tenth is within what the model does not know.
  if (fewest > 0.9 * direct) best.tile = 0;
  if (best.tile == 0)
    best.why = fmt::format("the direct one takes about {:.2g} cycles, tiles of 2x2 {:.2g}, of 4x4 {:.2g}", direct,
                           winograd_cycles(sizes, 2, target), winograd_cycles(sizes, 4, target));
  return best;
}

}  // namespace lathe::graph
