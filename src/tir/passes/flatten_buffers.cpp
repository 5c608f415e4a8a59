#include "support/mutation.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(flatten_buffers_stride, "tir_test", "the stride of a dimension is taken from the wrong extent");
LATHE_FAULT(flatten_buffers_group, "tir_test", "a group of axes begins one axis late");

namespace {

Expr as_index(const Expr& e) { return cast(DType::int_(64, e->dtype.lanes), e); }

// Where the groups of axes begin, and the number of axes at the end: the separators divide axes that lie one after the
// other. Strides and offsets say for all axes together where an element lies.
std::vector<size_t> group_bounds(const BufferNode& buffer) {
  std::vector<size_t> bounds{0};
  if (buffer.strides.empty() && !buffer.elem_offset)
    for (const int64_t separator : buffer.axis_separators) bounds.push_back(static_cast<size_t>(separator));
  bounds.push_back(buffer.shape.size());
  return bounds;
}

// Whether `whole` and `rest` are the quotient and the remainder of one number by `extent`: that number, or null. By an
// extent that only the run knows, as a loop that was several has them; of others `simplify` knows.
Expr of_digits(const Expr& whole, const Expr& extent, const Expr& rest) {
  const auto* quotient = whole.as<FloorDiv>();
  const auto* remainder = rest.as<FloorMod>();
  const bool is_one = quotient && remainder && ir::structural_equal(quotient->b, extent) &&
                      ir::structural_equal(remainder->b, extent) && ir::structural_equal(quotient->a, remainder->a);
  return is_one ? quotient->a : Expr();
}

// The next of some indices in row-major order.
Expr next_index(const Expr& flat, const Expr& extent, const Expr& index) {
  const Expr whole = of_digits(flat, extent, index);
  return whole ? whole : add_index(mul_index(flat, extent), index);
}

// One extent a group.
std::vector<Expr> group_extents(const BufferNode& buffer) {
  const std::vector<size_t> bounds = group_bounds(buffer);
  std::vector<Expr> extents;
  for (size_t group = 0; group + 1 < bounds.size(); ++group) {
    Expr count = int64(1);
    for (size_t d = bounds[group]; d < bounds[group + 1]; ++d) count = count * as_index(buffer.shape[d]);
    extents.push_back(count);
  }
  return extents;
}

// One index a group.
std::vector<Expr> group_indices(const BufferNode& buffer, const std::vector<Expr>& indices) {
  std::vector<size_t> bounds = group_bounds(buffer);
  if (support::flip(flatten_buffers_group) && bounds.size() > 2 && bounds[1] + 1 < bounds[2]) ++bounds[1];
  std::vector<Expr> result;
  for (size_t group = 0; group + 1 < bounds.size(); ++group) {
    Expr flat = int64(0);
    for (size_t d = bounds[group]; d < bounds[group + 1]; ++d) {
      const bool wrong = d == 1 && support::flip(flatten_buffers_stride);
      flat = next_index(flat, as_index(buffer.shape[wrong ? 0 : d]), as_index(indices[d]));
    }
    result.push_back(flat);
  }
  return result;
}

// The number of elements from the buffer's address to the last one it names, where strides or an offset say it.
Expr flat_extent(const BufferNode& buffer) {
  Expr count = int64(1);
  if (buffer.strides.empty()) {
    for (const Expr& extent : buffer.shape) count = count * as_index(extent);
  } else {
    bool may_be_empty = false;
    for (size_t d = 0; d < buffer.shape.size(); ++d) {
      count = count + (as_index(buffer.shape[d]) - 1) * as_index(buffer.strides[d]);
      may_be_empty = may_be_empty || as_int(buffer.shape[d]).value_or(0) == 0;
    }
    if (may_be_empty) count = max(count, int64(0));
  }
  return buffer.elem_offset ? count + as_index(buffer.elem_offset) : count;
}

bool lies_apart(const BufferNode& buffer) { return !buffer.strides.empty() || buffer.elem_offset; }

std::vector<Expr> flat_indices(const BufferNode& buffer, const std::vector<Expr>& indices) {
  if (!lies_apart(buffer)) return group_indices(buffer, indices);
  Expr flat = int64(0);
  for (size_t d = 0; d < indices.size(); ++d) {
    const Expr index = as_index(indices[d]);
    if (!buffer.strides.empty()) {
      flat = add_index(flat, mul_index(index, as_index(buffer.strides[d])));
      continue;
    }
    flat = next_index(flat, as_index(buffer.shape[d]), index);
  }
  return {buffer.elem_offset ? add_index(flat, as_index(buffer.elem_offset)) : flat};
}

class BufferFlattening : public TirRewriter {
 public:
  Buffer flat(const Buffer& buffer) {
    const auto it = flat_.find(buffer.get());
    if (it != flat_.end()) return it->second.flat;
    Buffer result = with(*buffer, [&](BufferNode& copy) {
      copy.shape = lies_apart(*buffer) ? std::vector<Expr>{flat_extent(*buffer)} : group_extents(*buffer);
      copy.strides.clear();
      copy.elem_offset = {};
      copy.axis_separators.clear();
      for (size_t group = 1; group < copy.shape.size(); ++group)
        copy.axis_separators.push_back(static_cast<int64_t>(group));
    });
    flat_[buffer.get()] = {buffer, result};
    return result;
  }

 protected:
  Stmt visit_stmt(Stmt s) override {
    Stmt rewritten = children(std::move(s));
    if (const auto* store = rewritten.as<BufferStore>())
      return with(*store, [&](BufferStore& copy) {
        copy.indices = flat_indices(*copy.buffer, copy.indices);
        copy.buffer = flat(copy.buffer);
      });
    if (const auto* allocate = rewritten.as<Allocate>()) {
      Expr count = int64(1);
      for (const Expr& extent : allocate->extents) count = count * as_index(extent);
      return with(*allocate, [&](Allocate& copy) { copy.extents = {count}; });
    }
    return rewritten;
  }
  Expr visit_expr(Expr e) override {
    Expr rewritten = children(std::move(e));
    const auto* load = rewritten.as<BufferLoad>();
    if (!load) return rewritten;
    return with(*load, [&](BufferLoad& copy) {
      copy.indices = flat_indices(*copy.buffer, copy.indices);
      copy.buffer = flat(copy.buffer);
    });
  }

 private:
  struct Flattened {
    Buffer original, flat;  // the original is kept alive: the table goes by its address
  };
  std::unordered_map<const BufferNode*, Flattened> flat_;
};

}  // namespace

std::vector<Var> shape_scalars(const Function& function) {
  std::vector<Var> symbols;
  const auto known = [&](const Var& v) {
    return std::find(function->params.begin(), function->params.end(), v) != function->params.end() ||
           std::find(symbols.begin(), symbols.end(), v) != symbols.end();
  };
  const auto collect = [&](const Expr& e) {
    if (!e) return;
    for (const Var& v : free_vars(e))
      if (!known(v)) symbols.push_back(v);
  };
  for (const auto& [handle, buffer] : function->buffer_map) {
    for (const Expr& extent : buffer->shape) collect(extent);
    for (const Expr& stride : buffer->strides) collect(stride);
    collect(buffer->elem_offset);
  }
  return symbols;
}

Result<IRModule> flatten_buffers(IRModule module, const PassContext& context) {
  return on_each_function(std::move(module), context, [](const std::string&, const Function& f, const PassContext&) {
    BufferFlattening flattening;
    Stmt body = flattening(f->body);
    const std::vector<Var> symbols = shape_scalars(f);
    return with(*f, [&](PrimFunc& copy) {
      copy.body = std::move(body);
      for (auto& [handle, buffer] : copy.buffer_map) buffer = flattening.flat(buffer);
      copy.params.insert(copy.params.end(), symbols.begin(), symbols.end());
    });
  });
}

}  // namespace lathe::tir
