#include "tir/parts.h"

#include <set>

#include "arith/analyzer.h"
#include "support/mutation.h"
#include "tir/compact.h"
#include "tir/plain_nest.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(parts_begin_early, "lower_test", "parts of a whole begin with its first elements");

namespace {

using Extents = std::vector<Expr>;

bool is_same(const Expr& a, const Expr& b) {
  const auto x = as_int(a), y = as_int(b);
  return x && y ? *x == *y : structural_equal(a, b) || arith::Analyzer().can_prove_equal(a, b);
}
bool is_same(const Extents& a, const Extents& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Expr& x, const Expr& y) { return is_same(x, y); });
}

// What a function does, in order, its root block left out; nothing where that has memory of its own.
std::vector<Stmt> nests_of(const PrimFunc& function) {
  const BlockRealize* root = root_of(function);
  if (root && (!root->block->match_buffers.empty() || !root->block->alloc_buffers.empty() || root->block->init))
    return {};
  const Stmt& inner = root ? root->block->body : function.body;
  const auto* several = inner.as<SeqStmt>();
  return several ? several->seq : std::vector<Stmt>{inner};
}

// The body of `function`, whose root block `change` may change, with another one in it.
Stmt with_root(const PrimFunc& function, Stmt inner, support::function_ref<void(Block&)> change) {
  const BlockRealize* root = root_of(function);
  if (!root) return inner;
  return with(*root, [&](BlockRealize& realize) {
    realize.block = with(*root->block, [&](Block& block) {
      block.body = inner;
      change(block);
    });
  });
}

// How far `index` is in front of `var`, in numbers and the function's scalars; null where it is no such sum.
Expr distance(const PrimFunc& function, const Expr& index, const Var& var) {
  if (index.get() == var.get()) return int64(0);
  const auto* sum = index.as<Add>();
  if (!sum || sum->a.get() != var.get()) return {};
  bool is_given = true;
  pre_order(sum->b, [&](const NodeRef& n) {
    is_given = is_given && (!n.is<VarNode>() || std::any_of(function.params.begin(), function.params.end(),
                                                            [&](const Var& param) { return param.get() == n.get(); }));
    return true;
  });
  return is_given ? sum->b : Expr();
}

// A nest that copies a box of one parameter into one of another.
struct Copy {
  size_t from, to;  // parameters
  Extents extents;
  Extents read, written;  // where the boxes begin
};

std::optional<Copy> as_copy(const PrimFunc& function, const Stmt& s) {
  const auto nest = as_plain_nest(s);
  const auto* store = nest ? nest->realize->block->body.as<BufferStore>() : nullptr;
  const auto* load = store ? store->value.as<BufferLoad>() : nullptr;
  if (!load || store->predicate || load->predicate || nest->realize->block->init) return std::nullopt;
  const auto number_of = [&](const Buffer& buffer) {
    size_t i = 0;
    while (i < function.buffer_map.size() && function.buffer_map[i].second != buffer) ++i;
    return i;
  };
  Copy copy{number_of(load->buffer), number_of(store->buffer), {}, {}, {}};
  const std::vector<IterVar>& iters = nest->realize->block->iter_vars;
  const size_t rank = iters.size();
  if (std::max(copy.from, copy.to) >= function.buffer_map.size() || load->indices.size() != rank ||
      store->indices.size() != rank || nest->loops.size() != rank)
    return std::nullopt;
  for (size_t d = 0; d < rank; ++d) {
    const For& loop = *nest->loops[d];
    const Expr read = distance(function, load->indices[d], iters[d]->var),
               written = distance(function, store->indices[d], iters[d]->var);
    if (!read || !written || nest->realize->iter_values[d].get() != loop.loop_var.get()) return std::nullopt;
    copy.extents.push_back(loop.extent);
    copy.read.push_back(read);
    copy.written.push_back(written);
  }
  return copy;
}

// Whether that many elements are all of parameter number `param`, a compact tensor.
bool is_all_of(const PrimFunc& function, size_t param, const Extents& extents) {
  const BufferNode& buffer = *function.buffer_map[param].second;
  return is_compact(buffer) && is_same(buffer.shape, extents);
}

// Adds to `all` the part that lies from `begins` on in a whole of other extents along one axis; false where it does
// not.
bool add_part(Parts& all, size_t param, const Extents& part, const Extents& begins, const Extents& whole) {
  if (part.size() != whole.size()) return false;
  std::optional<size_t> axis;
  for (size_t d = 0; d < part.size(); ++d) {
    if (is_int(begins[d], 0) && is_same(part[d], whole[d])) continue;
    if (axis || as_int(begins[d]).value_or(0) < 0) return false;
    axis = d;
  }
  if (!axis || (!all.parts.empty() && all.axis != *axis)) return false;
  all.axis = *axis;
  all.parts.push_back({param, begins[*axis]});
  return true;
}

bool is_zero(const Extents& begins) {
  return std::all_of(begins.begin(), begins.end(), [](const Expr& begin) { return is_int(begin, 0); });
}

// The number of different parameters that are parts.
size_t count_of(const Parts& parts) {
  std::set<size_t> params;
  for (const Part& part : parts.parts) params.insert(part.param);
  return params.size();
}

// Whether a result is begun and added to where it is written, or read again.
bool is_accumulated(const PrimFunc& function, const Buffer& buffer) {
  bool is_written = false, is_again = false;
  pre_order(function.body, [&](const NodeRef& n) {
    const auto* block = n.as<Block>();
    const bool writes = block && std::any_of(block->writes.begin(), block->writes.end(),
                                             [&](const BufferRegion& region) { return region->buffer == buffer; });
    const bool reduces =
        block && (block->init || std::any_of(block->iter_vars.begin(), block->iter_vars.end(),
                                             [](const IterVar& iter) { return iter->type == IterType::reduce; }));
    const auto* store = n.as<BufferStore>();
    const auto* load = n.as<BufferLoad>();
    is_written = is_written || (store && store->buffer == buffer);
    is_again = is_again || (writes && reduces) || (load && load->buffer == buffer);
    return true;
  });
  return is_written && is_again;
}

// Turns a buffer into a part of a larger one.
class PartPlacer : public TirRewriter {
 public:
  PartPlacer(Buffer part, Buffer whole, size_t axis, Expr begin)
      : part_(std::move(part)), whole_(std::move(whole)), axis_(axis), begin_(std::move(begin)) {}

 protected:
  Stmt visit_stmt(Stmt s) override {
    s = children(std::move(s));
    const auto* store = s.as<BufferStore>();
    if (!store || store->buffer != part_) return s;
    return with(*store, [&](BufferStore& copy) {
      copy.buffer = whole_;
      copy.indices[axis_] = copy.indices[axis_] + begin_;
    });
  }

  Expr visit_expr(Expr e) override {
    e = children(std::move(e));
    const auto* load = e.as<BufferLoad>();
    if (!load || load->buffer != part_) return e;
    return with(*load, [&](BufferLoad& copy) {
      copy.buffer = whole_;
      copy.indices[axis_] = copy.indices[axis_] + begin_;
    });
  }

  NodeRef visit_other(NodeRef node) override {
    node = descend(std::move(node));
    const auto* region = node.as<BufferRegionNode>();
    if (!region || region->buffer != part_) return node;
    return with(*region, [&](BufferRegionNode& copy) {
      copy.buffer = whole_;
      copy.region[axis_].min = copy.region[axis_].min + begin_;
    });
  }

 private:
  const Buffer part_, whole_;
  const size_t axis_;
  const Expr begin_;
};

}  // namespace

std::optional<Parts> as_concatenation(const PrimFunc& function) {
  const size_t count = function.buffer_map.size();
  if (count < 3) return std::nullopt;
  const Buffer& whole = function.buffer_map.back().second;
  if (!is_compact(*whole)) return std::nullopt;
  Parts found;
  Expr end = int64(0);  // of what is filled: all of the whole, and each part once
  for (const Stmt& nest : nests_of(function)) {
    const auto copy = as_copy(function, nest);
    if (!copy || copy->to + 1 != count || copy->from + 1 == count || !is_zero(copy->read) ||
        !is_all_of(function, copy->from, copy->extents) ||
        !add_part(found, copy->from, copy->extents, copy->written, whole->shape) ||
        !is_same(found.parts.back().begin, end))
      return std::nullopt;
    end = end + copy->extents[found.axis];
  }
  if (found.parts.size() + 1 != count || count_of(found) + 1 != count || !is_same(end, whole->shape[found.axis]))
    return std::nullopt;
  return found;
}

std::optional<Parts> as_split(const PrimFunc& function) {
  const size_t count = function.buffer_map.size();
  if (count < 2) return std::nullopt;
  const Buffer& whole = function.buffer_map.front().second;
  if (!is_compact(*whole)) return std::nullopt;
  Parts found;
  for (const Stmt& nest : nests_of(function)) {
    const auto copy = as_copy(function, nest);
    if (!copy || copy->from != 0 || copy->to == 0 || !is_zero(copy->written) ||
        !is_all_of(function, copy->to, copy->extents) ||
        !add_part(found, copy->to, copy->extents, copy->read, whole->shape))
      return std::nullopt;
  }
  if (found.parts.size() + 1 != count || count_of(found) + 1 != count) return std::nullopt;
  return found;
}

Function with_parts(const PrimFunc& function, const Parts& concatenation, const std::vector<bool>& kept) {
  const std::vector<Stmt> nests = nests_of(function);
  return with(function, [&](PrimFunc& copy) {
    std::vector<Stmt> own;
    std::set<size_t> dropped;
    for (size_t k = 0; k < kept.size(); ++k)
      if (kept[k])
        own.push_back(nests[k]);
      else
        dropped.insert(concatenation.parts[k].param);
    copy.params.clear();
    copy.buffer_map.clear();
    for (size_t i = 0; i < function.params.size(); ++i) {
      if (dropped.count(i)) continue;
      copy.params.push_back(function.params[i]);
      if (i < function.buffer_map.size()) copy.buffer_map.push_back(function.buffer_map[i]);
    }
    copy.body = with_root(function, seq(std::move(own)), [](Block&) {});
  });
}

Stmt copy_into_part(const std::string& block, const Buffer& from, const Buffer& to, size_t axis, const Expr& begin) {
  std::vector<IterVar> iters;
  std::vector<Var> loops;
  std::vector<Expr> values, read, written;
  for (size_t d = 0; d < from->shape.size(); ++d) {
    loops.push_back(var("i" + std::to_string(d)));
    iters.push_back(
        make<IterVarNode>(Range{int64(0), from->shape[d]}, var("v_i" + std::to_string(d)), IterType::spatial));
    values.push_back(loops.back());
    read.push_back(iters.back()->var);
    written.push_back(d == axis ? iters.back()->var + begin : Expr(iters.back()->var));
  }
  const auto inner = make<Block>(iters, std::vector<Buffer>{}, std::vector<MatchBufferRegion>{},
                                 std::vector{point_region(from, read)}, std::vector{point_region(to, written)}, block,
                                 Stmt{}, Stmt(make<BufferStore>(to, load(from, read), written)));
  Stmt nest = make<BlockRealize>(values, boolean(true), inner);
  for (size_t d = loops.size(); d-- > 0;)
    nest = make<For>(loops[d], int64(0), from->shape[d], ForKind::serial, std::move(nest));
  return nest;
}

bool has_plain_uses(const PrimFunc& function, size_t param) {
  const Buffer& buffer = function.buffer_map.at(param).second;
  bool is_plain = is_compact(*buffer);
  pre_order(function.body, [&](const NodeRef& n) {
    const auto* matched = n.as<MatchBufferRegionNode>();
    is_plain = is_plain && n.get() != buffer->data.get() && !(matched && matched->source->buffer == buffer);
    return is_plain && !n.is<BufferNode>();  // which has its data, too
  });
  return is_plain && (root_of(function) || !is_accumulated(function, buffer));
}

bool can_be_part(const PrimFunc& function, size_t param) {
  const size_t tensors = function.buffer_map.size();
  const bool is_sorted = std::none_of(function.params.begin() + static_cast<ptrdiff_t>(tensors), function.params.end(),
                                      [&](const Var& scalar) { return function.buffer_of(scalar); });
  return is_sorted && !function.attrs.contains("versions") && has_plain_uses(function, param);
}

Function with_part_of_whole(const PrimFunc& function, size_t param, size_t axis, int64_t extent, bool at_start) {
  const Var index = var("begin", DType::int64());
  const Expr begin = at_start || support::flip(parts_begin_early) ? Expr(int64(0)) : Expr(index);
  const Buffer& part = function.buffer_map.at(param).second;
  const bool is_copied = is_accumulated(function, part);
  const Buffer whole = with(*part, [&](BufferNode& copy) {
    copy.shape[axis] = int64(extent);
    if (is_copied) {
      copy.name += "_whole";
      copy.data = var(copy.name, part->data->dtype);
    }
  });
  return with(function, [&](PrimFunc& copy) {
    if (is_copied) {
      const BlockRealize* root = root_of(function);
      copy.body =
          with_root(function, seq({root->block->body, copy_into_part(part->name + "_part", part, whole, axis, begin)}),
                    [&](Block& block) { block.alloc_buffers.push_back(part); });
    } else {
      copy.body = PartPlacer(part, whole, axis, begin)(function.body);
    }
    copy.buffer_map[param].second = whole;
    if (!at_start) copy.params.push_back(index);
    copy.attrs.erase("inplace");  // the parameter has no other's shape any more
  });
}

}  // namespace lathe::tir
