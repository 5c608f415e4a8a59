#include "support/mutation.h"
#include "tir/codes.h"
#include "tir/passes/passes.h"
#include "tir/register_index.h"
#include "tir/rewrite.h"

namespace lathe::tir {

LATHE_FAULT(legalize_registers_zero, "tir_test", "the promotion of a buffer to registers swaps two of its elements");

namespace {

// A "local" buffer of at most this many bytes becomes registers when every index into it is constant.
constexpr int64_t promotable_bytes = 4096;

struct Uses {
  std::string name;
  std::optional<std::string> variable;  // why it cannot be registers: an access and its index
  int64_t granule = 0;                  // lanes of its accesses; 0: none yet, -1: they differ
};

// A constant element, or neighbours that start at a multiple of their number; a load may pick elements apart.
bool is_legal(const std::optional<RegisterIndex>& index, bool is_write) {
  if (!index) return false;
  return index->stride == 1 ? index->first % index->lanes == 0 : !is_write;
}

std::unordered_map<const VarNode*, Uses> uses_of_memory(const Stmt& body) {
  std::unordered_map<const VarNode*, Uses> uses;
  const auto access = [&](const Buffer& buffer, const std::vector<Expr>& indices, const Expr& predicate,
                          bool is_write) {
    Uses& u = uses[buffer->data.get()];
    u.name = buffer->name;
    const auto index = indices.size() == 1 ? register_index(indices[0]) : std::nullopt;
    if (!is_legal(index, is_write)) u.variable = "an index into it is not constant";
    if (predicate) u.variable = "an access to it is masked";
    const int64_t lanes = indices.empty() ? 1 : indices[0]->dtype.lanes;
    const bool together = !index || index->stride == 1;
    u.granule = together && (u.granule == 0 || u.granule == lanes) ? lanes : -1;
  };
  post_order(body, [&](const NodeRef& n) {
    if (const auto* load = n.as<BufferLoad>()) access(load->buffer, load->indices, load->predicate, false);
    if (const auto* store = n.as<BufferStore>()) access(store->buffer, store->indices, store->predicate, true);
    if (const auto* call = n.as<Call>(); call && call->op == &intrinsic::address_of)
      if (const auto* load = call->args[0].as<BufferLoad>())
        uses[load->buffer->data.get()].variable = "its address is taken";
  });
  return uses;
}

class RegisterPromotion : public TirRewriter {
 public:
  explicit RegisterPromotion(std::unordered_map<const VarNode*, Uses> uses) : uses_(std::move(uses)) {}

 protected:
  Stmt visit_stmt(Stmt s) override {
    const auto* allocate = s.as<Allocate>();
    if (allocate) {
      const auto it = uses_.find(allocate->buffer_var.get());
      const Uses uses = it == uses_.end() ? Uses{} : it->second;
      const auto extent = allocate->extents.size() == 1 ? as_int(allocate->extents[0]) : std::nullopt;
      if (allocate->scope == "register") {
        if (uses.variable || !extent)
          throw support::DiagnosticError(support::Diagnostic{
              .code = codes::register_index,
              .message = fmt::format("the buffer '{}' cannot live in registers: {}", allocate->buffer_var->name,
                                     uses.variable.value_or("its extent is not constant")),
              .help = "unroll the loops whose variables index it, or give it the scope 'local'"});
      } else if (allocate->scope == "local" && extent && !uses.variable && uses.granule > 0 &&
                 allocate->dtype.storage_bytes(*extent) <= promotable_bytes) {
        promoted_.insert(allocate->buffer_var.get());
        s = with(*allocate, [](Allocate& copy) { copy.scope = "register"; });
      }
    }
    Stmt rewritten = children(std::move(s));
    if (const auto* store = rewritten.as<BufferStore>(); store && promoted_.count(store->buffer->data.get()))
      return with(*store, [&](BufferStore& copy) {
        copy.buffer = in_registers(copy.buffer);
        if (is_int(copy.indices[0], 1) && support::flip(legalize_registers_zero)) copy.indices = {int64(0)};
      });
    return rewritten;
  }
  Expr visit_expr(Expr e) override {
    Expr rewritten = children(std::move(e));
    const auto* load = rewritten.as<BufferLoad>();
    if (!load || !promoted_.count(load->buffer->data.get())) return rewritten;
    return with(*load, [&](BufferLoad& copy) { copy.buffer = in_registers(copy.buffer); });
  }

 private:
  Buffer in_registers(const Buffer& buffer) {
    auto& slot = buffers_[buffer.get()];
    if (!slot.second) slot = {buffer, with(*buffer, [](BufferNode& copy) { copy.scope = "register"; })};
    return slot.second;
  }

  std::unordered_map<const VarNode*, Uses> uses_;
  std::unordered_set<const VarNode*> promoted_;
  std::unordered_map<const BufferNode*, std::pair<Buffer, Buffer>> buffers_;
};

}  // namespace

Result<IRModule> legalize_registers(IRModule module, const PassContext& context) {
  return on_each_body(std::move(module), context, [](const Stmt& body, const PassContext&) {
    return RegisterPromotion(uses_of_memory(body))(body);
  });
}

}  // namespace lathe::tir
