#include "tir/verify.h"

#include "arith/analyzer.h"
#include "ir/match.h"
#include "tir/analysis/calls.h"
#include "tir/analysis/loop_exits.h"
#include "tir/analysis/regions.h"
#include "tir/codes.h"
#include "tir/intrinsics/context.h"
#include "tir/register_index.h"
#include "tir/rewrite.h"
#include "tir/stages.h"

namespace lathe::tir {
namespace {

constexpr size_t most_reported = 16;

// What an exit leaves: a serial loop or a while; a loop that it must not leave; nothing in this block.
enum class Leaving : uint8_t { allowed, other_loop, nothing };

class Verification {
 public:
  Verification(const Function& function, const ir::RowsRun& passes) : function_(function), passes_(passes) {}

  // Whether something in the function calls one of the module, or a registered one: known when `run` is done.
  bool calls() const { return calls_; }

  support::Diagnostics run() {
    for (const Var& param : function_->params) define(param, "a parameter");
    for (const auto& [handle, buffer] : function_->buffer_map) {
      if (std::find(function_->params.begin(), function_->params.end(), handle) == function_->params.end())
        report(codes::undefined_variable,
               fmt::format("the handle '{}' of buffer '{}' is no parameter", handle->name, buffer->name));
      define(buffer->data, "a buffer's address");
      // The arguments' shapes bind the symbols in them.
      for (const auto* list : {&buffer->shape, &buffer->strides})
        for (const Expr& e : *list)
          for (const Var& v : free_vars(e)) bind_symbol(*v);
      if (buffer->elem_offset)
        for (const Var& v : free_vars(buffer->elem_offset)) bind_symbol(*v);
    }
    statement(function_->body);
    return std::move(found_);
  }

 private:
  void report(support::Code code, std::string message) {
    if (found_.size() >= most_reported) return;
    found_.push_back({.code = code, .place = origin_ ? *origin_ : support::Place(), .message = std::move(message)});
  }
  // `detail` gives what is said of the place: most constructs are legal, and nothing is said.
  void require_legal(Construct construct, support::function_ref<std::string()> detail) {
    if (const StageRow* row = illegal_after(construct, passes_))
      report(codes::illegal_after_stage,
             fmt::format("{}{} is not legal {}", row->what, detail(),
                         row->gone_after.empty() ? std::string("in a tensor function")
                                                 : fmt::format("after '{}'", row->gone_after)));
  }
  void require_legal(Construct construct) {
    require_legal(construct, [] { return std::string(); });
  }

  bool is_defined(const VarNode& var) const {
    const auto it = vars_.find(&var);
    return it != vars_.end() && it->second.is_defined;
  }
  void define(const Var& var, const char* what) {
    KnownVar& known = vars_[var.get()];
    if (known.was_defined)
      report(codes::redefinition, fmt::format("'{}', {}, is defined a second time", var->name, what));
    known = {true, true};
  }
  // A symbol that an argument's or a matched buffer's shape binds.
  void bind_symbol(const VarNode& symbol) { vars_[&symbol].is_defined = true; }
  void end(const Var& var) { vars_[var.get()].is_defined = false; }
  // `body` runs where `var` is defined, and only there.
  void scoped(const Var& var, const char* what, support::function_ref<void()> body) {
    define(var, what);
    body();
    end(var);
  }

  // Whether a field that must be there is; false is reported.
  bool present(const auto& field, std::string_view kind, const char* name) {
    if (field) return true;
    report(codes::missing_field, fmt::format("a {} has no {}", kind, name));
    return false;
  }

  void same_dtype(const char* what, DType a, DType b) {
    if (a != b) report(codes::dtype_mismatch, fmt::format("{} has dtypes {} and {}", what, a.str(), b.str()));
  }
  void condition(const Expr& e, const char* what, int lanes = 1) {
    if (!e) return report(codes::missing_field, fmt::format("{} is missing", what));
    expression(e);
    if (!e->dtype.is_bool() || e->dtype.lanes != lanes)
      report(codes::dtype_mismatch,
             fmt::format("{} has dtype {}, not {}", what, e->dtype.str(), DType::boolean(lanes).str()));
  }
  void integer(const Expr& e, const char* what) {
    if (!e) return report(codes::missing_field, fmt::format("{} is missing", what));
    expression(e);
    if (!e->dtype.is_integer())
      report(codes::index_not_integer, fmt::format("{} has dtype {}, which is no integer", what, e->dtype.str()));
  }

  void buffer_use(const Buffer& buffer) {
    if (buffer->data && !is_defined(*buffer->data))
      report(codes::undefined_variable, fmt::format("buffer '{}' is used where it is not allocated", buffer->name));
  }

  void access(bool is_write, const Buffer& buffer, const std::vector<Expr>& indices, const Expr& predicate) {
    const char* what = is_write ? "a store" : "a load";
    if (!present(buffer, what, "buffer")) return;
    buffer_use(buffer);
    if (indices.size() != buffer->shape.size())
      report(codes::rank_mismatch, fmt::format("{} of '{}' has {} indices, the buffer has {} dimensions", what,
                                               buffer->name, indices.size(), buffer->shape.size()));
    int lanes = 1;
    for (size_t d = 0; d < indices.size(); ++d) {
      integer(indices[d], "an index");
      if (!indices[d]) continue;
      if (indices[d]->dtype.is_vector() && d + 1 != indices.size())
        report(codes::rank_mismatch,
               fmt::format("{} of '{}' has a vector in index {}, which is not the last", what, buffer->name, d));
      lanes = std::max<int>(lanes, indices[d]->dtype.lanes);
    }
    if (predicate) condition(predicate, "the predicate of an access", lanes);
    if (indices.size() != 1 || (indices[0] && indices[0]->dtype.element() != DType::int64()))
      require_legal(Construct::indexed_buffer, [&] { return fmt::format(" ({} of '{}')", what, buffer->name); });
    if (buffer->scope == "register" && !indices.empty() && indices[0]) {
      const auto index = register_index(indices[0]);
      if (!index || (index->stride > 1 && is_write))
        require_legal(Construct::register_variable, [&] { return fmt::format(" ('{}')", buffer->name); });
    }
  }

  static bool is_narrow(DType t) { return t.is_floating() && !(t.is_ieee_float() && t.bits >= 32); }

  template <class Kind>
  void binary(const Kind& n) {
    if (!present(n.a, n.node_class().name, "left operand") || !present(n.b, n.node_class().name, "right operand"))
      return;
    expression(n.a);
    expression(n.b);
    same_dtype("a binary operation", n.a->dtype, n.b->dtype);
    if (is_narrow(n.a->dtype)) require_legal(Construct::narrow_arithmetic);
  }

  void expression(const Expr& e) {
    const support::Place* outer = origin_;
    if (e->origin()) origin_ = e->origin().get();
    match(
        e,
        [&](const VarNode& n) {
          if (!is_defined(n))
            report(codes::undefined_variable, fmt::format("variable '{}' is not defined here", n.name));
        },
        [&](const Add& n) { binary(n); }, [&](const Sub& n) { binary(n); }, [&](const Mul& n) { binary(n); },
        [&](const Div& n) { binary(n); }, [&](const Mod& n) { binary(n); }, [&](const FloorDiv& n) { binary(n); },
        [&](const FloorMod& n) { binary(n); }, [&](const Min& n) { binary(n); }, [&](const Max& n) { binary(n); },
        [&](const EQ& n) { binary(n); }, [&](const NE& n) { binary(n); }, [&](const LT& n) { binary(n); },
        [&](const LE& n) { binary(n); }, [&](const GT& n) { binary(n); }, [&](const GE& n) { binary(n); },
        [&](const And& n) { binary(n); }, [&](const Or& n) { binary(n); },
        [&](const Select& n) {
          condition(n.condition, "the condition of a select", n.condition ? n.condition->dtype.lanes : 1);
          expression(n.true_value);
          expression(n.false_value);
          same_dtype("a select", n.true_value->dtype, n.false_value->dtype);
        },
        [&](const Let& n) {
          expression(n.value);
          same_dtype("a let", n.var->dtype, n.value->dtype);
          scoped(n.var, "a let variable", [&] { expression(n.body); });
        },
        [&](const BufferLoad& n) { access(false, n.buffer, n.indices, n.predicate); },
        [&](const Call& n) {
          if (!n.op) return report(codes::missing_field, "a call names no intrinsic");
          if (n.op == &intrinsic::break_loop || n.op == &intrinsic::continue_loop)
            report(codes::wrong_loop_exit, fmt::format("T.{}() is a statement, and has no value", n.op->name));
          if (n.op == &intrinsic::call_function) require_legal(Construct::function_call);
          calls_ = calls_ || n.op == &intrinsic::call_function || n.op == &intrinsic::call_packed;
          if (n.op == &intrinsic::likely || n.op == &intrinsic::assume) require_legal(Construct::helper_intrinsic);
          const bool moves = n.op == &intrinsic::if_then_else || n.op == &intrinsic::reinterpret ||
                             n.op == &intrinsic::undef || n.op == &intrinsic::nextafter;
          if (is_narrow(n.dtype) && !moves && n.op->effect == Effect::pure) require_legal(Construct::narrow_arithmetic);
          for (const Expr& arg : n.args)
            if (present(arg, "call", "argument")) expression(arg);
        },
        [&](const Reduce&) { require_legal(Construct::reduce); },
        [&](const ExprNode& n) {
          n.node_class().for_each_child(n, [&](const NodeRef& child) {
            if (child->node_class().family == ExprNode::family)
              expression(Expr(static_cast<const ExprNode*>(child.get())));
          });
        });
    origin_ = outer;
  }

  void store(const BufferStore& n) {
    access(true, n.buffer, n.indices, n.predicate);
    if (!present(n.value, "BufferStore", "value") || !n.buffer) return;
    expression(n.value);
    const int lanes = n.indices.empty() || !n.indices.back() ? 1 : n.indices.back()->dtype.lanes;
    const DType expected = n.buffer->dtype.with_lanes(n.buffer->dtype.lanes * lanes);
    if (n.value->dtype != expected)
      report(codes::dtype_mismatch, fmt::format("a value of {} is stored in '{}', which takes {}", n.value->dtype.str(),
                                                n.buffer->name, expected.str()));
  }

  void loop(const For& n) {
    integer(n.min, "the start of a loop");
    integer(n.extent, "the extent of a loop");
    if (n.min && n.extent && (n.min->dtype != n.loop_var->dtype || n.extent->dtype != n.loop_var->dtype))
      report(codes::dtype_mismatch, fmt::format("loop '{}' of {} runs from {} over {}", n.loop_var->name,
                                                n.loop_var->dtype.str(), n.min->dtype.str(), n.extent->dtype.str()));
    if (n.kind == ForKind::vectorized)
      require_legal(Construct::vectorized_loop, [&] { return fmt::format(" ('{}')", n.loop_var->name); });
    if (n.kind == ForKind::unrolled)
      require_legal(Construct::unrolled_loop, [&] { return fmt::format(" ('{}')", n.loop_var->name); });
    const bool parallel = n.kind == ForKind::parallel;
    if (parallel && parallel_depth_ > 0)
      require_legal(Construct::nested_parallel, [&] { return fmt::format(" ('{}')", n.loop_var->name); });
    parallel_depth_ += parallel;
    const auto body = [&] { scoped(n.loop_var, "a loop variable", [&] { body_of(n.body, "For"); }); };
    may_be_left(n.kind == ForKind::serial ? Leaving::allowed : Leaving::other_loop, body);
    parallel_depth_ -= parallel;
  }

  // `body` runs inside a loop, or a block: which T.break_loop and T.continue_loop in it then belong to.
  void may_be_left(Leaving around, support::function_ref<void()> body) {
    const Around outside = std::exchange(around_, {around, false, {}});
    body();
    if (around_.left && !around_.block.empty())
      report(codes::wrong_loop_exit,
             fmt::format("the loop around block '{}' is left before its end: only loops inside a block, and those "
                         "without blocks, can be",
                         around_.block));
    std::string block = around == Leaving::nothing ? std::string() : std::move(around_.block);
    around_ = outside;
    if (around_.block.empty()) around_.block = std::move(block);
  }

  void loop_exit(const Evaluate& n) {
    const Intrinsic& op = *n.value.as<Call>()->op;
    require_legal(Construct::loop_exit, [&] { return fmt::format(" (T.{})", op.name); });
    around_.left = true;
    if (around_.leaving == Leaving::nothing)
      report(codes::wrong_loop_exit,
             fmt::format("T.{}() stands in no loop{}", op.name, block_depth_ > 0 ? " of its block" : ""));
    if (around_.leaving == Leaving::other_loop)
      report(codes::wrong_loop_exit,
             fmt::format("T.{}() leaves a loop that is not serial: its iterations have no order", op.name));
  }

  void body_of(const Stmt& body, const char* kind) {
    if (present(body, kind, "body")) statement(body);
  }

  void realize(const BlockRealize& n) {
    require_legal(Construct::block);
    if (!present(n.block, "BlockRealize", "block")) return;
    const Block& block = *n.block;
    if (block.init) require_legal(Construct::block_init, [&] { return fmt::format(" ('{}')", block.name); });
    if (n.iter_values.size() != block.iter_vars.size())
      report(codes::binding_count, fmt::format("block '{}' has {} iteration variables and {} values", block.name,
                                               block.iter_vars.size(), n.iter_values.size()));
    for (const Expr& value : n.iter_values) integer(value, "the value of a block's variable");
    condition(n.predicate, "the predicate of a block");
    for (const IterVar& iter : block.iter_vars) {
      integer(iter->dom.min, "the start of a block variable's domain");
      integer(iter->dom.extent, "the extent of a block variable's domain");
      define(iter->var, "a block's variable");
    }
    for (const Buffer& buffer : block.alloc_buffers) define(buffer->data, "an allocated buffer");
    for (const MatchBufferRegion& match : block.match_buffers) {
      buffer_use(match->source->buffer);
      define(match->buffer->data, "a matched buffer");
      for (const Expr& stride : match->buffer->strides)
        if (const auto* symbol = stride.as<VarNode>()) bind_symbol(*symbol);
      if (const auto* symbol = match->buffer->elem_offset ? match->buffer->elem_offset.as<VarNode>() : nullptr)
        bind_symbol(*symbol);
    }
    for (const auto* list : {&block.reads, &block.writes})
      for (const BufferRegion& region : *list) {
        buffer_use(region->buffer);
        if (region->region.size() != region->buffer->shape.size())
          report(codes::rank_mismatch,
                 fmt::format("block '{}' declares {} ranges of '{}', which has {} dimensions", block.name,
                             region->region.size(), region->buffer->name, region->buffer->shape.size()));
      }
    if (around_.block.empty()) around_.block = block.name;
    const size_t blocks_before = ++blocks_;
    ++block_depth_;
    may_be_left(Leaving::nothing, [&] {
      if (block.init) statement(block.init);
      body_of(block.body, "Block");
    });
    --block_depth_;
    const bool believed = tensor_intrin_of(block) || block.annotations.contains(hidden_access_key);
    const bool never_runs = is_int(n.predicate, 0);
    if (block.name != "root" && !believed && !never_runs && found_.empty())
      declared_regions(block, blocks_ != blocks_before);
    for (const IterVar& iter : block.iter_vars) end(iter->var);
    for (const Buffer& buffer : block.alloc_buffers) end(buffer->data);
    for (const MatchBufferRegion& match : block.match_buffers) end(match->buffer->data);
  }

  // Whether each of the regions is declared word for word, and nothing is of a buffer that none is of.
  static bool declares_exactly(const std::vector<BufferRegion>& declared, const std::vector<BufferRegion>& regions) {
    const auto same_range = [](const Range& a, const Range& b) {
      return structural_equal(a.min, b.min) && structural_equal(a.extent, b.extent);
    };
    const auto equal = [&](const BufferRegion& a, const BufferRegion& b) {
      return a->buffer == b->buffer &&
             std::equal(a->region.begin(), a->region.end(), b->region.begin(), b->region.end(), same_range);
    };
    const auto has = [](const std::vector<BufferRegion>& list, const auto& holds) {
      return std::any_of(list.begin(), list.end(), holds);
    };
    return std::all_of(regions.begin(), regions.end(),
                       [&](const auto& use) { return has(declared, [&](const auto& r) { return equal(r, use); }); }) &&
           std::all_of(declared.begin(), declared.end(), [&](const auto& r) {
             return has(regions, [&](const auto& use) { return use->buffer == r->buffer; });
           });
  }

  // What the body touches must be declared. Only a certain violation is an error: what cannot be decided is the
  // business of whoever relies on it.
  void declared_regions(const Block& block, bool has_inner_blocks) {
    if (!has_instances(block)) return;  // anything could be proved of its variables
    const Regions touched = infer_regions(block, false);
    // What is certain is part of what is touched, but where inner blocks declare less than they do, and for what a
    // reduction reads of its own result.
    if (!has_inner_blocks && declares_exactly(block.reads, touched.reads) &&
        declares_exactly(block.writes, touched.writes))
      return;
    const Regions certain = certain_regions(block);
    std::optional<arith::Analyzer> analyzer;  // made where what is declared is not what is found
    const auto proves = [&](const Expr& condition) {
      if (!analyzer) {
        analyzer.emplace();
        for (const IterVar& iter : block.iter_vars) analyzer->bind(iter->var, iter->dom);
      }
      return analyzer->can_prove(condition);
    };
    const auto declares = [](const std::vector<BufferRegion>& declared, const Buffer& buffer) {
      return std::any_of(declared.begin(), declared.end(), [&](const BufferRegion& r) { return r->buffer == buffer; });
    };
    const auto lies_outside = [&](const BufferRegion& use, const BufferRegion& region) {
      if (region->buffer != use->buffer || region->region.size() != use->region.size()) return true;
      for (size_t d = 0; d < use->region.size(); ++d) {
        const Range &a = use->region[d], &b = region->region[d];
        if (a.min->dtype != b.min->dtype || a.extent->dtype != b.extent->dtype || a.min->dtype != a.extent->dtype)
          continue;
        if (structural_equal(a.min, b.min) && structural_equal(a.extent, b.extent)) continue;
        if (proves(lt(a.min, b.min)) || proves(gt(a.min + a.extent, b.min + b.extent))) return true;
      }
      return false;
    };
    const auto compare = [&](const std::vector<BufferRegion>& used, const std::vector<BufferRegion>& surely,
                             const std::vector<BufferRegion>& declared, const char* what) {
      for (const BufferRegion& use : used)
        if (!declares(declared, use->buffer))
          report(codes::region_not_covered,
                 fmt::format("block '{}' {} '{}' without declaring it", block.name, what, use->buffer->name));
      for (const BufferRegion& use : surely)
        if (declares(declared, use->buffer) &&
            std::all_of(declared.begin(), declared.end(),
                        [&](const BufferRegion& region) { return lies_outside(use, region); }))
          report(codes::region_not_covered,
                 fmt::format("block '{}' {} more of '{}' than it declares", block.name, what, use->buffer->name));
    };
    compare(touched.reads, certain.reads, block.reads, "reads");
    compare(touched.writes, certain.writes, block.writes, "writes");
  }

  void statement(const Stmt& s) {
    const support::Place* outer = origin_;
    if (s->origin()) origin_ = s->origin().get();
    match_all(
        s,
        [&](const LetStmt& n) {
          expression(n.value);
          same_dtype("a let", n.var->dtype, n.value->dtype);
          scoped(n.var, "a let variable", [&] { body_of(n.body, "LetStmt"); });
        },
        [&](const AttrStmt& n) {
          if (n.value) expression(n.value);
          body_of(n.body, "AttrStmt");
        },
        [&](const AssertStmt& n) { condition(n.condition, "the condition of an assertion"); },
        [&](const BufferStore& n) { store(n); },
        [&](const DeclBuffer& n) {
          require_legal(Construct::declared_buffer);
          if (n.buffer->data && is_defined(*n.buffer->data)) return body_of(n.body, "DeclBuffer");
          scoped(n.buffer->data, "a declared buffer", [&] { body_of(n.body, "DeclBuffer"); });
        },
        [&](const Allocate& n) {
          for (const Expr& extent : n.extents) integer(extent, "the extent of an allocation");
          scoped(n.buffer_var, "an allocation", [&] { body_of(n.body, "Allocate"); });
        },
        [&](const AllocateConst& n) { scoped(n.buffer_var, "a constant", [&] { body_of(n.body, "AllocateConst"); }); },
        [&](const SeqStmt& n) {
          for (const Stmt& each : n.seq) body_of(each, "SeqStmt");
        },
        [&](const IfThenElse& n) {
          condition(n.condition, "the condition of an if");
          body_of(n.then_case, "IfThenElse");
          if (n.else_case) statement(n.else_case);
        },
        [&](const Evaluate& n) {
          if (!present(n.value, "Evaluate", "value")) return;
          is_loop_exit(s) ? loop_exit(n) : expression(n.value);
        },
        [&](const For& n) { loop(n); },
        [&](const While& n) {
          condition(n.condition, "the condition of a while");
          may_be_left(Leaving::allowed, [&] { body_of(n.body, "While"); });
        },
        [&](const Block& n) {
          report(codes::binding_count,
                 fmt::format("block '{}' stands alone, without values for its variables", n.name));
        },
        [&](const BlockRealize& n) { realize(n); });
    origin_ = outer;
  }

  const Function& function_;
  const ir::RowsRun& passes_;
  support::Diagnostics found_;
  const support::Place* origin_ = nullptr;  // of the node that is looked at
  struct KnownVar {
    bool was_defined = false, is_defined = false;
  };
  std::unordered_map<const VarNode*, KnownVar> vars_;
  int parallel_depth_ = 0, block_depth_ = 0;
  size_t blocks_ = 0;  // met so far
  struct Around {
    Leaving leaving = Leaving::nothing;
    bool left = false;
    std::string block;  // one inside
  };
  Around around_;
  bool calls_ = false;
};

}  // namespace

support::Diagnostics verify(const Function& function, const ir::RowsRun& passes) {
  return Verification(function, passes).run();
}

support::Diagnostics verify_module(const IRModule& module, const ir::RowsRun& passes) {
  support::Diagnostics all;
  bool calls = false;
  for (const auto& [name, function] : module) {
    if (!function.is<PrimFunc>()) continue;
    const Function f = ir::cast<PrimFunc>(function);
    Verification verification(f, passes);
    support::Diagnostics wrong = verification.run();
    calls = calls || verification.calls();
    for (support::Diagnostic& found : wrong) {
      found.note("in function '" + name + "'");
      all.push_back(std::move(found));
    }
  }
  if (all.empty() && calls) all = check_calls(module);
  return all;
}

}  // namespace lathe::tir
