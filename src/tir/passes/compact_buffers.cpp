#include "arith/analyzer.h"
#include "support/mutation.h"
#include "tir/analysis/buffer_accesses.h"
#include "tir/passes/passes.h"
#include "tir/passes/views.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(compact_buffers_level, "tir_test", "a buffer is placed inside a loop whose iterations share its values");
LATHE_FAULT(place_allocations_level, "tir_test", "the same of a buffer that keeps its size");

namespace {

using arith::Analyzer;

// A buffer inside a loop that takes at most this many bytes lies on the stack; all of a function's together take at
// most `stack_bytes`.
constexpr int64_t local_bytes = 32 * 1024, stack_bytes = 256 * 1024;

// The part of a buffer that is kept: element `origin` of the old buffer is element 0 of the new one.
struct Compacted {
  Buffer original, buffer;
  std::vector<Expr> origin;
};

// What becomes of the buffers that one block allocates.
struct Placement {
  std::unordered_map<const BufferNode*, Compacted> compacted;
  std::unordered_map<const For*, std::vector<Buffer>> inside;  // buffers by the loop whose body allocates them
  std::vector<Buffer> kept;                                    // those that stay where they are
};

// What becomes of a buffer where it is placed.
enum class Size { whole, part_used };

class PlacementSearch {
 public:
  PlacementSearch(const Block& block, Size size, const PassContext& context, int64_t& stack_left)
      : block_(block),
        size_(size),
        context_(context),
        stack_left_(stack_left),
        accesses_(buffer_accesses(block.body, &opaque_)) {}

  Placement search() {
    for (const Buffer& buffer : block_.alloc_buffers) place(buffer);
    return std::move(placement_);
  }

 private:
  void place(const Buffer& buffer) {
    std::vector<const BufferAccess*> uses;
    for (const BufferAccess& access : accesses_)
      if (access.buffer->data == buffer->data) uses.push_back(&access);
    if (uses.empty() && !opaque_.count(buffer.get())) return;  // nobody uses it
    const bool plain = !opaque_.count(buffer.get()) && has_plain_strides(*buffer) && !buffer->elem_offset &&
                       std::all_of(uses.begin(), uses.end(), [&](const auto* use) { return use->buffer == buffer; });
    if (!plain) {
      placement_.kept.push_back(buffer);
      return;
    }
    const size_t level = deepest_level(uses);
    const auto is_wrong = [&] {
      return size_ == Size::whole ? support::flip(place_allocations_level) : support::flip(compact_buffers_level);
    };
    put(buffer, uses, level == 0 && is_wrong() ? shared_by_all(uses) : level);
  }

  // None, or such as keep rows apart, as storage_align gives them.
  static bool has_plain_strides(const BufferNode& buffer) {
    Analyzer known;
    Expr least = int64(1);  // that does not make elements meet
    for (size_t d = buffer.strides.size(); d-- > 0;) {
      if (!known.can_prove(ge(buffer.strides[d], least))) return false;
      least = mul(buffer.strides[d], at_least_one(buffer.shape[d]));
    }
    return true;
  }
  static Expr at_least_one(const Expr& extent) { return is_int(extent, 0) ? constant(extent->dtype, 1) : extent; }

  // Strides of a smaller buffer: where the dimensions inside followed one another without a gap they do again; a gap
  // stays, with the stride that it was there for.
  static std::vector<Expr> strides_for(const BufferNode& buffer, const std::vector<Expr>& shape) {
    Analyzer known;
    std::vector<Expr> strides(buffer.strides.size());
    Expr inside = int64(1), compact = int64(1);  // what the dimensions inside span, before and now
    for (size_t d = strides.size(); d-- > 0;) {
      const Expr& before = buffer.strides[d];
      strides[d] = known.can_prove_equal(before, inside) ? compact : before;
      inside = mul(before, buffer.shape[d]);
      compact = known.simplify(mul(strides[d], shape[d]));
    }
    return strides;
  }

  void put(const Buffer& buffer, const std::vector<const BufferAccess*>& uses, size_t level) {
    const Buffer placed = size_ == Size::whole ? buffer : shrunk(buffer, uses, level);
    if (level == 0)
      placement_.kept.push_back(placed);
    else
      placement_.inside[uses[0]->loops[level - 1].get()].push_back(placed);
  }

  static size_t shared_by_all(const std::vector<const BufferAccess*>& uses) {
    size_t level = uses[0]->loops.size() - uses[0]->lanes;
    for (const BufferAccess* use : uses) level = std::min(level, shared_loops(*uses[0], *use));
    return level;
  }

  // The number of loops around the allocation: as many as all uses share and no value crosses.
  size_t deepest_level(const std::vector<const BufferAccess*>& uses) {
    size_t level = shared_by_all(uses);
    // A reduction gathers its value over the loops that drive its reduce variables.
    for (const BufferAccess* use : uses) {
      if (!use->accumulates && !use->in_init) continue;
      for (size_t k = 0; k < level; ++k)
        if (drives_reduction(*use, use->loops[k]->loop_var)) level = k;
    }
    if (level == 0) return 0;
    for (const BufferAccess* read : uses) {
      if (read->is_write || read->accumulates) continue;
      if (!is_covered_by(*read, uses)) {
        context_.remark("compact_buffers", read->buffer->name,
                        "a read was not shown to see only values of the same iteration");
        return 0;
      }
    }
    return level;
  }

  bool drives_reduction(const BufferAccess& use, const Var& loop_var) {
    // The values of the block's variables are found through a search for the instance that holds it.
    bool found = false;
    pre_order(block_.body, [&](const NodeRef& n) {
      const auto* realize = n.as<BlockRealize>();
      if (realize && realize->block == use.block)
        for (size_t k = 0; k < realize->iter_values.size(); ++k)
          found |=
              realize->block->iter_vars[k]->type == IterType::reduce && uses_var(realize->iter_values[k], loop_var);
      return !found;
    });
    return found;
  }

  Buffer shrunk(const Buffer& buffer, const std::vector<const BufferAccess*>& uses, size_t level) {
    Compacted result{buffer, buffer, {}};
    std::vector<Expr> shape;
    bool smaller = false;
    for (size_t d = 0; d < buffer->shape.size(); ++d) {
      const auto [origin, extent] = part_used(buffer, uses, level, d);
      smaller |= extent != buffer->shape[d];
      result.origin.push_back(origin);
      shape.push_back(extent);
    }
    const std::vector<Expr> strides = strides_for(*buffer, shape);
    const auto elements = as_int(fold_constants(strides.empty() ? product(shape) : mul(strides[0], shape[0])));
    std::string scope = buffer->scope;
    if (level > 0 && scope == "global" && elements) {
      const int64_t bytes = buffer->dtype.storage_bytes(*elements);
      if (bytes <= local_bytes && bytes <= stack_left_) {
        scope = "local";
        stack_left_ -= bytes;
      }
    }
    if (smaller || scope != buffer->scope) {
      const Var data = make<VarNode>(buffer->name, DType::handle());
      result.buffer = with(*buffer, [&](BufferNode& copy) {
        copy.data = data;
        copy.strides = strides;
        copy.shape = shape;
        copy.scope = scope;
      });
      placement_.compacted[buffer.get()] = result;
    }
    return result.buffer;
  }

  // What an access touches of dimension `d` over the domains: what its block says, else what its index says.
  static std::optional<Interval> part_of(const BufferAccess& use, size_t d, const Domains& domains) {
    if (use.part.empty()) return interval_of(use.indices[d], domains);
    const Range& part = use.part[d];
    const auto low = interval_of(part.min, domains);
    const auto high = interval_of(sub(add(part.min, part.extent), constant(part.min->dtype, 1)), domains);
    if (!low || !high) return std::nullopt;
    return Interval{low->min, high->max};
  }

  // The smallest interval of dimension `d` that holds all uses in one iteration of the first `level` loops, when its
  // length is constant; else the whole dimension.
  std::pair<Expr, Expr> part_used(const Buffer& buffer, const std::vector<const BufferAccess*>& uses, size_t level,
                                  size_t d) {
    const Expr& whole = buffer->shape[d];
    const std::pair<Expr, Expr> everything{constant(whole->dtype, 0), whole};
    Analyzer known;
    for (size_t k = 0; k < level; ++k) {
      const For& loop = *uses[0]->loops[k];
      known.bind(loop.loop_var, Range{loop.min, loop.extent});
    }
    std::optional<Interval> part;
    for (const BufferAccess* use : uses) {
      const Expr& index = use->indices[d];
      if (index->dtype != DType::int64()) return everything;
      const auto used = part_of(*use, d, domains_of(use->loops, level));
      if (!used) return everything;
      const Interval here{known.simplify(used->min), known.simplify(used->max)};
      if (!part) {
        part = here;
        continue;
      }
      if (!known.can_prove(le(part->min, here.min))) {
        if (!known.can_prove(le(here.min, part->min))) return everything;
        part->min = here.min;
      }
      if (!known.can_prove(ge(part->max, here.max))) {
        if (!known.can_prove(ge(here.max, part->max))) return everything;
        part->max = here.max;
      }
    }
    const int64_t length = known.const_int_bound(known.simplify(part->max - part->min + 1)).max_value;
    const auto full = as_int(whole);
    if (length == arith::ConstIntBound::positive_infinity || (full && length >= *full)) return everything;
    return {part->min, constant(whole->dtype, std::max<int64_t>(length, 0))};
  }

  const Block& block_;
  Size size_;
  const PassContext& context_;
  int64_t& stack_left_;
  std::unordered_set<const BufferNode*> opaque_;
  std::vector<BufferAccess> accesses_;
  Placement placement_;
};

class BufferPlacement : public TirRewriter {
 public:
  BufferPlacement(Size size, const PassContext& context) : size_(size), context_(context) {}

 protected:
  Stmt visit_stmt(Stmt s) override {
    if (const auto* block = s.as<Block>(); block && !block->alloc_buffers.empty()) {
      Placement found = PlacementSearch(*block, size_, context_, stack_left_).search();
      for (auto& [buffer, compacted] : found.compacted) compacted_[buffer] = compacted;
      for (const Buffer& buffer : block->alloc_buffers) moved_.insert(buffer.get());
      for (const Buffer& buffer : found.kept) moved_.erase(buffer.get());
      for (auto& [loop, buffers] : found.inside) {
        inside_[loop] = {Ref<For>(loop), buffers};
        for (const Buffer& buffer : buffers) moved_.insert(buffer.get());
      }
      s = with(*block, [&](Block& copy) { copy.alloc_buffers = found.kept; });
    }
    std::vector<Buffer> buffers;
    if (const auto it = s.is<For>() ? inside_.find(s.as<For>()) : inside_.end(); it != inside_.end())
      buffers = it->second.second;
    for (const Buffer& buffer : buffers) moved_.erase(buffer.get());  // here they are
    Stmt rewritten = children(std::move(s));
    for (const Buffer& buffer : buffers) moved_.insert(buffer.get());
    if (const auto* loop = rewritten.as<For>(); loop && !buffers.empty())
      return with(*loop, [&](For& copy) { copy.body = scope_of(copy.body, buffers); });
    if (const auto* block = rewritten.as<Block>(); block && !moved_.empty()) return without_moved(*block);
    if (const auto* store = rewritten.as<BufferStore>()) {
      if (const Compacted* to = find(store->buffer))
        return with(*store, [&](BufferStore& copy) { move(*to, copy.buffer, copy.indices); });
    }
    return rewritten;
  }

  Expr visit_expr(Expr e) override {
    Expr rewritten = children(std::move(e));
    const auto* load = rewritten.as<BufferLoad>();
    const Compacted* to = load ? find(load->buffer) : nullptr;
    if (!to) return rewritten;
    return with(*load, [&](BufferLoad& copy) { move(*to, copy.buffer, copy.indices); });
  }

  NodeRef visit_other(NodeRef node) override {
    NodeRef rewritten = descend(std::move(node));
    const auto* region = rewritten.as<BufferRegionNode>();
    const Compacted* to = region ? find(region->buffer) : nullptr;
    if (!to) return rewritten;
    return with(*region, [&](BufferRegionNode& copy) {
      copy.buffer = to->buffer;
      for (size_t d = 0; d < copy.region.size(); ++d) copy.region[d].min = sub(copy.region[d].min, to->origin[d]);
    });
  }

 private:
  const Compacted* find(const Buffer& buffer) const {
    const auto it = compacted_.find(buffer.get());
    return it == compacted_.end() ? nullptr : &it->second;
  }
  static void move(const Compacted& to, Buffer& buffer, std::vector<Expr>& indices) {
    buffer = to.buffer;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Expr origin = cast(indices[d]->dtype.element(), to.origin[d]);
      indices[d] = sub_index(indices[d], origin);
    }
  }

  // A block does not say what it does with buffers that are now allocated in a loop inside it, or beside it where it
  // declares more than it does.
  Stmt without_moved(const Block& block) const {
    const auto is_moved = [&](const BufferRegion& region) { return moved_.count(region->buffer.get()) != 0; };
    if (std::none_of(block.reads.begin(), block.reads.end(), is_moved) &&
        std::none_of(block.writes.begin(), block.writes.end(), is_moved))
      return Stmt(&block);
    return with(block, [&](Block& copy) {
      std::erase_if(copy.reads, is_moved);
      std::erase_if(copy.writes, is_moved);
    });
  }

  // A block without variables, which only allocates.
  static Stmt scope_of(const Stmt& body, const std::vector<Buffer>& buffers) {
    Ref<Block> block =
        make<Block>(std::vector<IterVar>{}, buffers, std::vector<MatchBufferRegion>{}, std::vector<BufferRegion>{},
                    std::vector<BufferRegion>{}, buffers[0]->name + "_scope", Stmt{}, body);
    const Regions regions = infer_regions(*block);
    block = with(*block, [&](Block& copy) {
      copy.reads = regions.reads;
      copy.writes = regions.writes;
    });
    return make<BlockRealize>(std::vector<Expr>{}, boolean(true), block);
  }

  Size size_;
  const PassContext& context_;
  int64_t stack_left_ = stack_bytes;
  std::unordered_map<const BufferNode*, Compacted> compacted_;
  std::unordered_set<const BufferNode*> moved_;  // gone from where they were, and not allocated around here
  std::unordered_map<const For*, std::pair<Ref<For>, std::vector<Buffer>>> inside_;
};

// Views that only loads and stores use, as tensorized blocks have them, stand for parts of their sources, which can
// then be made smaller. Where an address is taken, a stride is asked for, or one vector goes over several rows, memory
// must stay as it is.
class PlainViews : public TirRewriter {
 protected:
  Stmt visit_stmt(Stmt s) override {
    const auto* block = s.as<Block>();
    if (!block || block->match_buffers.empty()) return children(std::move(s));
    std::vector<MatchBufferRegion> plain, kept;
    for (const MatchBufferRegion& match : block->match_buffers)
      (is_plain(*match->buffer, *block) ? plain : kept).push_back(match);
    if (plain.empty()) return children(std::move(s));
    const Ref<Block> opened = without_views(*with(*block, [&](Block& copy) { copy.match_buffers = plain; }));
    return children(with(*opened, [&](Block& copy) { copy.match_buffers = kept; }));
  }

 private:
  static bool is_plain(const BufferNode& view, const Block& block) {
    bool plain = true;
    Analyzer known;
    const auto inside = [&](const std::vector<Expr>& indices) {
      for (size_t d = 0; d < indices.size(); ++d) {
        const auto* ramp = indices[d].as<Ramp>();
        const Expr first = ramp ? ramp->base : indices[d];
        if (!first->dtype.is_scalar()) return false;
        const Expr last = ramp ? known.simplify(ramp->base + ramp->stride * (ramp->lanes - 1)) : first;
        if (!known.can_prove(ge(first, constant(first->dtype, 0))) || !known.can_prove(ge(last, first)) ||
            !known.can_prove(lt(last, cast(last->dtype, view.shape[d]))))
          return false;
      }
      return true;
    };
    const auto is_symbol = [&](const VarNode* v) {
      const auto same = [&](const Expr& e) { return e && e.get() == v; };
      return same(view.data) || same(view.elem_offset) || std::any_of(view.strides.begin(), view.strides.end(), same);
    };
    const auto look = [&](const NodeRef& n) {
      if (const auto* v = n.as<VarNode>()) plain = plain && !is_symbol(v);
      if (const auto* region = n.as<BufferRegionNode>()) plain = plain && region->buffer.get() != &view;
      if (const auto* loop = n.as<For>()) known.bind(loop->loop_var, Range{loop->min, loop->extent});
      if (const auto* load = n.as<BufferLoad>(); load && load->buffer.get() == &view)
        plain = plain && inside(load->indices);
      if (const auto* store = n.as<BufferStore>(); store && store->buffer.get() == &view)
        plain = plain && inside(store->indices);
      const auto* call = n.as<Call>();
      const auto* element = call && call->op == &intrinsic::address_of ? call->args[0].as<BufferLoad>() : nullptr;
      plain = plain && !(element && element->buffer.get() == &view);
      return plain && !n.is<BufferNode>();  // whose own layout says nothing of who asks for it
    };
    pre_order(block.body, look);
    if (block.init) pre_order(block.init, look);
    return plain;
  }
};

}  // namespace

Result<IRModule> compact_buffers(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), context, [](const Stmt& body, const PassContext& own) {
    return BufferPlacement(Size::part_used, own)(PlainViews()(body));
  });
}

Result<IRModule> place_allocations(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), context,
                      [](const Stmt& body, const PassContext& own) { return BufferPlacement(Size::whole, own)(body); });
}

}  // namespace lathe::tir
