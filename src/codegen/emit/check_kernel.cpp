// What every backend relies on: the rules of kernel tir that the emitters do not check again.
#include "codegen/emit/codes.h"
#include "codegen/emit/kernel.h"
#include "ir/match.h"
#include "ir/visit.h"
#include "tir/analysis/calls.h"
#include "tir/register_index.h"

namespace lathe::codegen {

using namespace ir;   // NOLINT
using namespace tir;  // NOLINT

namespace {

class Checker {
 public:
  Checker(const Kernel& kernel, std::string_view target_kind) : kernel_(kernel), target_kind_(target_kind) {}

  support::Diagnostics run() {
    const PrimFunc& f = *kernel_.function;
    bool scalars = false;
    for (const Var& param : f.params) {
      defined_.insert(param.get());
      if (const Buffer b = f.buffer_of(param)) {
        if (scalars) refuse(f.body, "a handle parameter comes after a scalar");
        defined_.insert(b->data.get());
        check_buffer(f.body, b);
      } else {
        scalars = true;
        if (param->dtype != DType::int64())
          refuse(f.body, fmt::format("parameter '{}' is {}, scalars are int64", param->name, param->dtype.str()));
      }
    }
    statement(f.body);
    return std::move(diagnostics_);
  }

 private:
  void refuse(const NodeRef& at, const std::string& what, const char* help = "") {
    if (diagnostics_.size() >= 16) return;
    diagnostics_.push_back({.code = codes::illegal_kernel,
                            .place = at && at->origin() ? *at->origin() : support::Place{},
                            .message = fmt::format("kernel '{}': {}", kernel_.name, what),
                            .help = help});
  }

  static bool storable(DType t) {
    if (t.is_void()) return false;
    if (t.is_integer())
      return t.bits == 1 || t.bits == 2 || t.bits == 4 || (t.bits % 8 == 0 && std::has_single_bit(t.bits));
    return true;
  }

  void check_buffer(const NodeRef& at, const Buffer& b) {
    if (!b->dtype.is_scalar()) refuse(at, fmt::format("buffer '{}' has vector elements {}", b->name, b->dtype.str()));
    if (!storable(b->dtype)) refuse(at, fmt::format("buffer '{}' of {} cannot be stored", b->name, b->dtype.str()));
    if (b->shape.size() > 1)
      refuse(at, fmt::format("buffer '{}' has {} dimensions, not one", b->name, b->shape.size()));
    if (!b->strides.empty() && !is_int(b->strides[0], 1)) refuse(at, fmt::format("buffer '{}' has strides", b->name));
    if (b->elem_offset && !is_int(b->elem_offset, 0)) refuse(at, fmt::format("buffer '{}' has an offset", b->name));
  }

  void access(const NodeRef& at, const Buffer& b, const std::vector<Expr>& indices, const Expr& predicate) {
    check_buffer(at, b);
    if (!defined_.count(b->data.get())) refuse(at, fmt::format("buffer '{}' has no memory here", b->name));
    if (indices.size() != 1)
      return refuse(at, fmt::format("an access of '{}' has {} indices, not one", b->name, indices.size()));
    const Expr& index = indices[0];
    if (index->dtype.element() != DType::int64())
      refuse(at, fmt::format("an index of '{}' is {}", b->name, index->dtype.str()));
    if (predicate && (!predicate->dtype.is_bool() || predicate->dtype.lanes != index->dtype.lanes))
      refuse(at, fmt::format("a predicate of '{}' is {} for {} lanes", b->name, predicate->dtype.str(),
                             index->dtype.lanes));
    const auto r = register_extent_.find(b->data.get());
    if (r != register_extent_.end()) {
      const auto place = tir::register_index(index);
      if (!place || (place->stride > 1 && at.is<BufferStore>()))
        return refuse(at, fmt::format("an index into '{}' of scope register is not constant", b->name));
      const int64_t last = place->first + (place->lanes - 1) * place->stride;
      if (place->first < 0 || last >= r->second)
        refuse(at, fmt::format("index {} is outside of '{}' with {} elements", last, b->name, r->second));
    }
    expression(index);
    if (predicate) expression(predicate);
  }

  void expression(const Expr& e) {
    pre_order(e, [&](const NodeRef& n) {
      if (n->node_class().family != ExprNode::family) return false;
      const Expr here(static_cast<const ExprNode*>(n.get()));
      if (const auto* l = here.as<BufferLoad>()) {
        access(n, l->buffer, l->indices, l->predicate);
        return false;
      }
      if (const auto* l = here.as<Let>()) defined_.insert(l->var.get());
      if (const auto* v = here.as<VarNode>()) {
        if (!defined_.count(v)) refuse(n, fmt::format("'{}' has no value here", v->name));
      }
      if (here.is<Reduce>()) refuse(n, "a Reduce is left");
      if (here.is<GlobalVar>()) refuse(n, "a kernel calls a function of the module");
      if (const auto* c = here.as<Call>()) {
        if (c->op == &intrinsic::call_packed)
          if (const std::string wrong = tir::wrong_registered_call(*c); !wrong.empty()) refuse(n, wrong);
        const auto* element = c->op == &intrinsic::address_of ? c->args.at(0).as<BufferLoad>() : nullptr;
        if (element && register_extent_.count(element->buffer->data.get()))
          refuse(n, fmt::format("the address of '{}' is taken, which is in registers", element->buffer->name));
      }
      return true;
    });
  }

  void loop(const For& f) {
    expression(f.min);
    expression(f.extent);
    defined_.insert(f.loop_var.get());
    if (f.kind == ForKind::thread_binding)
      refuse(NodeRef(&f),
             fmt::format("loop '{}' is bound to {}, and a target of kind '{}' has no such threads", f.loop_var->name,
                         f.thread_binding->thread_tag, target_kind_),
             "leave the binding out, or run its iterations by sch.parallel or sch.vectorize instead; target=\"interp\" "
             "runs the function as it is");
    else if (f.kind != ForKind::serial && f.kind != ForKind::parallel)
      refuse(NodeRef(&f), fmt::format("loop '{}' is neither serial nor parallel", f.loop_var->name));
    if (f.kind != ForKind::parallel || parallel_) return statement(f.body);
    // Registers do not reach into the body of a parallel loop: other threads run it.
    const auto outer = std::exchange(register_extent_, {});
    for (const auto& [var, extent] : outer) defined_.erase(var);
    parallel_ = true;
    statement(f.body);
    parallel_ = false;
    register_extent_ = outer;
    for (const auto& [var, extent] : outer) defined_.insert(var);
  }

  void allocate(const Allocate& a) {
    for (const Expr& e : a.extents) expression(e);
    if (a.extents.size() > 1) refuse(NodeRef(&a), "an allocation has more than one extent");
    const auto extent = a.extents.empty() ? std::optional<int64_t>(1) : as_int(a.extents[0]);
    // A unit's own name for a part of memory, as "global.A_unit", is memory.
    const bool is_global = a.scope == "global" || a.scope.starts_with("global.");
    if (!is_global && a.scope != "local" && a.scope != "register")
      refuse(NodeRef(&a), fmt::format("scope '{}' is unknown", a.scope));
    else if (!is_global && !extent)
      refuse(NodeRef(&a), fmt::format("'{}' of scope {} has no constant size", a.buffer_var->name, a.scope));
    if (!a.dtype.is_scalar() || !storable(a.dtype))
      refuse(NodeRef(&a), fmt::format("'{}' of {} cannot be stored", a.buffer_var->name, a.dtype.str()));
    defined_.insert(a.buffer_var.get());
    if (a.scope == "register") register_extent_[a.buffer_var.get()] = extent.value_or(0);
    statement(a.body);
  }

  void statement(const Stmt& s) {
    match_all(
        s,
        [&](const LetStmt& n) {
          expression(n.value);
          defined_.insert(n.var.get());
          statement(n.body);
        },
        [&](const AttrStmt& n) { statement(n.body); }, [&](const AssertStmt& n) { expression(n.condition); },
        [&](const BufferStore& n) {
          expression(n.value);
          access(s, n.buffer, n.indices, n.predicate);
          const int lanes = n.indices.empty() ? 1 : n.indices[0]->dtype.lanes;
          if (n.value->dtype != n.buffer->dtype.with_lanes(lanes))
            refuse(s, fmt::format("a store of {} into {} lanes of {} '{}'", n.value->dtype.str(), lanes,
                                  n.buffer->dtype.str(), n.buffer->name));
        },
        [&](const DeclBuffer&) { refuse(s, "a DeclBuffer is left"); }, [&](const Allocate& n) { allocate(n); },
        [&](const AllocateConst& n) {
          defined_.insert(n.buffer_var.get());
          statement(n.body);
        },
        [&](const SeqStmt& n) {
          for (const Stmt& child : n.seq) statement(child);
        },
        [&](const IfThenElse& n) {
          expression(n.condition);
          statement(n.then_case);
          if (n.else_case) statement(n.else_case);
        },
        [&](const Evaluate& n) { expression(n.value); }, [&](const For& n) { loop(n); },
        [&](const While& n) {
          expression(n.condition);
          statement(n.body);
        },
        [&](const Block& n) { refuse(s, fmt::format("block '{}' is left", n.name)); },
        [&](const BlockRealize& n) { refuse(s, fmt::format("block '{}' is left", n.block->name)); });
  }

  const Kernel& kernel_;
  std::string_view target_kind_;
  std::unordered_set<const VarNode*> defined_;
  std::unordered_map<const VarNode*, int64_t> register_extent_;
  bool parallel_ = false;
  support::Diagnostics diagnostics_;
};

}  // namespace

support::Diagnostics check_kernel(const Kernel& kernel, std::string_view target_kind) {
  return Checker(kernel, target_kind).run();
}

}  // namespace lathe::codegen
