#include "lower/parts/parts_in_place.h"

#include <unordered_set>

#include "graph/rewrite_bindings.h"
#include "ir/visit.h"
#include "lower/other_kernels.h"
#include "lower/plan/plan_memory.h"
#include "ops/operators.h"
#include "relax/call_tir.h"
#include "relax/infer.h"
#include "support/mutation.h"
#include "tir/parts.h"

namespace lathe::lower {

LATHE_FAULT(parts_in_place_in_front, "lower_test", "all parts are written in front of the whole");

using namespace relax;  // NOLINT: the subject of this file

namespace {

// Shorter rows of a part are copied: writing them takes as many stores as copying, to as many lines of the cache.
constexpr int64_t shortest_row = 64;  // bytes

// Where a value lies in a whole, which is rows of `pitch` elements: in each, `width` of them behind the first `begin`.
struct Home {
  const ir::Node* whole = nullptr;  // the variable
  int64_t pitch = 0, begin = 0, width = 0;
};

std::optional<std::vector<int64_t>> extents_of(const Expr& e) {
  const auto* info = as_tensor(e);
  if (!info || !info->shape) return std::nullopt;
  return constant_shape(*info->shape);
}

int64_t product(std::span<const int64_t> extents) {
  int64_t all = 1;
  for (const int64_t extent : extents) all *= extent;
  return all;
}

// Whether the columns are the last axis of a tensor of that shape. Schedules know what to do with longer rows; a first
// index in the middle of a shape (a head of attention) would leave them without a rule.
bool has_columns(const std::vector<int64_t>& shape, const Home& home) {
  return home.width == home.pitch || (!shape.empty() && shape.back() == home.width);
}

// One result of a kernel, views of it included.
struct Computed {
  Var var;
  const CallTir* call;
  size_t output;  // of the kernel's
  std::vector<const CallTir*> readers = {};
  bool has_other_uses = false;

  size_t param() const { return call->args.size() + output; }
};

class PartPlacing {
 public:
  // Adds to `replaced` the names of the kernels that others took the place of.
  PartPlacing(ir::IRModule& module, const ir::PassContext& context, std::set<std::string>& replaced)
      : module_(module), context_(context), replaced_(replaced) {}

  Result<relax::Function> operator()(const std::string& name, const relax::Function& function) {
    look_at(function);
    std::set<const ir::Node*> excluded;
    while (const ir::Node* whole = find_homes(excluded)) excluded.insert(whole);
    if (homes_.empty()) return function;
    const Result<relax::Function> changed = graph::rewrite_bindings(
        function,
        [&](graph::Emitter& emitter, const Var& var, const Expr& value) { return rewrite(emitter, var, value); });
    context_.remark("parts_in_place", name,
                    std::to_string(homes_.size()) + " values are computed or read where they are parts: " +
                        std::to_string(bytes_) + " bytes are not copied");
    return changed;
  }

 private:
  // ---- what there is ----

  void look_at(const relax::Function& function) {
    for (const Binding& binding : graph::all_bindings(function)) {
      const auto* bound = binding.as<VarBinding>();
      if (!bound) {
        use(binding.as<MatchCast>()->value);
        continue;
      }
      if (const Call* view = as_view(*bound)) {
        origin_[bound->var.get()] = origin_of(view->args[0]);
        continue;
      }
      if (const auto* item = bound->value.as<TupleGetItem>(); item && calls_.count(item->tuple.get())) {
        add(bound->var, calls_.at(item->tuple.get()), static_cast<size_t>(item->index));
        continue;
      }
      const auto call = as_call_tir(bound->value);
      if (!call || !call->scalars.empty() || !call->inplace_indices.empty()) {
        use(bound->value);
        continue;
      }
      const CallTir& own = calls_.emplace(bound->var.get(), *call).first->second;
      for (const Expr& arg : own.args)
        if (Computed* computed = computed_at(arg)) computed->readers.push_back(&own);
      if (own.outputs.size() == 1) add(bound->var, own, 0);
    }
    use(function->body.as<SeqExpr>()->body);
  }

  void add(const Var& var, const CallTir& call, size_t output) {
    const auto* info = as_tensor(var);
    if (!info || static_bytes(*info).value_or(0) == 0 || info->dtype.storage_bits() % 8 != 0) {
      wanted_.insert(&call);
      return;
    }
    computed_.emplace(var.get(), Computed{var, &call, output});
    order_.push_back(var.get());
  }

  static const Call* as_view(const VarBinding& bound) {
    const auto* call = bound.value.as<Call>();
    const Operator* op = call ? callee_operator(*call) : nullptr;
    return op && op->is_view && extents_of(bound.var) && extents_of(call->args[0]) ? call : nullptr;
  }

  const ir::Node* origin_of(const Expr& e) const {
    const auto it = origin_.find(e.get());
    return it == origin_.end() ? e.get() : it->second;
  }
  Computed* computed_at(const Expr& e) {
    const auto it = computed_.find(origin_of(e));
    return it == computed_.end() ? nullptr : &it->second;
  }

  // Anything but a kernel, which wants the value in memory of its own.
  void use(const Expr& e) {
    ir::post_order(e, [&](const ir::NodeRef& n) {
      if (!n.is<VarNode>()) return;
      if (Computed* computed = computed_at(Expr(static_cast<const VarNode*>(n.get())))) computed->has_other_uses = true;
      if (const auto call = calls_.find(n.get()); call != calls_.end()) wanted_.insert(&call->second);
    });
  }

  const tir::PrimFunc* kernel(const CallTir& call) const {
    const auto function = module_.find_as<tir::PrimFunc>(call.function);
    return function && function->buffer_map.size() == call.args.size() + call.outputs.size() ? function.get() : nullptr;
  }

  using PartsOf = std::optional<tir::Parts> (*)(const tir::PrimFunc&);
  using KnownParts = std::unordered_map<std::string, std::optional<tir::Parts>>;  // by function
  const tir::Parts* parts_of(const CallTir& call, KnownParts& known, PartsOf parts) const {
    const auto [it, is_new] = known.try_emplace(call.function);
    const tir::PrimFunc* function = is_new ? kernel(call) : nullptr;
    if (function) it->second = parts(*function);
    return it->second ? &*it->second : nullptr;
  }
  const tir::Parts* concatenation(const CallTir& call) {
    return parts_of(call, concatenations_, &tir::as_concatenation);
  }
  const tir::Parts* split(const CallTir& call) { return parts_of(call, splits_, &tir::as_split); }

  // ---- where values lie ----

  // The last concatenations first, so that what is concatenated again lies in the largest. A whole that a kernel would
  // read and write at once is given back, to be left out.
  const ir::Node* find_homes(const std::set<const ir::Node*>& excluded) {
    homes_.clear();
    joins_.clear();
    splits_in_place_.clear();
    bytes_ = 0;
    for (size_t i = order_.size(); i-- > 0;) {
      const Computed& whole = computed_.at(order_[i]);
      const tir::Parts* parts = concatenation(*whole.call);
      if (!parts || excluded.count(order_[i])) continue;
      const auto all = rows_of(whole.var, *parts);
      if (!all || excluded.count(all->whole)) continue;
      for (const tir::Part& part : parts->parts) {
        const Expr& arg = whole.call->args[part.param];
        const Computed* value = computed_at(arg);
        const Home home = home_of(*all, whole.var, *parts, part, (*extents_of(arg))[parts->axis]);
        if (!value || value->call->outputs.size() != 1 || homes_.count(origin_of(arg)) ||
            !is_part_of(*value->call, value->param(), value->var, home) || !can_be_read_at(*value, home))
          continue;
        homes_[origin_of(arg)] = home;
        joins_.insert(order_[i]);
        bytes_ += *static_bytes(*as_tensor(arg));
      }
    }
    find_splits(excluded);
    return read_and_written();
  }

  // What a split gives is read where it comes from, if that goes for all of it.
  void find_splits(const std::set<const ir::Node*>& excluded) {
    std::unordered_map<const CallTir*, std::vector<const Computed*>> by_call;
    std::vector<const CallTir*> calls;
    for (const ir::Node* var : order_) {
      const Computed& value = computed_.at(var);
      std::vector<const Computed*>& all = by_call[value.call];
      if (all.empty()) calls.push_back(value.call);
      all.push_back(&value);
    }
    for (const CallTir* call : calls) {
      const tir::Parts* parts = split(*call);
      if (!parts || wanted_.count(call) || !call->args[0].is<VarNode>()) continue;
      const auto all = rows_of(call->args[0], *parts);
      if (!all || excluded.count(all->whole)) continue;
      std::vector<std::pair<const ir::Node*, Home>> found;
      for (const Computed* value : by_call.at(call)) {
        const auto part = std::find_if(parts->parts.begin(), parts->parts.end(),
                                       [&](const tir::Part& one) { return one.param == value->param(); });
        const int64_t extent = (*extents_of(value->var))[parts->axis];
        const Home home = home_of(*all, call->args[0], *parts, *part, extent);
        if (!homes_.count(value->var.get()) && can_be_read_at(*value, home)) found.emplace_back(value->var.get(), home);
      }
      if (found.size() != by_call.at(call).size()) continue;
      for (const auto& [var, home] : found) {
        homes_[var] = home;
        bytes_ += *static_bytes(*computed_.at(var).var->struct_info.as<TensorStructInfo>());
      }
      splits_in_place_.insert(call);
    }
  }

  // Where all of `tensor` lies, as rows that its parts share; nothing where it lies in rows of another kind.
  std::optional<Home> rows_of(const Expr& tensor, const tir::Parts& parts) const {
    const std::vector<int64_t> shape = *extents_of(tensor);
    const int64_t row = product(std::span(shape).subspan(parts.axis));
    const auto own = homes_.find(origin_of(tensor));
    if (own == homes_.end()) return Home{origin_of(tensor), row, 0, row};
    return own->second.width == row ? std::optional(own->second) : std::nullopt;
  }

  // Of a part, `extent` elements along the axis, of what `tensor` is.
  static Home home_of(const Home& all, const Expr& tensor, const tir::Parts& parts, const tir::Part& part,
                      int64_t extent) {
    const std::vector<int64_t> shape = *extents_of(tensor);
    const int64_t inner = product(std::span(shape).subspan(parts.axis + 1));
    const int64_t begin = support::flip(parts_in_place_in_front) ? 0 : all.begin + *as_int(part.begin) * inner;
    return {all.whole, all.pitch, begin, extent * inner};
  }

  bool can_be_read_at(const Computed& value, const Home& home) const {
    if (value.has_other_uses || home.width * as_tensor(value.var)->dtype.storage_bits() / 8 < shortest_row)
      return false;
    for (const CallTir* reader : value.readers)
      for (size_t i = 0; i < reader->args.size(); ++i)
        if (origin_of(reader->args[i]) == value.var.get() && !is_part_of(*reader, i, reader->args[i], home))
          return false;
    return true;
  }

  // Whether the kernel can have its parameter, which is `tensor`, there.
  bool is_part_of(const CallTir& call, size_t param, const Expr& tensor, const Home& home) const {
    const tir::PrimFunc* function = kernel(call);
    return function && has_columns(*extents_of(tensor), home) && tir::can_be_part(*function, param);
  }

  const ir::Node* read_and_written() {
    for (const ir::Node* var : order_) {
      const Computed& value = computed_.at(var);
      if (splits_in_place_.count(value.call)) continue;  // no kernel
      const auto home = homes_.find(var);
      const bool is_joined = joins_.count(var) > 0;
      const ir::Node* written = home != homes_.end() ? home->second.whole : is_joined ? var : nullptr;
      for (size_t i = 0; written && i < value.call->args.size(); ++i) {
        const auto read = homes_.find(origin_of(value.call->args[i]));
        if (read == homes_.end() || read->second.whole != written) continue;
        if (!is_joined || !lies_in(read->second, value, i)) return written;
      }
    }
    return nullptr;
  }

  // Whether the operand of a concatenation lies where that has it.
  bool lies_in(const Home& home, const Computed& whole, size_t param) {
    const tir::Parts& parts = *concatenation(*whole.call);
    const auto part =
        std::find_if(parts.parts.begin(), parts.parts.end(), [&](const tir::Part& one) { return one.param == param; });
    return home.begin == home_of(*rows_of(whole.var, parts), whole.var, parts, *part, 0).begin;
  }

  // ---- the new program ----

  Result<Expr> rewrite(graph::Emitter& emitter, const Var& var, const Expr& value) {
    const auto home = homes_.find(origin_of(var));
    const bool is_home = home != homes_.end();
    if (is_home && origin_of(var) != var.get()) return Expr(current_.at(home->second.whole));  // a view nobody uses
    if (joins_.count(var.get())) return joined(emitter, var, value->origin());
    const auto call = calls_.find(var.get());
    if (call != calls_.end() && splits_in_place_.count(&call->second)) return taken_apart(emitter, call->second);
    if (is_home && call == calls_.end())
      return Expr(current_.at(home->second.whole));  // an item of what is taken apart
    if (call == calls_.end()) return Expr();
    if (is_home) {
      TRY(write(emitter, call->second, call->second.function, home->second, var, value->origin()));
      return Expr(current_.at(home->second.whole));
    }
    if (std::none_of(call->second.args.begin(), call->second.args.end(),
                     [&](const Expr& arg) { return homes_.count(origin_of(arg)) > 0; }))
      return Expr();
    Placed placed = TRY(with_parts_read(emitter, call->second, call->second.function));
    return ir::with_origin(
        TRY(call_tir(placed.function, std::move(placed.args), call->second.outputs, std::move(placed.scalars))),
        value->origin());
  }

  // Nothing is left of a split.
  Expr taken_apart(const graph::Emitter& emitter, const CallTir& call) {
    replaced_.insert(call.function);
    const auto* source = static_cast<const VarNode*>(origin_of(call.args[0]));
    const auto home = homes_.find(source);
    if (home != homes_.end()) return current_.at(home->second.whole);
    return current_.try_emplace(source, emitter.replaced(Expr(source))).first->second;
  }

  // What is left of a concatenation: copies of those parts that do not lie there.
  Result<Expr> joined(graph::Emitter& emitter, const Var& var, const ir::Origin& origin) {
    const CallTir& call = calls_.at(var.get());
    const auto own = homes_.find(var.get());
    const Home home = own != homes_.end() ? own->second : whole_home(var);
    const tir::Parts& parts = *concatenation(call);
    CallTir rest{call.function, {}, call.outputs, {}};
    std::vector<bool> kept;
    std::set<size_t> copied;
    for (const tir::Part& part : parts.parts) {
      const Expr& arg = call.args[part.param];
      kept.push_back(!homes_.count(origin_of(arg)) || homes_.at(origin_of(arg)).whole != home.whole);
      if (kept.back()) copied.insert(part.param);
    }
    if (copied.empty()) {
      replaced_.insert(call.function);
    } else {
      for (const size_t param : copied) rest.args.push_back(call.args[param]);
      TRY(write(emitter, rest, copies(call.function, parts, kept), home, var, origin));
    }
    return Expr(current_.at(home.whole));
  }

  Home whole_home(const Var& var) const {
    const int64_t all = product(*extents_of(var));
    return {var.get(), all, 0, all};
  }

  // The kernel of a concatenation for some of its parts.
  std::string copies(const std::string& function, const tir::Parts& parts, const std::vector<bool>& kept) {
    if (std::all_of(kept.begin(), kept.end(), [](bool is_kept) { return is_kept; })) return function;
    std::string& name = copies_[{function, kept}];
    if (name.empty()) name = add(tir::with_parts(*module_.find_as<tir::PrimFunc>(function), parts, kept), function);
    return name;
  }

  struct Placed {
    std::string function;
    std::vector<Expr> args;
    std::vector<ir::Expr> scalars = {};
  };

  // The kernel that reads its arguments where they lie.
  Result<Placed> with_parts_read(graph::Emitter& emitter, const CallTir& call, std::string function) {
    Placed placed{std::move(function), {}};
    for (size_t i = 0; i < call.args.size(); ++i) {
      const Expr& arg = call.args[i];
      const auto home = homes_.find(origin_of(arg));
      if (home == homes_.end()) {
        placed.args.push_back(emitter.replaced(arg));
        continue;
      }
      place(placed, i, arg, home->second);
      placed.args.push_back(TRY(view(emitter, arg, home->second)));
    }
    return placed;
  }

  // Runs `function`, which has `call`'s arguments, with the result, as large as `var`, where it belongs.
  support::Status write(graph::Emitter& emitter, const CallTir& call, std::string function, const Home& home,
                        const Var& var, const ir::Origin& origin) {
    if (!current_.count(home.whole)) {
      const auto& whole = static_cast<const VarNode&>(*home.whole);
      current_[home.whole] = emitter.emit(TRY(alloc_tensor(*whole.struct_info.as<TensorStructInfo>())), whole.name);
    }
    Placed placed = TRY(with_parts_read(emitter, call, std::move(function)));
    place(placed, call.args.size(), var, home);
    placed.args.push_back(TRY(view(emitter, var, home)));
    const Expr written = emitter.emit(
        TRY(call_tir_inplace(placed.function, std::move(placed.args), std::move(placed.scalars), origin)), var->name);
    views_.clear();
    const auto& whole = static_cast<const VarNode&>(*home.whole);
    current_[home.whole] = TRY(shaped(emitter, written, *extents_of(Expr(&whole)), whole.name));
    return support::success();
  }

  // The whole, as the kernel sees it whose parameter is `tensor`.
  Result<Expr> view(graph::Emitter& emitter, const Expr& tensor, const Home& home) {
    std::vector<int64_t> shape = *extents_of(tensor);
    if (home.width < home.pitch) shape.back() = home.pitch;
    Expr& known = views_[{home.whole, shape}];
    if (!known) known = TRY(shaped(emitter, current_.at(home.whole), shape, tensor.as<VarNode>()->name));
    return known;
  }

  static Result<Expr> shaped(graph::Emitter& emitter, const Expr& e, const std::vector<int64_t>& shape,
                             const std::string& hint) {
    if (extents_of(e) == shape) return e;
    std::vector<ir::Expr> extents;
    for (const int64_t extent : shape) extents.push_back(ir::int64(extent));
    return emitter.call(ops::reshape, {e, make<ShapeExpr>(std::move(extents))}, {}, hint);
  }

  // Lets the kernel have its parameter, which is `tensor`, in its place.
  void place(Placed& placed, size_t param, const Expr& tensor, const Home& home) {
    if (home.width == home.pitch) return;  // all of it
    const bool at_start = home.begin == 0;
    std::string& name = placed_[{placed.function, param, home.pitch, at_start}];
    if (name.empty()) {
      const auto whole = module_.find_as<tir::PrimFunc>(placed.function);
      name = add(tir::with_part_of_whole(*whole, param, extents_of(tensor)->size() - 1, home.pitch, at_start),
                 placed.function);
    }
    placed.function = name;
    if (!at_start) placed.scalars.push_back(ir::int64(home.begin));
  }

  std::string add(const tir::Function& kernel, const std::string& of) {
    replaced_.insert(of);
    const auto first = made_of_.find(of);
    const std::string base = first == made_of_.end() ? of : first->second;
    const std::string name = add_kernel(module_, kernel, base + "_part");
    made_of_[name] = base;
    return name;
  }

  ir::IRModule& module_;
  const ir::PassContext& context_;
  std::set<std::string>& replaced_;
  std::unordered_map<const ir::Node*, CallTir> calls_;  // by the variable that they are bound to
  std::unordered_map<const ir::Node*, Computed> computed_;
  std::vector<const ir::Node*> order_;
  std::unordered_map<const ir::Node*, const ir::Node*> origin_;  // what a view is of
  std::unordered_map<const ir::Node*, Home> homes_;              // by the variable of what was computed
  std::unordered_set<const ir::Node*> joins_;                    // concatenations with parts in place
  std::unordered_set<const CallTir*> splits_in_place_;
  std::unordered_set<const CallTir*> wanted_;          // whose results, all at once, others than kernels use
  int64_t bytes_ = 0;                                  // that need no copy
  std::unordered_map<const ir::Node*, Expr> current_;  // each whole, as far as it is written
  std::map<std::pair<const ir::Node*, std::vector<int64_t>>, Expr> views_;  // of wholes as they are now, by shapes
  KnownParts concatenations_, splits_;
  std::map<std::tuple<std::string, size_t, int64_t, bool>, std::string> placed_;
  std::map<std::pair<std::string, std::vector<bool>>, std::string> copies_;
  std::unordered_map<std::string, std::string> made_of_;  // the model's own kernels, by names of those made of them
};

}  // namespace

support::Result<ir::IRModule> parts_in_place(ir::IRModule module, const ir::PassContext& context) {
  std::set<std::string> replaced;
  TRY(graph::change_functions(module, [&](const std::string& name, const relax::Function& function) {
    return PartPlacing(module, context, replaced)(name, function);
  }));
  drop_uncalled(module, replaced);
  return module;
}

}  // namespace lathe::lower
