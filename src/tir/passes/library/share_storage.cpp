#include "support/lifetimes.h"
#include "support/mutation.h"
#include "tir/codes.h"
#include "tir/passes/passes.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(share_storage_lifetimes, "tir_test", "memory counts as free as soon as it was used once");

namespace {

constexpr int64_t alignment_bits = 512;  // what a buffer may rely on where it says nothing else

// An allocation of known size, and when it is used. A loop is one step of the statements around it.
struct Piece {
  Ref<Allocate> allocation;
  int64_t elements = 0;
  int first = -1, last = -1;
  bool fixed = false;  // something knows its address, or how it lies
};

// Where a piece lies from now on.
struct Place {
  Var memory;
  int64_t offset = 0;  // elements
};
using Places = std::unordered_map<const VarNode*, Place>;

bool can_move(const Allocate& allocation) {
  const std::string& scope = allocation.scope;
  return allocation.annotations.empty() && (scope == "global" || scope == "local" || scope == "shared");
}

// The allocations among statements that run one after the other, in the order in which they are met.
class Timeline {
 public:
  explicit Timeline(const Stmt& s) { walk(s); }
  std::vector<Piece> pieces;

 private:
  void walk(const Stmt& s) {
    if (!s) return;
    if (const auto* sequence = s.as<SeqStmt>()) {
      for (const Stmt& each : sequence->seq) walk(each);
    } else if (const auto* allocate = s.as<Allocate>()) {
      const auto elements = as_int(fold_constants(product(allocate->extents)));
      if (can_move(*allocate) && elements && *elements > 0) {
        numbers_[allocate->buffer_var.get()] = pieces.size();
        pieces.push_back({.allocation = Ref<Allocate>(allocate), .elements = *elements});
      }
      walk(allocate->body);
    } else if (const auto* branch = s.as<IfThenElse>()) {
      step(branch->condition, false);
      walk(branch->then_case);
      walk(branch->else_case);
    } else if (const auto* let = s.as<LetStmt>()) {
      step(let->value, let->var->dtype.is_handle());
      walk(let->body);
    } else if (const auto* attribute = s.as<AttrStmt>()) {
      if (const auto* node = attribute->node.get<NodeRef>()) step(*node, true);
      step(attribute->value, true);
      walk(attribute->body);
    } else if (const auto* constant = s.as<AllocateConst>()) {
      walk(constant->body);
    } else {
      step(s, false);
    }
  }

  // One step, in which all of `root` happens; what it names is fixed where an address may outlive the step.
  void step(const NodeRef& root, bool fixes) {
    ++time_;
    mark(root, fixes);
  }
  void mark(const NodeRef& node, bool fixes) {
    if (!node) return;
    if (const auto* buffer = node.as<BufferNode>()) {
      const bool strict = buffer->data_alignment * 8 > alignment_bits || buffer->offset_factor > 1;
      return use(buffer->data.get(), fixes || strict);
    }
    if (const auto* var = node.as<VarNode>()) return use(var, true);
    if (const auto* let = node.as<Let>()) fixes = fixes || let->var->dtype.is_handle();
    if (const auto* let = node.as<LetStmt>()) fixes = fixes || let->var->dtype.is_handle();
    node->node_class().for_each_child(*node, [&](const NodeRef& child) { mark(child, fixes); });
  }
  void use(const VarNode* memory, bool fixes) {
    const auto it = numbers_.find(memory);
    if (it == numbers_.end()) return;
    Piece& piece = pieces[it->second];
    if (piece.first < 0) piece.first = time_;
    if (piece.last < 0 || !support::flip(share_storage_lifetimes)) piece.last = time_;
    piece.fixed = piece.fixed || fixes;
  }

  int time_ = 0;
  std::unordered_map<const VarNode*, size_t> numbers_;
};

class StorageSharing : public TirRewriter {
 public:
  // Statements that run one after the other: the body of a function or of a loop.
  Stmt steps(const Stmt& s) {
    const Timeline timeline(s);
    // Of one kind of memory and of elements, for an allocation has one type.
    std::map<std::pair<std::string, std::string>, std::vector<const Piece*>> kinds;
    for (const Piece& piece : timeline.pieces)
      if (!piece.fixed && piece.first >= 0)
        kinds[{piece.allocation->scope, piece.allocation->dtype.str()}].push_back(&piece);
    std::vector<Stmt> arenas;
    for (const auto& [kind, pieces] : kinds)
      if (Stmt arena = shared(pieces)) arenas.push_back(std::move(arena));
    Stmt body = inside(s);
    for (size_t k = arenas.size(); k-- > 0;)
      body = with(*arenas[k].as<Allocate>(), [&](Allocate& copy) { copy.body = body; });
    return body;
  }

 protected:
  Stmt visit_stmt(Stmt s) override {
    if (const auto* realize = s.as<BlockRealize>(); realize && !realize->block->alloc_buffers.empty())
      throw support::DiagnosticError(
          support::Diagnostic{.code = codes::illegal_after_stage,
                              .message = fmt::format("block '{}' allocates '{}' itself, for as long as it runs",
                                                     realize->block->name, realize->block->alloc_buffers[0]->name),
                              .help = "run LowerOpaqueBlock before"});
    if (const auto* allocate = s.as<Allocate>(); allocate && places_.count(allocate->buffer_var.get()))
      return (*this)(allocate->body);
    if (const auto* loop = s.as<For>()) {
      const Expr min = (*this)(loop->min), extent = (*this)(loop->extent);
      Stmt body = steps(loop->body);
      if (min == loop->min && extent == loop->extent && body == loop->body) return s;
      return with(*loop, [&](For& copy) {
        copy.min = min;
        copy.extent = extent;
        copy.body = std::move(body);
      });
    }
    if (const auto* repeat = s.as<While>()) return make<While>((*this)(repeat->condition), steps(repeat->body));
    Stmt rewritten = children(std::move(s));
    const auto* store = rewritten.as<BufferStore>();
    const Buffer moved_to = store ? moved(store->buffer) : Buffer();
    return moved_to ? with(*store, [&](BufferStore& copy) { copy.buffer = moved_to; }) : rewritten;
  }
  Expr visit_expr(Expr e) override {
    Expr rewritten = children(std::move(e));
    const auto* load = rewritten.as<BufferLoad>();
    const Buffer moved_to = load ? moved(load->buffer) : Buffer();
    return moved_to ? with(*load, [&](BufferLoad& copy) { copy.buffer = moved_to; }) : rewritten;
  }
  NodeRef visit_other(NodeRef node) override {
    NodeRef rewritten = descend(std::move(node));
    const auto* region = rewritten.as<BufferRegionNode>();
    const Buffer moved_to = region ? moved(region->buffer) : Buffer();
    return moved_to ? NodeRef(with(*region, [&](BufferRegionNode& copy) { copy.buffer = moved_to; })) : rewritten;
  }

 private:
  Stmt inside(const Stmt& s) { return (*this)(s); }

  // The allocation, without a body yet, that all of the pieces lie in; null where they would take as much.
  Stmt shared(const std::vector<const Piece*>& pieces) {
    const Allocate& one = *pieces[0]->allocation;
    const int64_t alignment = std::max<int64_t>(1, alignment_bits / (one.dtype.storage_bits() * one.dtype.lanes));
    std::vector<support::Lifetime> lifetimes;
    int64_t apart = 0;
    for (const Piece* piece : pieces) {
      lifetimes.push_back({piece->elements, piece->first, piece->last});
      apart += support::aligned(piece->elements, alignment);
    }
    const support::Layout layout = support::place_by_size(lifetimes, alignment);
    if (layout.size >= apart) return {};
    const Var memory = make<VarNode>("shared_" + one.scope, DType::handle());
    int64_t end = 0;
    for (size_t k = 0; k < pieces.size(); ++k) {
      places_[pieces[k]->allocation->buffer_var.get()] = {memory, layout.offsets[k]};
      end = std::max(end, layout.offsets[k] + pieces[k]->elements);
      kept_.push_back(pieces[k]->allocation);
    }
    return make<Allocate>(memory, one.dtype, std::vector<Expr>{int64(end)}, one.scope, nop());
  }

  // The buffer where its memory lies now; null where that has not moved.
  Buffer moved(const Buffer& buffer) {
    const auto place = places_.find(buffer->data.get());
    if (place == places_.end()) return {};
    auto& [original, made] = buffers_[buffer.get()];
    if (!made) {
      original = buffer;
      made = with(*buffer, [&](BufferNode& copy) {
        copy.data = place->second.memory;
        if (place->second.offset == 0) return;
        const Expr offset = int64(place->second.offset);
        copy.elem_offset = copy.elem_offset ? add(copy.elem_offset, cast(copy.elem_offset->dtype, offset)) : offset;
      });
    }
    return made;
  }

  Places places_;
  std::vector<Ref<Allocate>> kept_;  // alive: `places_` goes by address
  std::unordered_map<const BufferNode*, std::pair<Buffer, Buffer>> buffers_;
};

}  // namespace

Result<IRModule> share_storage(IRModule module, const PassContext&) {
  return on_each_body(std::move(module), [](const Stmt& body) { return StorageSharing().steps(body); });
}

}  // namespace lathe::tir
