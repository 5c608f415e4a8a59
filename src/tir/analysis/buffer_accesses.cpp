#include "tir/analysis/buffer_accesses.h"

#include "arith/analyzer.h"
#include "tir/analysis/effects.h"
#include "tir/analysis/step.h"
#include "tir/rewrite.h"

namespace lathe::tir {
namespace {

class AccessCollection {
 public:
  explicit AccessCollection(std::unordered_set<const BufferNode*>* opaque) : opaque_(opaque) {}
  std::vector<BufferAccess> accesses;

  void collect(const NodeRef& node) {
    if (!node || node->node_class().has_identity) return;
    if (const auto* loop = node.as<For>()) {
      collect(loop->min);
      collect(loop->extent);
      loops_.push_back(Ref<For>(loop));
      collect(loop->body);
      loops_.pop_back();
    } else if (const auto* branch = node.as<IfThenElse>()) {
      collect(branch->condition);
      for (const Stmt& own : {branch->then_case, branch->else_case}) {
        branches_.push_back(++branches_seen_);
        collect(own);
        branches_.pop_back();
      }
    } else if (const auto* repeat = node.as<While>()) {
      const bool before = std::exchange(conditional_, true);
      collect(repeat->condition);
      collect(repeat->body);
      conditional_ = before;
    } else if (const auto* realize = node.as<BlockRealize>()) {
      instance(*realize);
    } else if (const auto* load = node.as<BufferLoad>()) {
      for (const Expr& index : load->indices) collect(index);
      add_access(load->buffer, load->indices, false);
      if (load->predicate) accesses.back().conditional = true;
    } else if (const auto* store = node.as<BufferStore>()) {
      collect(store->value);
      for (const Expr& index : store->indices) collect(index);
      add_access(store->buffer, store->indices, true);
      if (store->predicate) accesses.back().conditional = true;
    } else {
      if (const auto* call = node.as<Call>(); call && is_hint(*call)) return;
      if (const auto* call = node.as<Call>(); call && call->op == &intrinsic::address_of && opaque_)
        if (const auto* element = call->args[0].as<BufferLoad>()) opaque_->insert(element->buffer.get());
      // A let names a value that an index may be made of.
      const auto* let = node.as<LetStmt>();
      if (let) lets_[let->var] = substitute(let->value, lets_);
      node->node_class().for_each_child(*node, [&](const NodeRef& child) { collect(child); });
    }
  }

 private:
  void instance(const BlockRealize& realize) {
    for (const Expr& value : realize.iter_values) collect(value);
    collect(realize.predicate);
    const Block& block = *realize.block;
    for (const MatchBufferRegion& match : block.match_buffers)
      if (opaque_) {
        opaque_->insert(match->source->buffer.get());
        opaque_->insert(match->buffer.get());
      }
    for (size_t k = 0; k < block.iter_vars.size() && k < realize.iter_values.size(); ++k)
      lets_[block.iter_vars[k]->var] = substitute(realize.iter_values[k], lets_);
    const size_t outer_parts = parts_.size();
    add_parts(block.reads, block.annotations.get<Value::List>(explicit_read_region_key), false);
    add_parts(block.writes, block.annotations.get<Value::List>(explicit_write_region_key), true);
    const Expr outer_predicate = predicate_;
    const Ref<Block> outer = block_;
    predicate_ = logical_and(predicate_, substitute(realize.predicate, lets_));
    block_ = realize.block;
    if (block.init) {
      in_init_ = true;
      collect(block.init);
      in_init_ = false;
    }
    const size_t first = accesses.size();
    collect(block.body);
    if (block.init) mark_accumulation(first);
    parts_.resize(outer_parts);
    block_ = outer;
    predicate_ = outer_predicate;
  }

  // What a block says itself that it touches: those of its regions that have these numbers.
  void add_parts(const std::vector<BufferRegion>& regions, const Value::List* numbers, bool is_write) {
    for (const Value& value : numbers ? *numbers : Value::List{}) {
      const auto* number = value.get<int64_t>();
      if (!number || *number < 0 || *number >= static_cast<int64_t>(regions.size())) continue;
      const BufferRegion& region = regions[static_cast<size_t>(*number)];
      std::vector<Range> part;
      for (const Range& range : region->region)
        part.push_back({substitute(range.min, lets_), substitute(range.extent, lets_)});
      parts_.push_back({region->buffer, is_write, std::move(part)});
    }
  }

  void mark_accumulation(size_t first) {
    for (size_t r = first; r < accesses.size(); ++r)
      for (size_t w = r; !accesses[r].is_write && w < accesses.size(); ++w) {
        const BufferAccess& write = accesses[w];
        if (!write.is_write || write.buffer != accesses[r].buffer) continue;
        bool same = write.indices.size() == accesses[r].indices.size();
        for (size_t d = 0; same && d < write.indices.size(); ++d)
          same = structural_equal(write.indices[d], accesses[r].indices[d]);
        accesses[r].accumulates |= same;
      }
  }

  void add_access(const Buffer& buffer, const std::vector<Expr>& indices, bool is_write) {
    BufferAccess access{.buffer = buffer,
                        .is_write = is_write,
                        .loops = loops_,
                        .block = block_,
                        .predicate = predicate_,
                        .branches = branches_,
                        .conditional = conditional_,
                        .in_init = in_init_,
                        .order = accesses.size()};
    for (const Expr& index : indices) access.indices.push_back(substitute(index, lets_));
    for (const Part& part : parts_)
      if (part.buffer == buffer && part.is_write == is_write) access.part = part.region;
    accesses.push_back(std::move(access));
  }

  struct Part {
    Buffer buffer;
    bool is_write;
    std::vector<Range> region;
  };
  std::vector<Part> parts_;
  std::unordered_set<const BufferNode*>* opaque_;
  std::vector<Ref<For>> loops_;
  VarMap lets_;
  Ref<Block> block_;
  Expr predicate_ = boolean(true);
  std::vector<size_t> branches_;
  size_t branches_seen_ = 0;
  bool conditional_ = false, in_init_ = false;
};

// The value of an index in variables whose values are given; nothing where it holds anything else.
std::optional<int64_t> value_of(const Expr& e, const std::unordered_map<const VarNode*, int64_t>& values) {
  VarMap map;
  for (const Var& v : free_vars(e)) {
    const auto it = values.find(v.get());
    if (it == values.end()) return std::nullopt;
    map[v] = constant(v->dtype, it->second);
  }
  return as_int(fold_constants(substitute(e, map)));
}

constexpr int64_t most_points = 2048;  // of an enumeration
constexpr size_t most_boxes = 16;      // that are joined

// Whether the indices, over all iterations of `inner`, fill a whole box: by coefficients where each dimension has
// variables of its own, else point by point.
bool fills_a_box(const std::vector<Expr>& indices, const std::vector<Ref<For>>& inner, arith::Analyzer& known) {
  std::unordered_set<const VarNode*> used;
  bool separate = true;
  for (const Expr& index : indices) {
    std::vector<std::pair<int64_t, int64_t>> terms;  // step, extent
    for (const Ref<For>& loop : inner) {
      if (!uses_var(index, loop->loop_var)) continue;
      const auto step = step_of(index, loop->loop_var, known);
      if (!step || !used.insert(loop->loop_var.get()).second) {
        separate = false;
        break;
      }
      // An extent that is not known may be 1, which reaches no further.
      terms.emplace_back(std::abs(*step), as_int(loop->extent).value_or(1));
    }
    std::sort(terms.begin(), terms.end());
    int64_t reach = 0;
    for (const auto& [step, extent] : terms) {
      if (step > reach + 1) separate = false;
      reach += step * (extent - 1);
    }
    if (!separate) break;
  }
  if (separate) return true;

  int64_t points = 1;
  VarMap origin;
  for (const Ref<For>& loop : inner) {
    const auto extent = as_int(loop->extent), min = as_int(loop->min);
    if (!extent || !min || *min != 0 || (points *= std::max<int64_t>(*extent, 1)) > most_points) return false;
    origin[loop->loop_var] = constant(loop->loop_var->dtype, 0);
  }
  std::vector<Expr> offsets;
  for (const Expr& index : indices) offsets.push_back(known.simplify(index - substitute(index, origin)));
  std::set<std::vector<int64_t>> seen;
  std::vector<int64_t> low(indices.size(), 0), high(indices.size(), 0);
  for (int64_t point = 0; point < points; ++point) {
    std::unordered_map<const VarNode*, int64_t> values;
    int64_t rest = point;
    for (const Ref<For>& loop : inner) {
      const int64_t extent = *as_int(loop->extent);
      if (extent == 0) return false;
      values[loop->loop_var.get()] = rest % extent;
      rest /= extent;
    }
    std::vector<int64_t> at;
    for (size_t d = 0; d < offsets.size(); ++d) {
      const auto value = value_of(offsets[d], values);
      if (!value) return false;
      at.push_back(*value);
      low[d] = std::min(low[d], *value);
      high[d] = std::max(high[d], *value);
    }
    seen.insert(std::move(at));
  }
  int64_t volume = 1;
  for (size_t d = 0; d < low.size(); ++d) volume *= high[d] - low[d] + 1;
  return static_cast<int64_t>(seen.size()) == volume;
}

// Whether a predicate only keeps the indices of a write inside its buffer: then no element that can be read is left
// out.
bool only_clips(const Expr& predicate, const BufferAccess& write, arith::Analyzer& known) {
  if (is_int(predicate, 1)) return true;
  if (const auto* both = predicate.as<And>())
    return only_clips(both->a, write, known) && only_clips(both->b, write, known);
  if (const auto* call = predicate.as<Call>(); call && call->op == &intrinsic::likely)
    return only_clips(call->args[0], write, known);
  for (size_t d = 0; d < write.indices.size(); ++d) {
    const Expr& index = write.indices[d];
    const Expr inside =
        logical_and(ge(index, constant(index->dtype, 0)), lt(index, cast(index->dtype, write.buffer->shape[d])));
    const arith::Analyzer::Constraint in_bounds(known, inside);
    if (known.can_prove(predicate)) return true;
  }
  return false;
}

// Ramps become indices of a loop over their lanes, so that what is said of indices is said of vectors too.
void open_lanes(BufferAccess& access) {
  for (Expr& index : access.indices) {
    const auto* ramp = index.as<Ramp>();
    if (!ramp) continue;
    const Var lane = make<VarNode>("lane", ramp->base->dtype);
    access.loops.push_back(make<For>(lane, constant(lane->dtype, 0), constant(lane->dtype, ramp->lanes),
                                     ForKind::vectorized, Stmt(make<Evaluate>(int64(0)))));
    ++access.lanes;
    index = add(ramp->base, mul(lane, ramp->stride));
  }
}

// Digits of a loop that was cut become the loops that they are: (8 * i + j) // 8 is i for j below 8. An access inside a
// loop that never runs is not there, so every loop may be taken to run.
void simplify_digits(BufferAccess& access) {
  const auto has_digits = [](const Expr& index) {
    bool found = false;
    pre_order(index, [&](const NodeRef& n) {
      found = found || n.is<FloorDiv>() || n.is<FloorMod>();
      return !found;
    });
    return found;
  };
  if (std::none_of(access.indices.begin(), access.indices.end(), has_digits)) return;
  arith::Analyzer known;
  for (const Ref<For>& loop : access.loops)
    if (as_int(loop->min) && as_int(loop->extent).value_or(0) > 0)
      known.bind(loop->loop_var, Range{loop->min, loop->extent});
  for (Expr& index : access.indices)
    if (has_digits(index)) index = known.simplify(index);
}

// Part of a buffer: what the indices of an access reach, dimension by dimension.
using Box = std::vector<Interval>;

// What the write fills, in one iteration of the loops it shares with the read; nothing where that is no box.
std::optional<Box> box_filled(const BufferAccess& read, const BufferAccess& write, arith::Analyzer& known) {
  if (!write.is_write || write.buffer != read.buffer || write.order > read.order) return std::nullopt;
  if (write.conditional || write.indices.size() != read.indices.size()) return std::nullopt;
  // Where the read is, so are the branches that the write is in.
  if (write.branches.size() > read.branches.size() ||
      !std::equal(write.branches.begin(), write.branches.end(), read.branches.begin()))
    return std::nullopt;
  const size_t shared = shared_loops(read, write);
  const std::vector<Ref<For>> inner(write.loops.begin() + static_cast<ptrdiff_t>(shared), write.loops.end());
  if (!only_clips(write.predicate, write, known) || !fills_a_box(write.indices, inner, known)) return std::nullopt;
  const Domains domains = domains_of(write.loops, shared);
  Box box;
  for (const Expr& index : write.indices) {
    const auto given = interval_of(cast(DType::int64(), index), domains);
    if (!given) return std::nullopt;
    box.push_back(*given);
  }
  return box;
}

// Whether the box holds what the read reads: that lies inside the buffer, so ends of the buffer are ends of it.
bool holds_read(const Box& box, const BufferAccess& read, size_t shared, arith::Analyzer& known) {
  const Domains domains = domains_of(read.loops, shared);
  for (size_t d = 0; d < read.indices.size(); ++d) {
    const auto wanted = interval_of(cast(DType::int64(), read.indices[d]), domains);
    if (!wanted) return false;
    const Expr extent = cast(DType::int64(), read.buffer->shape[d]);
    const Expr low = max(wanted->min, int64(0)), high = min(wanted->max, extent - 1);
    if (!known.can_prove(le(box[d].min, low)) || !known.can_prove(ge(box[d].max, high))) return false;
  }
  return true;
}

// The two boxes as one, where they differ in one dimension and adjoin there.
std::optional<Box> joined(const Box& a, const Box& b, arith::Analyzer& known) {
  std::optional<size_t> different;
  for (size_t d = 0; d < a.size(); ++d) {
    if (known.can_prove_equal(a[d].min, b[d].min) && known.can_prove_equal(a[d].max, b[d].max)) continue;
    if (different) return std::nullopt;
    different = d;
  }
  if (!different) return a;
  Box both = a;
  const Interval &x = a[*different], &y = b[*different];
  if (known.can_prove_equal(x.max + 1, y.min))
    both[*different].max = y.max;
  else if (known.can_prove_equal(y.max + 1, x.min))
    both[*different].min = y.min;
  else
    return std::nullopt;
  return both;
}

// Only the loops that both are in: what is inside an empty loop must not be used.
void bind_shared(arith::Analyzer& known, const BufferAccess& read, size_t shared) {
  for (size_t k = 0; k < shared; ++k)
    known.bind(read.loops[k]->loop_var, Range{read.loops[k]->min, read.loops[k]->extent});
}

}  // namespace

std::vector<BufferAccess> buffer_accesses(const Stmt& s, std::unordered_set<const BufferNode*>* opaque) {
  AccessCollection collection(opaque);
  collection.collect(s);
  for (BufferAccess& access : collection.accesses) {
    open_lanes(access);
    simplify_digits(access);
  }
  return std::move(collection.accesses);
}

size_t shared_loops(const BufferAccess& a, const BufferAccess& b) {
  size_t n = 0;
  while (n < a.loops.size() && n < b.loops.size() && a.loops[n] == b.loops[n]) ++n;
  return n;
}

Domains domains_of(const std::vector<Ref<For>>& loops, size_t from) {
  Domains domains;
  for (size_t k = from; k < loops.size(); ++k) domains[loops[k]->loop_var.get()] = {loops[k]->min, loops[k]->extent};
  return domains;
}

bool is_covered_by(const BufferAccess& read, const BufferAccess& write) {
  const size_t shared = shared_loops(read, write);
  arith::Analyzer known;
  bind_shared(known, read, shared);
  const auto box = box_filled(read, write, known);
  return box && holds_read(*box, read, shared, known);
}

bool is_covered_by(const BufferAccess& read, const std::vector<const BufferAccess*>& writes) {
  std::map<size_t, std::vector<const BufferAccess*>> by_shared;  // in one iteration of the same loops
  for (const BufferAccess* write : writes)
    if (write->is_write && write->buffer == read.buffer) by_shared[shared_loops(read, *write)].push_back(write);
  for (const auto& [shared, group] : by_shared) {
    arith::Analyzer known;
    bind_shared(known, read, shared);
    std::vector<Box> boxes;
    for (const BufferAccess* write : group)
      if (auto box = box_filled(read, *write, known)) boxes.push_back(*std::move(box));
    const auto is_enough = [&](const Box& box) { return holds_read(box, read, shared, known); };
    if (std::any_of(boxes.begin(), boxes.end(), is_enough)) return true;
    if (boxes.size() > most_boxes) continue;
    // Each step leaves a box less.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < boxes.size() && !changed; ++i)
        for (size_t j = i + 1; j < boxes.size() && !changed; ++j)
          if (auto both = joined(boxes[i], boxes[j], known)) {
            if (is_enough(*both)) return true;
            boxes[i] = *std::move(both);
            boxes.erase(boxes.begin() + static_cast<ptrdiff_t>(j));
            changed = true;
          }
    }
  }
  return false;
}

}  // namespace lathe::tir
