#include "tir/analysis/identify_memcpy.h"

#include "arith/affine.h"
#include "ir/conditions.h"
#include "ir/visit.h"
#include "support/mutation.h"

namespace lathe::tir {

LATHE_FAULT(identify_memcpy_takes_any_order, "tir_test", "a transposition is taken for a copy");

namespace {

using arith::Analyzer;
using arith::Domain;

// One side of a copy: where the elements are.
struct Side {
  Buffer buffer;
  std::vector<Expr> indices;  // in the nest's variables and those around
  Expr offset;                // from `data`, in elements
};

// A nest around one store of one load.
struct Nest {
  Domain loops;  // outermost first; the lanes of vectors are the innermost
  std::vector<Expr> conditions;
  Side source, destination;
};

bool is_plain(const Expr& index) {
  if (index->dtype != DType::int64()) return false;
  bool plain = true;
  pre_order(index, [&](const NodeRef& n) {
    plain = plain && !n.is<BufferLoad>() && !n.is<Call>();
    return plain;
  });
  return plain;
}

class NestReader {
 public:
  std::optional<Nest> read(const Stmt& s) {
    const bool readable = statement(s);
    return readable ? std::optional(std::move(nest_)) : std::nullopt;
  }

 private:
  bool statement(const Stmt& s) {
    if (const auto* loop = s.as<For>()) {
      const Expr min = value(loop->min), extent = value(loop->extent);
      // A thread's loop is a launch; a domain that moves with another loop is no box.
      if (loop->kind == ForKind::thread_binding || !is_plain(min) || !is_plain(extent)) return false;
      for (const auto& [outer, range] : nest_.loops)
        if (uses_var(min, outer) || uses_var(extent, outer)) return false;
      if (is_int(extent, 1))
        values_[loop->loop_var] = min;
      else
        nest_.loops.emplace_back(loop->loop_var, Range{min, extent});
      return statement(loop->body);
    }
    if (const auto* let = s.as<LetStmt>()) {
      values_[let->var] = value(let->value);
      return statement(let->body);
    }
    if (const auto* branch = s.as<IfThenElse>()) {
      if (branch->else_case) return false;
      nest_.conditions.push_back(value(branch->condition));
      return statement(branch->then_case);
    }
    if (const auto* realize = s.as<BlockRealize>()) {
      const Block& block = *realize->block;
      if (block.init || !block.alloc_buffers.empty() || !block.match_buffers.empty()) return false;
      for (size_t k = 0; k < block.iter_vars.size() && k < realize->iter_values.size(); ++k)
        values_[block.iter_vars[k]->var] = value(realize->iter_values[k]);
      nest_.conditions.push_back(value(realize->predicate));
      return statement(block.body);
    }
    const auto* store = s.as<BufferStore>();
    return store && copy(*store);
  }

  bool copy(const BufferStore& store) {
    const auto* load = store.value.as<BufferLoad>();
    if (!load || load->predicate || store.predicate || load->buffer->dtype != store.buffer->dtype) return false;
    std::vector<Expr> from = load->indices, to = store.indices;
    if (!open_lanes(from, to)) return false;
    auto source = side(load->buffer, from), destination = side(store.buffer, to);
    if (!source || !destination) return false;
    nest_.source = *std::move(source);
    nest_.destination = *std::move(destination);
    return true;
  }

  // Ramps of the last indices become indices of a loop over their lanes.
  bool open_lanes(std::vector<Expr>& from, std::vector<Expr>& to) {
    const auto* loaded = from.empty() ? nullptr : from.back().as<Ramp>();
    const auto* stored = to.empty() ? nullptr : to.back().as<Ramp>();
    if (!loaded && !stored) return true;
    if (!loaded || !stored || loaded->lanes != stored->lanes || loaded->base->dtype != DType::int64() ||
        stored->base->dtype != DType::int64())
      return false;
    const Var lane = var("lane");
    nest_.loops.emplace_back(lane, Range{int64(0), int64(loaded->lanes)});
    from.back() = loaded->base + lane * loaded->stride;
    to.back() = stored->base + lane * stored->stride;
    return true;
  }

  std::optional<Side> side(const Buffer& buffer, const std::vector<Expr>& indices) {
    if (indices.size() != buffer->shape.size()) return std::nullopt;
    Side side{buffer, {}, {}};
    Expr offset = int64(0);
    for (size_t d = 0; d < indices.size(); ++d) {
      const Expr index = value(indices[d]), extent = value(buffer->shape[d]);
      if (!is_plain(index) || extent->dtype != DType::int64()) return std::nullopt;
      if (!buffer->strides.empty() && buffer->strides[d]->dtype != DType::int64()) return std::nullopt;
      offset = buffer->strides.empty() ? offset * extent + index : offset + index * value(buffer->strides[d]);
      side.indices.push_back(index);
    }
    if (buffer->elem_offset) offset = offset + cast(DType::int64(), value(buffer->elem_offset));
    side.offset = offset;
    return side;
  }

  Expr value(const Expr& e) const { return values_.empty() ? e : substitute(e, values_); }

  Nest nest_;
  VarMap values_;
};

// The box of elements that the nest touches on one side, where there are as many in it as the nest has iterations: each
// is touched once, so that the box is what is touched.
BufferRegion box_of(const Side& side, const Domain& loops, const Expr& iterations, Analyzer& known) {
  std::vector<Range> region;
  Expr volume = int64(1);
  for (size_t d = 0; d < side.indices.size(); ++d) {
    const arith::Interval interval = arith::evaluate_interval(side.indices[d], loops, known);
    if (!interval.bounded()) return {};
    Range range = interval.range(known);
    const Expr end = range.min + range.extent;
    if (known.can_prove(range.min < 0) || known.can_prove(end > side.buffer->shape[d])) return {};
    volume = volume * range.extent;
    region.push_back(std::move(range));
  }
  if (!known.can_prove_equal(volume, iterations)) return {};
  return make<BufferRegionNode>(side.buffer, std::move(region));
}

// What is known above a nest.
struct Around {
  Domain loops;
  std::unordered_map<Var, Var> viewed;  // from a view's memory to what it is a part of
};

bool may_overlap(const Nest& nest, const Expr& distance, const Expr& iterations, const Around& around,
                 Analyzer& known) {
  const Var &from = nest.source.buffer->data, &to = nest.destination.buffer->data;
  if (from == to) return !known.can_prove(distance >= iterations) && !known.can_prove(distance <= 0 - iterations);
  const auto root = [&](Var memory) {
    for (auto it = around.viewed.find(memory); it != around.viewed.end(); it = around.viewed.find(memory))
      memory = it->second;
    return memory;
  };
  return root(from) == root(to);
}

// The copy that the nest is, or nothing.
std::optional<Memcpy> memcpy_of(const Ref<For>& loop, const Around& around) {
  const std::optional<Nest> nest = NestReader().read(loop);
  if (!nest) return std::nullopt;
  Analyzer known;
  for (const auto& [variable, range] : around.loops) known.bind(variable, range);
  Expr iterations = int64(1);
  for (const auto& [variable, range] : nest->loops) {
    iterations = iterations * range.extent;
    if (known.can_prove(range.extent <= 0)) return std::nullopt;  // it copies nothing
  }
  const auto& [loops, conditions, source, destination] = *nest;
  VarMap first;
  for (const auto& [variable, range] : loops) first[variable] = range.min;
  const Expr offset = source.offset - destination.offset, distance = known.simplify(substitute(offset, first));
  {
    const Analyzer::Scope scope(known);
    for (const auto& [variable, range] : loops) known.bind(variable, range);
    for (const Expr& condition : conditions)
      for (const Expr& part : conjuncts(condition))
        if (!known.can_prove(part)) return std::nullopt;
    if (!known.can_prove_equal(offset, distance) && !support::flip(identify_memcpy_takes_any_order))
      return std::nullopt;
  }
  if (may_overlap(*nest, distance, iterations, around, known)) return std::nullopt;

  // The iterations number the elements from a first one on, without gaps.
  const auto map = arith::detect_affine({destination.offset}, loops, {}, known);
  if (!map.ok() || !map->bijective()) return std::nullopt;
  const arith::AffineSum& sum = map->indices[0];
  if (!sum.digits.empty() && !is_int(sum.digits.back().scale, 1)) return std::nullopt;

  Memcpy copy{box_of(source, loops, iterations, known), box_of(destination, loops, iterations, known)};
  return copy.source && copy.destination ? std::optional(std::move(copy)) : std::nullopt;
}

class Copies {
 public:
  std::vector<Memcpy> found;

  void visit(const NodeRef& node) {
    if (!node || node->node_class().family == ExprNode::family || node->node_class().has_identity) return;
    const auto* loop = node.as<For>();
    if (loop)
      if (auto copy = memcpy_of(Ref<For>(loop), around_)) return found.push_back(*std::move(copy));
    if (loop) around_.loops.emplace_back(loop->loop_var, Range{loop->min, loop->extent});
    if (const auto* view = node.as<MatchBufferRegionNode>())
      around_.viewed.emplace(view->buffer->data, view->source->buffer->data);
    node->node_class().for_each_child(*node, [&](const NodeRef& child) { visit(child); });
    if (loop) around_.loops.pop_back();
  }

 private:
  Around around_;
};

}  // namespace

std::vector<Memcpy> identify_memcpy(const Stmt& s) {
  Copies copies;
  copies.visit(s);
  return std::move(copies.found);
}

}  // namespace lathe::tir
