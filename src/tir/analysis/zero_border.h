// What a block knows of the zeros around a tensor that it reads: the products of these may be left out.
#pragma once

#include "tir/stmt.h"

namespace lathe::tir {

// The annotation of a block that sums products with elements of a buffer: {"buffer": its name, "before": […], "after":
// […]}, a number for each dimension of the buffer. So many elements at the beginning and at the end of a dimension are
// zeros, and what they are multiplied by is finite. It is believed.
inline constexpr const char* zero_border_key = "zero_border";

struct ZeroBorder {
  std::vector<int64_t> before, after;
};

ir::Value value_of(const ZeroBorder& border, const std::string& buffer);

// The border that the block names, and the product's factor that reads it; nothing where it has none, or where it is
// not of this block any more: another rank, no such product in `c = c + a * b`.
struct BorderedRead {
  Ref<ir::BufferLoad> load;
  ZeroBorder border;
};
std::optional<BorderedRead> bordered_read(const Block& block);

// The annotation, if there is one, speaks of `buffer` from here on, whatever name it had; of none where it is null.
void rename_zero_border(ir::Attributes& annotations, const Buffer& buffer);
// The statement whose annotations that speak of `from` speak of `to` from here on, where the same elements lie in the
// same places; are gone where it is null.
Stmt with_zero_border_of(const Stmt& s, const Buffer& from, const Buffer& to);
// The statement without the annotations that speak of `buffer`, whose elements lie elsewhere now.
inline Stmt without_zero_border(const Stmt& s, const Buffer& buffer) {
  return with_zero_border_of(s, buffer, Buffer());
}

}  // namespace lathe::tir
