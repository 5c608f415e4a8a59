#include "schedule/primitives/tensorize/match_intrin.h"

#include "arith/analyzer.h"
#include "ir/visit.h"
#include "schedule/analysis/linear.h"
#include "schedule/analysis/tree.h"
#include "schedule/codes.h"
#include "tir/script/dialect.h"

namespace lathe::schedule {

namespace {

// An integer expression over int64, as which indices are meant whatever their dtype.
Expr as_index(const Expr& e) {
  return rewrite_post_order(e, [](NodeRef n) -> NodeRef {
    if (const auto* imm = n.as<IntImm>(); imm && imm->dtype.is_integer() && imm->dtype != DType::int64())
      return int64(imm->value);
    if (const auto* c = n.as<Cast>(); c && c->dtype.is_integer() && c->value->dtype == DType::int64()) return c->value;
    if (const auto* x = n.as<Add>()) return add(x->a, x->b);
    if (const auto* x = n.as<Sub>()) return sub(x->a, x->b);
    if (const auto* x = n.as<Mul>()) return mul(x->a, x->b);
    if (const auto* x = n.as<FloorDiv>()) return floordiv(x->a, x->b);
    if (const auto* x = n.as<FloorMod>()) return floormod(x->a, x->b);
    return n;
  });
}

class Matcher {
 public:
  Matcher(const BlockRealize& realize, const std::vector<const For*>& around) {
    for (const For* loop : around) known_.bind(loop->loop_var, Range{loop->min, loop->extent});
    for (const IterVar& iter : realize.block->iter_vars) known_.bind(iter->var, iter->dom);
  }

  std::optional<Diagnostic> difference() const { return difference_; }
  bool statement(const Stmt& d, const Stmt& p);
  Result<IntrinMatch> result(const std::string& name, const TensorIntrin& intrin);

 private:
  struct Place {
    Buffer buffer;
    std::vector<Expr> corner;
  };
  // What is assumed on the way, so that another way can be tried.
  struct Assumed {
    VarMap values;   // variables of the description, in terms of the program's loops
    VarMap program;  // the program's block and let variables, in terms of its loops
    std::unordered_map<Buffer, Place> places;
  };

  template <class T>
  bool differs(const T& d, const T& p, std::string why = {}) {
    if (!difference_) {
      difference_ = refuse(codes::intrin_mismatch, why);
      difference_->note("the description has: " + text(d));
      difference_->note("the program has: " + text(p));
    }
    return false;
  }
  static std::string text(const Expr& e) {
    std::string line = e ? statement_text(make<Evaluate>(e)) : "nothing";
    if (line.starts_with("T.evaluate(")) line = line.substr(11, line.rfind(')') - 11);
    return line;
  }
  static std::string text(const Stmt& s) {
    if (!s) return "nothing";
    const std::string all = statement_text(s);
    const size_t end = all.find('\n');
    return end == std::string::npos || end + 1 == all.size() ? all.substr(0, end) : all.substr(0, end) + " …";
  }

  Expr of_description(const Expr& e) { return as_index(substitute(as_index(e), now_.values)); }
  Expr of_program(const Expr& e) { return as_index(substitute(as_index(e), now_.program)); }
  // What stays the same while the program's inner loops run.
  bool is_fixed(const Expr& e) const {
    return std::none_of(inner_.begin(), inner_.end(), [&](const Var& v) { return uses_var(e, v); });
  }
  bool same_index(const Expr& d, const Expr& p) {
    const Expr a = of_description(d), b = of_program(p);
    return a->dtype == b->dtype && known_.can_prove_equal(a, b);
  }
  // The loop runs once, so that its variable is a number.
  static bool is_unit(const Stmt& s) { return s.is<For>() && is_int(s.as<For>()->extent, 1); }

  // The loop runs as often as the program's will say.
  bool is_open(const Stmt& s) const {
    const auto* symbol = s.is<For>() ? s.as<For>()->extent.as<VarNode>() : nullptr;
    return symbol && !now_.values.count(Var(symbol));
  }

  bool loop(const For& d, const For& p);
  bool block(const BlockRealize& d, const BlockRealize& p);
  bool initial(const BlockRealize& d, const BlockRealize& p);
  bool predicate(const Expr& d, const Expr& p, const Stmt& at_d, const Stmt& at_p);
  bool value(const Expr& d, const Expr& p);
  bool operands(const NodeRef& d, const NodeRef& p);
  bool access(const Buffer& d, const std::vector<Expr>& d_indices, const Buffer& p, const std::vector<Expr>& p_indices,
              const Expr& at_d, const Expr& at_p);

  arith::Analyzer known_;
  Assumed now_;
  std::vector<Var> inner_;  // the program's loops inside the block
  std::optional<Diagnostic> difference_;
};

bool Matcher::statement(const Stmt& d, const Stmt& p) {
  if (is_unit(p) && !is_unit(d) && !is_open(d)) {
    now_.program[p.as<For>()->loop_var] = of_program(p.as<For>()->min);
    return statement(d, p.as<For>()->body);
  }
  if (is_unit(d) && !is_unit(p)) {
    now_.values[d.as<For>()->loop_var] = of_description(d.as<For>()->min);
    return statement(d.as<For>()->body, p);
  }
  if (&d->node_class() != &p->node_class()) return differs(d, p, "another kind of statement");
  if (const auto* a = d.as<For>()) return loop(*a, *p.as<For>());
  if (const auto* a = d.as<BlockRealize>()) return block(*a, *p.as<BlockRealize>());
  if (const auto* a = d.as<BufferStore>()) {
    const auto* b = p.as<BufferStore>();
    if (a->predicate || b->predicate) return differs(d, p, "a store under a mask");
    return access(a->buffer, a->indices, b->buffer, b->indices, ir::load(a->buffer, a->indices),
                  ir::load(b->buffer, b->indices)) &&
           value(a->value, b->value);
  }
  if (const auto* a = d.as<SeqStmt>()) {
    const auto* b = p.as<SeqStmt>();
    if (a->seq.size() != b->seq.size())
      return differs(d, p, fmt::format("{} statements and {}", a->seq.size(), b->seq.size()));
    for (size_t i = 0; i < a->seq.size(); ++i)
      if (!statement(a->seq[i], b->seq[i])) return false;
    return true;
  }
  if (const auto* a = d.as<IfThenElse>()) {
    const auto* b = p.as<IfThenElse>();
    if (!value(a->condition, b->condition) || !statement(a->then_case, b->then_case)) return false;
    if (!a->else_case != !b->else_case) return differs(d, p, "one has an else and the other does not");
    return !a->else_case || statement(a->else_case, b->else_case);
  }
  if (const auto* a = d.as<LetStmt>()) {
    const auto* b = p.as<LetStmt>();
    if (!value(a->value, b->value)) return false;
    now_.values[a->var] = b->var;
    return statement(a->body, b->body);
  }
  if (const auto* a = d.as<Evaluate>()) return value(a->value, p.as<Evaluate>()->value);
  return differs(d, p, "a kind of statement that no description has");
}

bool Matcher::loop(const For& d, const For& p) {
  const Stmt at_d(&d), at_p(&p);
  if (p.kind == ForKind::thread_binding) return differs(at_d, at_p, "a loop over threads");
  const auto* symbol = d.extent.as<VarNode>();
  if (symbol && !now_.values.count(Var(symbol))) {
    const Expr extent = of_program(p.extent);
    if (!is_fixed(extent)) return differs(at_d, at_p, "an extent that changes");
    now_.values[Var(symbol)] = extent;
  }
  if (!same_index(d.min, p.min) || !same_index(d.extent, p.extent))
    return differs(at_d, at_p, "loops over other ranges");
  known_.bind(p.loop_var, Range{of_program(p.min), of_program(p.extent)});
  inner_.push_back(p.loop_var);
  now_.values[d.loop_var] = as_index(p.loop_var);
  return statement(d.body, p.body);
}

bool Matcher::predicate(const Expr& d, const Expr& p, const Stmt& at_d, const Stmt& at_p) {
  const Expr a = as_index(substitute(d, now_.values)), b = as_index(substitute(p, now_.program));
  if (known_.can_prove(a) && known_.can_prove(b)) return true;
  if (ir::structural_equal(known_.simplify(a), known_.simplify(b))) return true;
  return differs(at_d, at_p, "a condition under which the block runs");
}

bool Matcher::block(const BlockRealize& d, const BlockRealize& p) {
  const Stmt at_d(&d), at_p(&p);
  if (!p.block->alloc_buffers.empty() || !p.block->match_buffers.empty())
    return differs(at_d, at_p, "a block with buffers of its own");
  if (!predicate(d.predicate, p.predicate, at_d, at_p)) return false;
  for (size_t i = 0; i < d.iter_values.size(); ++i) {
    const Expr value = of_description(d.iter_values[i]);
    now_.values[d.block->iter_vars[i]->var] = value;
  }
  for (size_t i = 0; i < p.iter_values.size(); ++i)
    now_.program[p.block->iter_vars[i]->var] = of_program(p.iter_values[i]);
  return initial(d, p) && statement(d.block->body, p.block->body);
}

// Both have an init that does the same in the same instances, or neither has one.
bool Matcher::initial(const BlockRealize& d, const BlockRealize& p) {
  const Stmt at_d(&d), at_p(&p);
  if (!d.block->init && !p.block->init) return true;
  if (!d.block->init) return differs(at_d, at_p, "the program's block has an init, the description's has none");
  if (!p.block->init) return differs(at_d, at_p, "the description's block has an init, the program's has none");
  const auto steps = [](const BlockRealize& r) {
    std::vector<std::pair<Expr, Expr>> list;
    for (size_t i = 0; i < r.iter_values.size(); ++i)
      if (r.block->iter_vars[i]->type == IterType::reduce && !is_int(r.block->iter_vars[i]->dom.extent, 1))
        list.emplace_back(r.iter_values[i], r.block->iter_vars[i]->dom.min);
    return list;
  };
  const auto of_d = steps(d), of_p = steps(p);
  bool same = of_d.size() == of_p.size();
  for (size_t i = 0; same && i < of_d.size(); ++i)
    same = known_.can_prove_equal(as_index(of_description(of_d[i].first) - of_description(of_d[i].second)),
                                  as_index(of_program(of_p[i].first) - of_program(of_p[i].second)));
  if (!same) return differs(at_d, at_p, "the init runs in other instances");
  return statement(d.block->init, p.block->init);
}

// A constant of another type is a constant.
Expr folded(const Expr& e) {
  const auto* converted = e.as<Cast>();
  return converted && (converted->value.is<IntImm>() || converted->value.is<FloatImm>())
             ? ir::cast(converted->dtype, converted->value)
             : e;
}

bool Matcher::value(const Expr& given_d, const Expr& given_p) {
  const Expr d = folded(given_d), p = folded(given_p);
  if (d->dtype != p->dtype)
    return differs(d, p, fmt::format("a value of {} and one of {}", d->dtype.str(), p->dtype.str()));
  if (const auto* a = d.as<BufferLoad>()) {
    const auto* b = p.as<BufferLoad>();
    if (!b || a->predicate || b->predicate) return differs(d, p, "a load and something else");
    return access(a->buffer, a->indices, b->buffer, b->indices, d, p);
  }
  if (d.is<VarNode>() || p.is<VarNode>()) {
    const bool same = d->dtype.is_integer()
                          ? same_index(d, p)
                          : now_.values.count(cast<VarNode>(d)) && now_.values.at(cast<VarNode>(d)) == p;
    return same || differs(d, p, "other variables");
  }
  if (&d->node_class() != &p->node_class()) return differs(d, p, "other operations");
  if (d->node_class().family != ExprNode::family) return differs(d, p, "other operations");
  if (d.is<Add>() || d.is<Mul>()) {
    const Assumed before = now_;
    if (operands(d, p)) return true;
    const auto first = difference_;
    difference_.reset();
    now_ = before;
    const auto swapped = [&](const Expr& a, const Expr& b, const Expr& c, const Expr& e) {
      return value(a, e) && value(b, c);
    };
    const bool same = d.is<Add>() ? swapped(d.as<Add>()->a, d.as<Add>()->b, p.as<Add>()->a, p.as<Add>()->b)
                                  : swapped(d.as<Mul>()->a, d.as<Mul>()->b, p.as<Mul>()->a, p.as<Mul>()->b);
    if (!same) difference_ = first;
    return same;
  }
  const auto* call = d.as<Call>();
  if (call && call->op != p.as<Call>()->op) return differs(d, p, "other functions");
  const bool leaf = d.is<IntImm>() || d.is<FloatImm>() || d.is<StringImm>();
  if (leaf || d.is<Reduce>() || d.is<Let>() || d.is<Ramp>() || d.is<Shuffle>())
    return ir::structural_equal(d, p) || differs(d, p, "other values");
  return operands(d, p);
}

bool Matcher::operands(const NodeRef& d, const NodeRef& p) {
  std::vector<Expr> of_d, of_p;
  const auto into = [](std::vector<Expr>& list) {
    return [&list](const NodeRef& n) {
      if (n->node_class().family == ExprNode::family) list.emplace_back(static_cast<const ExprNode*>(n.get()));
    };
  };
  d->node_class().for_each_child(*d, into(of_d));
  p->node_class().for_each_child(*p, into(of_p));
  if (of_d.size() != of_p.size())
    return differs(Expr(static_cast<const ExprNode*>(d.get())), Expr(static_cast<const ExprNode*>(p.get())),
                   "another number of operands");
  for (size_t i = 0; i < of_d.size(); ++i)
    if (!value(of_d[i], of_p[i])) return false;
  return true;
}

bool Matcher::access(const Buffer& d, const std::vector<Expr>& d_indices, const Buffer& p,
                     const std::vector<Expr>& p_indices, const Expr& at_d, const Expr& at_p) {
  if (d->dtype != p->dtype)
    return differs(at_d, at_p,
                   fmt::format("'{}' is of {}, '{}' of {}", d->name, d->dtype.str(), p->name, p->dtype.str()));
  // What is anywhere in memory may be in a memory nearer by too, and in registers: `result` looks at addresses.
  const bool nearer = d->scope == "global" && (p->scope == "local" || p->scope == "register");
  if (d->scope != p->scope && !nearer)
    return differs(at_d, at_p,
                   fmt::format("'{}' is in scope '{}', '{}' in scope '{}'", d->name, d->scope, p->name, p->scope));
  if (p_indices.size() < d_indices.size())
    return differs(
        at_d, at_p,
        fmt::format("'{}' has {} dimensions, '{}' only {}", d->name, d_indices.size(), p->name, p_indices.size()));
  const size_t single = p_indices.size() - d_indices.size();
  std::vector<Expr> corner;
  for (size_t i = 0; i < p_indices.size(); ++i) {
    if (!p_indices[i]->dtype.is_scalar()) return differs(at_d, at_p, "an access of a vector");
    Expr at = of_program(p_indices[i]);
    if (i >= single) at = sub(at, of_description(d_indices[i - single]));
    corner.push_back(known_.simplify(at));
    if (!is_fixed(corner.back()))
      return differs(at_d, at_p, fmt::format("index {} of '{}' does not run as that of '{}'", i, p->name, d->name));
  }
  const auto [it, first] = now_.places.emplace(d, Place{p, corner});
  if (first) return true;
  if (it->second.buffer != p)
    return differs(at_d, at_p, fmt::format("'{}' is '{}' elsewhere", d->name, it->second.buffer->name));
  for (size_t i = 0; i < corner.size(); ++i)
    if (!known_.can_prove_equal(corner[i], it->second.corner[i]))
      return differs(at_d, at_p, fmt::format("'{}' begins elsewhere in '{}' before", d->name, p->name));
  return true;
}

// ---- where the intrinsic's buffers lie ----

// The step in memory from one element of each dimension to the next.
std::vector<Expr> strides_of(const Buffer& buffer) {
  std::vector<Expr> strides(buffer->shape.size());
  Expr compact = int64(1);
  for (size_t d = strides.size(); d-- > 0;) {
    strides[d] = buffer->strides.empty() ? compact : as_index(buffer->strides[d]);
    compact = compact * as_index(buffer->shape[d]);
  }
  return strides;
}

bool takes_address(const Function& function, const Buffer& buffer) {
  bool found = false;
  post_order(function->body, [&](const NodeRef& n) {
    const auto* call = n.as<Call>();
    const auto* load = call && call->op == &intrinsic::address_of ? call->args[0].as<BufferLoad>() : nullptr;
    found = found || (load && load->buffer == buffer);
  });
  return found;
}

// Why the region has not the layout that the implementation's buffer asks for.
std::optional<std::string> refuse_layout(const MatchedBuffer& matched, const Buffer& wanted, const Function& function,
                                         arith::Analyzer& known) {
  const std::vector<Expr> strides = strides_of(matched.buffer);
  const size_t single = strides.size() - wanted->shape.size();
  Expr offset = matched.buffer->elem_offset ? as_index(matched.buffer->elem_offset) : int64(0);
  for (size_t d = 0; d < strides.size(); ++d) offset = offset + matched.region[d].min * strides[d];
  std::vector<Expr> asked = wanted->strides;
  // Whoever takes an address and says nothing of strides counts on elements that follow one another.
  if (asked.empty() && takes_address(function, wanted))
    asked = strides_of(with(*wanted, [&](BufferNode& copy) {
      for (size_t d = 0; d < copy.shape.size(); ++d) copy.shape[d] = matched.region[single + d].extent;
    }));
  for (size_t d = 0; d < asked.size(); ++d) {
    if (asked[d].is<VarNode>() || is_int(matched.region[single + d].extent, 1)) continue;
    if (!known.can_prove_equal(as_index(asked[d]), strides[single + d]))
      return fmt::format("elements of '{}' along dimension {} are not {} apart in '{}'", wanted->name, d,
                         as_int(asked[d]) ? std::to_string(*as_int(asked[d])) : "as far as asked",
                         matched.buffer->name);
  }
  if (wanted->offset_factor > 1 && !known.can_prove_equal(floormod(offset, int64(wanted->offset_factor)), int64(0)))
    return fmt::format("'{}' need not begin at a multiple of {} elements in '{}'", wanted->name, wanted->offset_factor,
                       matched.buffer->name);
  return std::nullopt;
}

Result<IntrinMatch> Matcher::result(const std::string& name, const TensorIntrin& intrin) {
  const auto problem = [&](std::string why) {
    return refuse(codes::intrin_mismatch, fmt::format("cannot use intrinsic '{}': {}", name, why));
  };
  std::vector<Buffer> written;
  each_statement(intrin_body(*intrin.description), [&](const Stmt& s) {
    if (const auto* store = s.as<BufferStore>()) written.push_back(store->buffer);
  });
  IntrinMatch match;
  for (size_t i = 0; i < intrin.description->buffer_map.size(); ++i) {
    const Buffer& described = intrin.description->buffer_map[i].second;
    const auto it = now_.places.find(described);
    if (it == now_.places.end()) return problem(fmt::format("its description does not use '{}'", described->name));
    const Place& place = it->second;
    MatchedBuffer matched{place.buffer, {}};
    const size_t single = place.corner.size() - described->shape.size();
    for (size_t d = 0; d < place.corner.size(); ++d) {
      Expr extent = int64(1);
      if (d >= single) extent = known_.simplify(of_description(described->shape[d - single]));
      for (const Var& v : free_vars(extent))
        if (std::any_of(described->shape.begin(), described->shape.end(),
                        [&](const Expr& e) { return uses_var(e, v); }))
          return problem(fmt::format("no loop of its description says what '{}' is", v->name));
      if (!known_.can_prove(place.corner[d] >= int64(0)) ||
          !known_.can_prove(place.corner[d] + extent <= as_index(place.buffer->shape[d])))
        return problem(
            fmt::format("dimension {} of '{}' may reach beyond '{}'", d, described->name, place.buffer->name));
      matched.region.push_back({place.corner[d], extent});
    }
    const Buffer& wanted = intrin.implementation->buffer_map[i].second;
    if (matched.buffer->scope == "register" && takes_address(intrin.implementation, wanted))
      return problem(fmt::format("its implementation takes the address of '{}', and '{}' is in registers", wanted->name,
                                 matched.buffer->name));
    if (const auto why = refuse_layout(matched, wanted, intrin.implementation, known_)) return problem(*why);
    for (size_t other = 0; other < i; ++other)
      if (match.buffers[other].buffer == matched.buffer)
        for (const size_t each : {i, other})
          if (std::find(written.begin(), written.end(), intrin.description->buffer_map[each].second) != written.end())
            return problem(fmt::format("'{}' would be two of its buffers, one of them written", matched.buffer->name));
    match.buffers.push_back(std::move(matched));
  }
  match.symbols = now_.values;
  return match;
}

}  // namespace

Result<IntrinMatch> match_intrin(const std::string& name, const TensorIntrin& intrin, const BlockRealize& realize,
                                 const std::vector<const For*>& around) {
  Matcher matcher(realize, around);
  // A description in one block of its own, without variables, is that block's body.
  Stmt wanted = intrin_body(*intrin.description);
  if (const auto* only = wanted.as<BlockRealize>(); only && only->block->iter_vars.empty()) wanted = only->block->body;
  if (!matcher.statement(wanted, realize.block->body)) {
    Diagnostic problem = *matcher.difference();
    problem.message = fmt::format("{} is not what intrinsic '{}' describes: {}", name_of(*realize.block), name,
                                  problem.message.empty() ? "they differ" : problem.message);
    return problem;
  }
  return matcher.result(name, intrin);
}

}  // namespace lathe::schedule
