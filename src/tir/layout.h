// Layouts: the order of a tensor's axes in letters, "NCHW16c", and what a change of layout does to indices and shapes.
#pragma once

#include "ir/build.h"
#include "support/result.h"

namespace lathe::tir {

// An upper-case letter is a primal axis, which is as long as the tensor says. The same letter in lower case is its
// subordinate axis: in "NCHW16c", element k of the tensor's channels lies at k // 16 of C and at k % 16 of c.
struct LayoutAxis {
  char name = 'A';
  int64_t factor = 0;  // the extent of a subordinate axis; 0: primal
};

// No letter stands twice, and every subordinate axis has its primal one, before it or after. A scalar has no axes.
struct Layout {
  std::vector<LayoutAxis> axes;

  std::string name() const;
  // The position of an axis, -1 where there is none of that letter.
  int64_t index_of(char axis) const;
  // The extent of the subordinate axis of that letter, which is given in either case; -1 where there is none.
  int64_t factor_of(char axis) const;
};

// Reads "NCHW16c"; refuses what is no layout, with the column.
support::Result<Layout> parse_layout(std::string_view text);

// Refuses two layouts of different primal axes: neither can be changed into the other.
support::Status convertible(const Layout& from, const Layout& to);

// Where in the layout `to` the element lies that has these indices in `from`; simplified. An index of a subordinate
// axis is taken to be in its range. The layouts are convertible.
support::Result<std::vector<ir::Expr>> convert_indices(const Layout& from, const Layout& to,
                                                       const std::vector<ir::Expr>& indices);

// The smallest shape in `to` that holds a tensor of this shape in `from`; simplified. Where a factor does not divide an
// extent, the primal axis is rounded up and what lies beyond the tensor is padding: C = 30 is [2, 16] by 16c, and that
// is C = 32. Refuses an extent of a subordinate axis that is not its factor. The layouts are convertible.
support::Result<std::vector<ir::Expr>> convert_shape(const Layout& from, const Layout& to,
                                                     const std::vector<ir::Expr>& shape);

}  // namespace lathe::tir
