// What random nests are made of: extents, axes with loops of their own, blocks over them, buffers.
#pragma once

#include <random>

#include "schedule/testing/programs.h"

namespace lathe::schedule::testing {

class NestSource {
 public:
  explicit NestSource(std::mt19937& random);

  // A block's axis: the loop (or two, with a predicate where they run over the end) and the block's variable.
  struct Along {
    Expr extent;
    IterType type = IterType::spatial;
    Var variable;
    struct Loop {
      Var v;
      Expr min, extent;
    };
    std::vector<Loop> loops;
    Expr value;
    Expr inside;  // null: always
  };

  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  // From 1 to 7.
  int64_t small() { return 1 + static_cast<int64_t>(pick(7)); }
  // Sometimes one of the two symbols of the program.
  Expr extent();

  // What is computed with: all of a program's own values are of one type.
  DType element() const { return element_; }
  bool is_float() const { return element_.is_floating(); }
  // A constant; of a float one that makes results round.
  Expr number(int64_t value) const;

  Along along(const std::string& name, const Expr& extent, IterType type = IterType::spatial);
  // The same loops for another block.
  static Along again(const Along& axis, const std::string& name);
  // The block run over its axes; the first `open` axes' loops are left to the caller.
  Stmt block(const std::string& name, const std::vector<Along>& axes, Stmt body, Stmt init = {}, size_t open = 0,
             std::vector<Buffer> own = {}, std::vector<MatchBufferRegion> views = {});
  Stmt around(const std::vector<Along>& axes, Stmt s);
  Stmt store(const Buffer& buffer, Expr value, std::vector<Expr> at);

  // A buffer of the program's interface: whatever is read before it is written then has values.
  Buffer memory(const std::string& name, std::vector<Expr> shape);
  Buffer source(std::vector<Expr> shape);
  // One of numbers to find elements by.
  Buffer numbers(std::vector<Expr> shape);
  // Mostly inside of the program, sometimes an output.
  Buffer middle(const std::string& name, std::vector<Expr> shape);

  Builder builder;
  std::vector<Var> symbols;

 private:
  std::mt19937& random_;
  DType element_;
  size_t sources_ = 0;
};

// The kinds of nests, each under a name of its own: loops that carry dependences, bodies that are more than a store,
// and memory seen in other ways than element by element.
using NestKind = void (*)(NestSource& source, const std::string& name);
struct NamedNest {
  std::string_view name;
  NestKind make;
};
std::span<const NamedNest> dependent_nests();
std::span<const NamedNest> nests_with_bodies();
std::span<const NamedNest> nests_with_views();

}  // namespace lathe::schedule::testing
