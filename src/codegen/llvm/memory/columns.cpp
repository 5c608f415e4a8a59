// Columns of squares: lanes of a register buffer that lie in as many vectors, side by side there, become one vector.
// All columns of a square of n by n elements take n log2(n) instructions: each is a path through the same network,
// and what two paths share LLVM finds to be equal.
#include "codegen/llvm/emitter.h"
#include "support/mutation.h"

namespace lathe::codegen {

LATHE_FAULT(llvm_column, "codegen_llvm_test", "a column of a square of vectors is its neighbour");

using namespace ir;  // NOLINT

namespace {

// Processors exchange elements within pieces of so many bits faster than across them.
constexpr int segment_bits = 128;

bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// Units of `unit` elements of the two vectors in turn, within each segment of `segment` elements: those of the
// segments' first halves, or of their second ones.
std::vector<int> interleaved(int lanes, int segment, int unit, bool second_half) {
  std::vector<int> picked;
  for (int s = 0; s < lanes; s += segment)
    for (int u = 0; u < segment / 2; u += unit)
      for (const int from : {0, lanes})
        for (int e = 0; e < unit; ++e) picked.push_back(from + s + (second_half ? segment / 2 : 0) + u + e);
  return picked;
}

// The even segments of the one vector and then of the other, or the odd ones.
std::vector<int> every_second(int lanes, int segment, bool odd) {
  std::vector<int> picked;
  for (const int from : {0, lanes})
    for (int s = odd ? segment : 0; s < lanes; s += 2 * segment)
      for (int e = 0; e < segment; ++e) picked.push_back(from + s + e);
  return picked;
}

}  // namespace

// Element `number` of each row, in the rows' order; as many rows as each has elements, a power of two.
KernelEmitter::V KernelEmitter::column(std::vector<V> rows, int64_t number, int element_bits) {
  if (support::flip(llvm_column)) number ^= 1;
  const int lanes = static_cast<int>(rows.size());
  const int segment = std::clamp(segment_bits / element_bits, 1, lanes);
  const auto merge = [&](const std::vector<int>& picked) {
    std::vector<V> half;
    for (size_t r = 0; r < rows.size(); r += 2)
      half.push_back(builder_.CreateShuffleVector(rows[r], rows[r + 1], picked));
    rows = std::move(half);
  };
  // In a segment: neighbours that hold one column of ever more rows, among ever fewer columns.
  int64_t place = number % segment;
  for (int unit = 1, columns = segment; unit < segment; unit *= 2) {
    columns /= 2;
    merge(interleaved(lanes, segment, unit, place >= columns));
    if (place >= columns) place -= columns;
  }
  // Of segments: the one that holds the column, of ever more rows.
  for (int64_t at = number / segment; rows.size() > 1; at /= 2) merge(every_second(lanes, segment, at % 2 == 1));
  return rows[0];
}

KernelEmitter::V KernelEmitter::load_apart(const Storage& storage, DType t, const tir::RegisterIndex& at) {
  std::vector<V> rows;
  std::vector<int64_t> places;
  bool is_square = is_power_of_two(at.lanes);
  for (int64_t lane = 0; lane < at.lanes; ++lane) {
    const int64_t element = at.first + lane * at.stride;
    for (const Storage::Chunk& chunk : storage.chunks) {
      if (element < chunk.first || element >= chunk.first + chunk.count) continue;
      rows.push_back(builder_.CreateLoad(chunk.slot->getAllocatedType(), chunk.slot));
      places.push_back(element - chunk.first);
      is_square = is_square && chunk.count == at.lanes && places.back() == places.front();
    }
  }
  support::require(static_cast<int64_t>(rows.size()) == at.lanes, "an access of a register buffer has no chunk");
  if (is_square && at.lanes > 1) return column(std::move(rows), places.front(), static_cast<int>(t.storage_bits()));
  V v = llvm::PoisonValue::get(register_type(t));
  for (size_t lane = 0; lane < rows.size(); ++lane) {
    const V one = lanes_of(rows[lane]) == 1
                      ? rows[lane]
                      : builder_.CreateExtractElement(rows[lane], static_cast<uint64_t>(places[lane]));
    v = lanes_of(v) == 1 && at.lanes == 1 ? one : builder_.CreateInsertElement(v, one, lane);
  }
  return v;
}

}  // namespace lathe::codegen
