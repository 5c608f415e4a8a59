// IndexMap: a function from the indices of a buffer, or the variables of a block, to others.
#pragma once

#include "schedule/program.h"

namespace lathe::schedule {

// As a Python lambda: "lambda i0, i1: (i1, i0 // 4, i0 % 4)".
struct IndexMap {
  std::vector<Var> from;
  std::vector<Expr> to;  // sums, products, and quotients and remainders by positive constants

  std::vector<Expr> operator()(const std::vector<Expr>& indices) const;
  // Its variables under names of their own, so that two maps are equal where their texts are.
  std::string text() const;
  friend bool operator==(const IndexMap& a, const IndexMap& b) { return a.text() == b.text(); }
};

Result<IndexMap> parse_index_map(std::string_view text);
// Index i is what index axes[i] was; `axes` is an order of 0, 1, ….
IndexMap permutation(const std::vector<int64_t>& axes);

// What a map makes of a box.
struct Image {
  std::vector<Expr> extents;    // of the smallest box from 0 that holds all of it
  bool whole = false;           // the image is known to be all of that box
  std::vector<Expr> preimages;  // the map's variables in terms of `outputs`; empty where no inverse is known
};

// What must show that a map is one to one: its inverse; else that no two indices go to the same; else the caller's
// word, as long as no such two are found.
enum class OneToOne : uint8_t { by_inverse, by_pairs, by_word };

// The image of the box from 0 of these extents, at `outputs`; a reason where the map is not one to one, or where that
// does not show.
Result<Image> image_of(const IndexMap& map, const std::vector<Expr>& extents, const std::vector<Expr>& outputs,
                       OneToOne shown = OneToOne::by_inverse);

}  // namespace lathe::schedule
