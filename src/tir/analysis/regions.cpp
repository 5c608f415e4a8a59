#include "tir/analysis/regions.h"

#include "ir/match.h"
#include "tir/analysis/effects.h"
#include "tir/analysis/loop_exits.h"
#include "tir/intrinsics/context.h"
#include "tir/rewrite.h"

namespace lathe::tir {
namespace {

Interval point(const Expr& e) { return {e, e}; }
bool is_point(const Interval& i) { return i.min == i.max; }

std::optional<Interval> scaled(const Interval& a, const Expr& factor) {
  const auto value = as_int(factor);
  if (is_point(a)) return point(mul(a.min, factor));
  if (!value) {
    // A size is never negative, and neither is a product of sizes.
    const std::function<bool(const Expr&)> size = [&](const Expr& e) -> bool {
      if (const auto* v = e.as<VarNode>()) return v->is_size;
      if (const auto* product = e.as<Mul>()) return size(product->a) && size(product->b);
      const auto imm = as_int(e);
      return imm && *imm >= 0;
    };
    if (!size(factor)) return std::nullopt;
    return Interval{mul(a.min, factor), mul(a.max, factor)};
  }
  if (*value >= 0) return Interval{mul(a.min, factor), mul(a.max, factor)};
  return Interval{mul(a.max, factor), mul(a.min, factor)};
}

bool mentions(const Expr& e, const Domains& domains) {
  bool found = false;
  post_order(e, [&](const NodeRef& n) {
    if (const auto* v = n.as<VarNode>()) found |= domains.count(v) != 0;
  });
  return found;
}

}  // namespace

std::optional<Interval> interval_of(const Expr& e, const Domains& domains) {
  if (!mentions(e, domains)) return point(e);
  using Bounds = std::optional<Interval>;
  const auto both = [&](const auto& n, auto combine) -> Bounds {
    const Bounds a = interval_of(n.a, domains), b = interval_of(n.b, domains);
    if (!a || !b) return std::nullopt;
    return combine(*a, *b);
  };
  return match(
      e,
      [&](const VarNode& n) -> Bounds {
        const Range& range = domains.at(&n);
        // The range itself may depend on variables further out.
        const Bounds low = interval_of(range.min, domains);
        const Bounds high = interval_of(sub(add(range.min, range.extent), constant(n.dtype, 1)), domains);
        if (!low || !high) return std::nullopt;
        return Interval{low->min, high->max};
      },
      [&](const Add& n) {
        return both(
            n, [](const Interval& a, const Interval& b) { return Bounds({add(a.min, b.min), add(a.max, b.max)}); });
      },
      [&](const Sub& n) {
        return both(
            n, [](const Interval& a, const Interval& b) { return Bounds({sub(a.min, b.max), sub(a.max, b.min)}); });
      },
      [&](const Mul& n) {
        return both(n, [](const Interval& a, const Interval& b) -> Bounds {
          if (is_point(b)) return scaled(a, b.min);
          if (is_point(a)) return scaled(b, a.min);
          return std::nullopt;
        });
      },
      [&](const FloorDiv& n) {
        return both(n, [](const Interval& a, const Interval& b) -> Bounds {
          const auto divisor = as_int(b.min);
          if (!is_point(b) || !divisor || *divisor <= 0) return std::nullopt;
          return Interval{floordiv(a.min, b.min), floordiv(a.max, b.min)};
        });
      },
      [&](const FloorMod& n) {
        return both(n, [](const Interval& a, const Interval& b) -> Bounds {
          const auto divisor = as_int(b.min), low = as_int(a.min), high = as_int(a.max);
          if (!is_point(b) || !divisor || *divisor <= 0) return std::nullopt;
          // Within one period the remainder is monotone.
          if (low && high && *low >= 0 && *low / *divisor == *high / *divisor)
            return Interval{floormod(a.min, b.min), floormod(a.max, b.min)};
          return Interval{constant(b.min->dtype, 0), sub(b.min, constant(b.min->dtype, 1))};
        });
      },
      [&](const Min& n) {
        return both(
            n, [](const Interval& a, const Interval& b) { return Bounds({min(a.min, b.min), min(a.max, b.max)}); });
      },
      [&](const Max& n) {
        return both(
            n, [](const Interval& a, const Interval& b) { return Bounds({max(a.min, b.min), max(a.max, b.max)}); });
      },
      [&](const Cast& n) -> Bounds {
        const Bounds a = interval_of(n.value, domains);
        if (!a || !n.dtype.is_integer() || !n.value->dtype.is_integer()) return std::nullopt;
        return Interval{cast(n.dtype, a->min), cast(n.dtype, a->max)};
      },
      [&](const ExprNode&) -> Bounds { return std::nullopt; });
}

namespace {

// The union of two intervals where their distance is known, else nothing.
std::optional<Interval> hull(const Interval& a, const Interval& b) {
  const auto lesser = [](const Expr& x, const Expr& y, bool smaller) -> std::optional<Expr> {
    if (structural_equal(x, y)) return x;
    if (const auto p = as_int(x), q = as_int(y); p && q)
      return constant(x->dtype, smaller ? std::min(*p, *q) : std::max(*p, *q));
    // x + c against x.
    const auto split = [](const Expr& e) -> std::pair<Expr, int64_t> {
      if (const auto* sum = e.as<Add>())
        if (const auto c = as_int(sum->b)) return {sum->a, *c};
      if (const auto* difference = e.as<Sub>())
        if (const auto c = as_int(difference->b)) return {difference->a, -*c};
      return {e, 0};
    };
    const auto [base_x, offset_x] = split(x);
    const auto [base_y, offset_y] = split(y);
    if (!structural_equal(base_x, base_y)) return std::nullopt;
    return (offset_x < offset_y) == smaller ? x : y;
  };
  const auto low = lesser(a.min, b.min, true), high = lesser(a.max, b.max, false);
  if (!low || !high) return std::nullopt;
  return Interval{*low, *high};
}

class RegionCollection {
 public:
  struct Access {
    Buffer buffer;
    std::vector<std::optional<Interval>> box;  // nothing: the whole dimension
  };
  std::vector<Access> reads, writes;
  Domains domains;
  // Only what is touched whenever the statement runs: not what a condition or a predicate may keep away, and of nested
  // blocks what their bodies touch, whatever they declare.
  bool certain = false;
  bool addresses_touch = true;

  void collect(const NodeRef& node) {
    if (!node) return;
    if (const auto* loop = node.as<For>()) {
      collect(loop->min);
      collect(loop->extent);
      if (is_int(loop->extent, 0)) return;  // its body never runs
      domains[loop->loop_var.get()] = {loop->min, loop->extent};
      collect(loop->body);
      return;
    }
    if (const auto* let = node.as<LetStmt>()) return bound(let->var, let->value, let->body);
    if (const auto* let = node.as<Let>()) return bound(let->var, let->value, let->body);
    if (const auto* declare = node.as<DeclBuffer>()) local_.insert(declare->buffer->data.get());
    if (const auto* allocate = node.as<Allocate>()) local_.insert(allocate->buffer_var.get());
    if (const auto* constant = node.as<AllocateConst>()) local_.insert(constant->buffer_var.get());
    if (const auto* realize = node.as<BlockRealize>()) return certain ? inside(*realize) : nested(*realize);
    if (const auto* call = node.as<Call>(); call && is_hint(*call)) return;
    if (certain && is_choice(node)) return;
    if (const auto* call = node.as<Call>(); call && call->op == &intrinsic::address_of && !addresses_touch) return;
    if (const auto* call = node.as<Call>();
        call && (call->op == &intrinsic::call_function || call->op == &intrinsic::call_packed) && addresses_touch)
      passed(*call);
    if (const auto* load = node.as<BufferLoad>()) {
      node->node_class().for_each_child(*node, [&](const NodeRef& c) {
        if (!c.is<BufferNode>()) collect(c);
      });
      add_access(reads, load->buffer, load->indices);
      return;
    }
    if (const auto* store = node.as<BufferStore>()) {
      node->node_class().for_each_child(*node, [&](const NodeRef& c) {
        if (!c.is<BufferNode>()) collect(c);
      });
      add_access(writes, store->buffer, store->indices);
      return;
    }
    if (node->node_class().has_identity) return;
    node->node_class().for_each_child(*node, [&](const NodeRef& c) { collect(c); });
  }

  std::vector<BufferRegion> regions(const std::vector<Access>& accesses) const {
    std::vector<BufferRegion> result;
    for (const Access& access : accesses) {
      if (local_.count(access.buffer->data.get())) continue;
      if (certain && std::any_of(access.box.begin(), access.box.end(), [](const auto& box) { return !box; })) continue;
      std::vector<Range> ranges;
      for (size_t d = 0; d < access.box.size(); ++d) {
        const Expr& extent = access.buffer->shape[d];
        if (!access.box[d]) {
          ranges.push_back({constant(extent->dtype, 0), extent});
          continue;
        }
        const Interval& box = *access.box[d];
        const Expr one = constant(box.min->dtype, 1);
        ranges.push_back({box.min, is_point(box) ? one : add(distance(box.max, box.min), one)});
      }
      result.push_back(make<BufferRegionNode>(access.buffer, std::move(ranges)));
    }
    return result;
  }

 private:
  static bool is_choice(const NodeRef& node) {
    const auto* call = node.as<Call>();
    if (const auto* loop = node.as<For>(); loop && has_loop_exits(loop->body)) return true;
    return node.is<IfThenElse>() || node.is<While>() || (call && call->op == &intrinsic::if_then_else);
  }

  void inside(const BlockRealize& realize) {
    const Block& block = *realize.block;
    if (!is_int(realize.predicate, 1) || !has_instances(block)) return;
    if (!block.match_buffers.empty() || tensor_intrin_of(block) || block.annotations.contains(hidden_access_key))
      return;
    for (size_t k = 0; k < block.iter_vars.size() && k < realize.iter_values.size(); ++k) {
      const DType dtype = realize.iter_values[k]->dtype;
      domains[block.iter_vars[k]->var.get()] = {realize.iter_values[k],
                                                constant(dtype.is_integer() ? dtype : DType::int64(), 1)};
    }
    for (const Buffer& buffer : block.alloc_buffers) local_.insert(buffer->data.get());
    collect(block.body);
  }

  // a - b, with what both have in common cancelled.
  static Expr distance(const Expr& a, const Expr& b) {
    std::vector<std::pair<Expr, int64_t>> terms;
    int64_t offset = 0;
    const std::function<void(const Expr&, int64_t)> gather = [&](const Expr& e, int64_t sign) {
      if (const auto value = as_int(e)) {
        offset += sign * *value;
      } else if (const auto* sum = e.as<Add>()) {
        gather(sum->a, sign);
        gather(sum->b, sign);
      } else if (const auto* difference = e.as<Sub>()) {
        gather(difference->a, sign);
        gather(difference->b, -sign);
      } else {
        for (auto& [term, count] : terms)
          if (structural_equal(term, e)) {
            count += sign;
            return;
          }
        terms.emplace_back(e, sign);
      }
    };
    gather(a, 1);
    gather(b, -1);
    Expr result = constant(a->dtype, offset);
    for (const auto& [term, count] : terms)
      if (count != 0) result = add(mul(term, constant(a->dtype, count)), result);
    return result;
  }

  void bound(const Var& var, const Expr& value, const NodeRef& body) {
    collect(value);
    domains[var.get()] = {value, constant(value->dtype.is_integer() ? value->dtype : DType::int64(), 1)};
    collect(body);
  }

  void nested(const BlockRealize& realize) {
    VarMap values;
    for (size_t k = 0; k < realize.block->iter_vars.size() && k < realize.iter_values.size(); ++k)
      values[realize.block->iter_vars[k]->var] = realize.iter_values[k];
    for (const Expr& value : realize.iter_values) collect(value);
    collect(realize.predicate);
    if (!has_instances(*realize.block)) return;
    const auto declared = [&](std::vector<Access>& into, const std::vector<BufferRegion>& regions) {
      for (const BufferRegion& region : regions) {
        std::vector<std::optional<Interval>> box;
        for (const Range& range : region->region) {
          const auto low = interval_of(substitute(range.min, values), domains);
          const Expr last = sub(add(range.min, range.extent), constant(range.min->dtype, 1));
          const auto high = interval_of(substitute(is_int(range.extent, 1) ? range.min : last, values), domains);
          box.push_back(low && high ? std::optional(Interval{low->min, high->max}) : std::nullopt);
        }
        merge(into, region->buffer, std::move(box));
      }
    };
    declared(reads, realize.block->reads);
    declared(writes, realize.block->writes);
  }

  // What is done with memory that a function is given is not known: all of it may be read and written.
  void passed(const Call& call) {
    pre_order(NodeRef(&call), [&](const NodeRef& n) {
      const auto* address = n.as<Call>();
      const auto* element =
          address && address->op == &intrinsic::address_of ? address->args[0].as<BufferLoad>() : nullptr;
      if (!element) return true;
      const std::vector<std::optional<Interval>> whole(element->buffer->shape.size());
      reads.push_back({element->buffer, whole});
      writes.push_back({element->buffer, whole});
      return false;
    });
  }

  static bool loads(const Expr& index) {
    bool found = false;
    pre_order(index, [&](const NodeRef& n) {
      found |= n.is<BufferLoad>();
      return !found;
    });
    return found;
  }

  // Whether the index is certainly each of its bounds at some time: a sum in which no variable comes twice, those that
  // ranges begin at counted too. How long a range is may not depend on another variable: the longest need not be where
  // the rest is largest.
  bool takes_its_bounds(const Expr& index) const {
    std::unordered_set<const VarNode*> seen;
    return takes_its_bounds(index, seen) || !mentions(index, domains);
  }
  bool takes_its_bounds(const Expr& index, std::unordered_set<const VarNode*>& seen) const {
    bool does = true;
    pre_order(index, [&](const NodeRef& n) {
      if (const auto* v = n.as<VarNode>()) {
        const auto it = domains.find(v);
        if (it != domains.end())
          does = does && seen.insert(v).second && takes_its_bounds(it->second.min, seen) &&
                 !mentions(it->second.extent, domains);
      }
      does = does && (n.is<VarNode>() || n.is<IntImm>() || n.is<Add>() || n.is<Sub>() || n.is<Mul>());
      return does;
    });
    return does;
  }

  void add_access(std::vector<Access>& into, const Buffer& buffer, const std::vector<Expr>& indices) {
    std::vector<std::optional<Interval>> box;
    for (const Expr& index : indices) {
      if (loads(index)) {  // known only when the block runs
        box.push_back(std::nullopt);
      } else if (index->dtype.is_scalar()) {
        box.push_back(certain && !takes_its_bounds(index) ? std::nullopt : interval_of(index, domains));
      } else if (const auto* ramp = index.as<Ramp>(); ramp && as_int(ramp->stride).value_or(-1) >= 0) {
        const auto base = interval_of(ramp->base, domains);
        const Expr span = mul(ramp->stride, constant(ramp->stride->dtype, ramp->lanes - 1));
        box.push_back(base ? std::optional(Interval{base->min, add(base->max, span)}) : std::nullopt);
      } else {
        box.push_back(std::nullopt);
      }
    }
    merge(into, buffer, std::move(box));
  }

  static void merge(std::vector<Access>& into, const Buffer& buffer, std::vector<std::optional<Interval>> box) {
    for (Access& access : into) {
      if (access.buffer != buffer || access.box.size() != box.size()) continue;
      for (size_t d = 0; d < box.size(); ++d)
        access.box[d] = access.box[d] && box[d] ? hull(*access.box[d], *box[d]) : std::nullopt;
      return;
    }
    into.push_back({buffer, std::move(box)});
  }

  std::unordered_set<const VarNode*> local_;
};

}  // namespace

Regions access_regions(const Stmt& s) {
  RegionCollection collection;
  collection.collect(s);
  return {collection.regions(collection.reads), collection.regions(collection.writes)};
}

bool has_instances(const Block& block) {
  return std::none_of(block.iter_vars.begin(), block.iter_vars.end(),
                      [](const IterVar& iter) { return is_int(iter->dom.extent, 0); });
}

Regions certain_regions(const Block& block) {
  RegionCollection collection;
  collection.certain = true;
  collection.addresses_touch = false;
  collection.collect(block.body);
  return {collection.regions(collection.reads), collection.regions(collection.writes)};
}

Regions infer_regions(const Block& block, bool addresses_touch) {
  RegionCollection collection;
  collection.addresses_touch = addresses_touch;
  collection.collect(block.body);
  if (block.init) {
    RegionCollection init;
    init.addresses_touch = addresses_touch;
    init.collect(block.init);
    for (const auto& written : init.writes)
      std::erase_if(collection.reads, [&](const auto& read) { return read.buffer == written.buffer; });
    collection.collect(block.init);
  }
  Regions regions{collection.regions(collection.reads), collection.regions(collection.writes)};
  // An alias counts as its source.
  for (const MatchBufferRegion& match : block.match_buffers) {
    const auto redirect = [&](std::vector<BufferRegion>& list) {
      bool used = false, known = false;
      std::erase_if(list, [&](const BufferRegion& r) { return r->buffer == match->buffer && (used = true); });
      for (const BufferRegion& r : list) known |= r->buffer == match->source->buffer;
      if (used && !known) list.push_back(match->source);
    };
    redirect(regions.reads);
    redirect(regions.writes);
  }
  std::erase_if(regions.reads, [&](const BufferRegion& r) {
    return std::find(block.alloc_buffers.begin(), block.alloc_buffers.end(), r->buffer) != block.alloc_buffers.end();
  });
  std::erase_if(regions.writes, [&](const BufferRegion& r) {
    return std::find(block.alloc_buffers.begin(), block.alloc_buffers.end(), r->buffer) != block.alloc_buffers.end();
  });
  return regions;
}

}  // namespace lathe::tir
