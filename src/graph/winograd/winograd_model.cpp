#include "graph/winograd/winograd_model.h"

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

// What an output channel is computed with: its weights [inputs][9], and these transformed, [inputs][points].
struct Channel {
  std::vector<float> weights, points;
};
Channel channel_of(const Winograd& w, const ir::TensorDataNode& weights, int64_t o) {
  std::vector<std::array<double, 3>> matrix;
  for (int64_t p = 0; p < w.size; ++p) matrix.push_back({w.kernel(p, 0), w.kernel(p, 1), w.kernel(p, 2)});
  Channel result;
  const int64_t inputs = weights.shape[1];
  for (int64_t e = 0; e < inputs * 9; ++e)
    result.weights.push_back(static_cast<float>(ir::float_at(weights, o * inputs * 9 + e)));
  for (size_t i = 0; i < static_cast<size_t>(inputs); ++i)
    for (const auto& row : matrix)
      for (const auto& column : matrix) {
        double sum = 0;
        for (size_t a = 0; a < 3; ++a)
          for (size_t b = 0; b < 3; ++b) sum += row[a] * column[b] * result.weights[9 * i + 3 * a + b];
        result.points.push_back(static_cast<float>(sum));
      }
  return result;
}

}  // namespace

WinogradError winograd_error(const ir::TensorDataNode& weights, int64_t tile) {
  const Winograd w = *ops::winograd(tile);
  constexpr int64_t most_channels = 16, tiles = 4;
  const int64_t outputs = weights.shape[0];
  const auto inputs = static_cast<size_t>(weights.shape[1]), side = static_cast<size_t>(w.size);
  const auto made = static_cast<size_t>(tile);
  std::vector<Channel> channels;
  const int64_t step = std::max<int64_t>(1, (outputs + most_channels - 1) / most_channels);
  for (int64_t o = 0; o < outputs; o += step) channels.push_back(channel_of(w, weights, o));

  std::mt19937 random(1);
  double largest = 0, apart = 0, direct_apart = 0;
  for (int64_t t = 0; t < tiles; ++t) {
    std::vector<std::vector<float>> d(inputs), points;
    for (std::vector<float>& square : d) {
      for (size_t e = 0; e < side * side; ++e) square.push_back(static_cast<float>(random()) / 2147483648.0F - 1.0F);
      points.push_back(
          both_ways(square, side, [&](const auto& line) { return ops::winograd_input(w, line, of_floats); }));
    }
    for (const Channel& channel : channels) {
      std::vector<float> products(side * side, 0.0F), direct(made * made, 0.0F);
      std::vector<double> exact(made * made, 0.0);
      for (size_t i = 0; i < inputs; ++i) {
        for (size_t e = 0; e < products.size(); ++e) products[e] += points[i][e] * channel.points[i * side * side + e];
        for (size_t k = 0; k < 9; ++k) {
          const float weight = channel.weights[9 * i + k];
          for (size_t r = 0; r < made; ++r)
            for (size_t c = 0; c < made; ++c) {
              const float x = d[i][(r + k / 3) * side + c + k % 3];
              direct[r * made + c] += x * weight;
              exact[r * made + c] += static_cast<double>(x) * weight;
            }
        }
      }
      const std::vector<float> y =
          both_ways(products, side, [&](const auto& line) { return ops::winograd_output(w, line, of_floats); });
      for (size_t e = 0; e < exact.size(); ++e) {
        largest = std::max(largest, std::abs(exact[e]));
        apart = std::max(apart, std::abs(y[e] - exact[e]));
        direct_apart = std::max(direct_apart, std::abs(direct[e] - exact[e]));
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
