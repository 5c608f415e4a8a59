#include "lower/parts/parts_in_place.h"

#include <unordered_set>

#include "graph/rewrite_bindings.h"
#include "ir/visit.h"
#include "lower/other_kernels.h"
#include "lower/parts/apart.h"
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

  bool operator==(const Home&) const = default;
  bool is_beside(const Home& other) const {
    return whole == other.whole && pitch == other.pitch &&
           (begin + width <= other.begin || other.begin + other.width <= begin);
  }
};

std::optional<Shape> extents_of(const Expr& e) {
  const auto* info = as_tensor(e);
  return info ? info->shape : std::nullopt;
}

// The product of the extents from `axis` on, where they are constants.
std::optional<int64_t> row_of(const Shape& shape, size_t axis) {
  int64_t all = 1;
  for (; axis < shape.size(); ++axis) {
    const std::optional<int64_t> extent = as_int(shape[axis]);
    if (!extent) return std::nullopt;
    all *= *extent;
  }
  return all;
}

// Whether the columns are the last axis of a tensor of that shape. Schedules know what to do with longer rows; a first
// index in the middle of a shape (a head of attention) would leave them without a rule.
bool has_columns(const Shape& shape, const Home& home) {
  return home.width == home.pitch || (!shape.empty() && is_int(shape.back(), home.width));
}

// Whether who knows the extents of `e` knows those of `whole`.
bool tells_symbols_of(const Expr& e, const ir::Node& whole) {
  const auto symbols_of = [](const Expr& tensor) { return ir::free_vars(make<ShapeExpr>(*extents_of(tensor))); };
  const std::vector<ir::Var> known = symbols_of(e);
  const std::vector<ir::Var> used = symbols_of(Expr(static_cast<const VarNode*>(&whole)));
  return std::all_of(used.begin(), used.end(), [&](const ir::Var& symbol) {
    return std::find(known.begin(), known.end(), symbol) != known.end();
  });
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
    std::string not_copied = of_unknown_size_ == 0 || bytes_ > 0 ? std::to_string(bytes_) + " bytes" : "";
    if (of_unknown_size_ > 0)
      not_copied +=
          (bytes_ > 0 ? " and " : "") + std::to_string(of_unknown_size_) + " values of sizes that the run knows";
    context_.remark("parts_in_place", name,
                    std::to_string(homes_.size()) + " values are computed or read where they are parts: " + not_copied +
                        " are not copied");
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
      if (!call || !call->inplace_indices.empty()) {
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
    const bool is_empty = info && static_bytes(*info) == 0;
    if (!info || !info->shape || is_empty || info->dtype.storage_bits() % 8 != 0) {
      wanted_.insert(&call);
      return;
    }
    computed_.emplace(var.get(), Computed{var, &call, output});
    order_.push_back(var.get());
  }

  static const Call* as_view(const VarBinding& bound) {
    const auto* call = bound.value.as<Call>();
    const Operator* op = call ? callee_operator(*call) : nullptr;
    if (!op || !op->is_view) return nullptr;
    const auto own = extents_of(bound.var), viewed = extents_of(call->args[0]);
    // The run would have to look at a view of as many elements as only it knows.
    return own && viewed && same_extent(ir::product(*own), ir::product(*viewed)) ? call : nullptr;
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

  // The last concatenations first, so that what is concatenated again lies in the largest. A whole of which a
  // kernel would read what it writes is given back, to be left out.
  const ir::Node* find_homes(const std::set<const ir::Node*>& excluded) {
    homes_.clear();
    joins_.clear();
    splits_in_place_.clear();
    bytes_ = 0;
    of_unknown_size_ = 0;
    for (size_t i = order_.size(); i-- > 0;) {
      const Computed& whole = computed_.at(order_[i]);
      const tir::Parts* parts = concatenation(*whole.call);
      if (!parts || excluded.count(order_[i])) continue;
      if (const auto home = home_of_parts(whole, *parts)) {
        settle(whole, *home);
        joins_.insert(order_[i]);
        continue;
      }
      const auto all = rows_of(whole.var, *parts);
      if (!all || excluded.count(all->whole)) continue;
      for (const tir::Part& part : parts->parts) {
        const Expr& arg = whole.call->args[part.param];
        const Computed* value = computed_at(arg);
        const auto home = value ? home_of(*all, whole.var, *parts, part, arg) : std::nullopt;
        if (!home || value->call->outputs.size() != 1 || homes_.count(origin_of(arg)) ||
            !tells_symbols_of(value->var, *home->whole) ||
            !is_part_of(*value->call, value->param(), value->var, *home) || !can_be_read_at(*value, *home))
          continue;
        settle(*value, *home);
        joins_.insert(order_[i]);
      }
    }
    find_splits(excluded);
    return read_and_written();
  }

  // Where the parts of a concatenation lie behind one another in another whole, if it can be read there.
  std::optional<Home> home_of_parts(const Computed& joined, const tir::Parts& parts) const {
    const auto first = homes_.find(origin_of(joined.call->args[parts.parts.front().param]));
    const std::optional<int64_t> width = row_of(*extents_of(joined.var), parts.axis);
    if (first == homes_.end() || !width || homes_.count(joined.var.get())) return std::nullopt;
    const Home home{first->second.whole, first->second.pitch, first->second.begin, *width};
    for (const tir::Part& part : parts.parts) {
      const Expr& arg = joined.call->args[part.param];
      const auto own = homes_.find(origin_of(arg));
      const auto meant = home_of(home, joined.var, parts, part, arg);
      if (own == homes_.end() || !meant || own->second != *meant) return std::nullopt;
    }
    return can_be_read_at(joined, home) ? std::optional(home) : std::nullopt;
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
        const auto home = home_of(*all, call->args[0], *parts, *part, value->var);
        if (home && !homes_.count(value->var.get()) && can_be_read_at(*value, *home))
          found.emplace_back(value->var.get(), *home);
      }
      if (found.size() != by_call.at(call).size()) continue;
      for (const auto& [var, home] : found) settle(computed_.at(var), home);
      splits_in_place_.insert(call);
    }
  }

  void settle(const Computed& value, const Home& home) {
    homes_[value.var.get()] = home;
    const std::optional<int64_t> bytes = static_bytes(*as_tensor(value.var));
    bytes_ += bytes.value_or(0);
    of_unknown_size_ += !bytes;
  }

  // Where all of `tensor` lies, as rows that its parts share; nothing where it lies in rows of another kind.
  std::optional<Home> rows_of(const Expr& tensor, const tir::Parts& parts) const {
    const std::optional<int64_t> row = row_of(*extents_of(tensor), parts.axis);
    if (!row) return std::nullopt;
    const auto own = homes_.find(origin_of(tensor));
    if (own == homes_.end()) return Home{origin_of(tensor), *row, 0, *row};
    return own->second.width == *row ? std::optional(own->second) : std::nullopt;
  }

  // Where a part, `value`, of what `tensor` is lies; nothing where that is no number.
  static std::optional<Home> home_of(const Home& all, const Expr& tensor, const tir::Parts& parts,
                                     const tir::Part& part, const Expr& value) {
    const std::optional<int64_t> inner = row_of(*extents_of(tensor), parts.axis + 1), begin = as_int(part.begin),
                                 extent = as_int((*extents_of(value))[parts.axis]);
    if (!inner || !begin || !extent) return std::nullopt;
    return Home{all.whole, all.pitch, support::flip(parts_in_place_in_front) ? 0 : all.begin + *begin * *inner,
                *extent * *inner};
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
        if (is_joined ? !lies_in(read->second, value, i) : !read->second.is_beside(home->second)) return written;
      }
    }
    return nullptr;
  }

  // Whether the operand of a concatenation lies where that has it.
  bool lies_in(const Home& home, const Computed& whole, size_t param) {
    const tir::Parts& parts = *concatenation(*whole.call);
    const auto part =
        std::find_if(parts.parts.begin(), parts.parts.end(), [&](const tir::Part& one) { return one.param == param; });
    return home.begin == home_of(*rows_of(whole.var, parts), whole.var, parts, *part, whole.call->args[param])->begin;
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
    const tir::Parts& parts = *concatenation(call);
    const Home home = own != homes_.end() ? own->second : *rows_of(var, parts);
    CallTir rest = call;
    rest.args.clear();
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
    std::vector<ir::Expr> scalars;
  };

  // The kernel that reads its arguments where they lie.
  Result<Placed> with_parts_read(graph::Emitter& emitter, const CallTir& call, std::string function) {
    Placed placed{std::move(function), {}, call.scalars};
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
    mark_beside(placed, call, home);
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
    Shape shape = *extents_of(tensor);
    if (home.width < home.pitch) shape.back() = ir::int64(home.pitch);
    std::vector<Expr>& known = views_[home.whole];
    const auto view =
        std::find_if(known.begin(), known.end(), [&](const Expr& one) { return same_shape(*extents_of(one), shape); });
    if (view != known.end()) return *view;
    known.push_back(TRY(shaped(emitter, current_.at(home.whole), shape, tensor.as<VarNode>()->name)));
    return known.back();
  }

  static Result<Expr> shaped(graph::Emitter& emitter, const Expr& e, const Shape& shape, const std::string& hint) {
    if (same_shape(*extents_of(e), shape)) return e;
    return emitter.call(ops::reshape, {e, make<ShapeExpr>(shape)}, {}, hint);
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

  // Tells of the kernel which of its parameters are other parts of the whole that it writes.
  void mark_beside(Placed& placed, const CallTir& call, const Home& home) {
    std::vector<int64_t> params;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const auto read = homes_.find(origin_of(call.args[i]));
      if (read != homes_.end() && read->second.whole == home.whole) params.push_back(static_cast<int64_t>(i));
    }
    if (params.empty()) return;
    std::string& name = beside_[{placed.function, params}];
    if (name.empty()) {
      const auto kernel = module_.find_as<tir::PrimFunc>(placed.function);
      name = add(ir::with(*kernel, [&](tir::PrimFunc& copy) { set_apart(copy, params, call.args.size()); }),
                 placed.function);
    }
    placed.function = name;
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
  std::unordered_set<const CallTir*> wanted_;                     // whose results, all at once, others than kernels use
  int64_t bytes_ = 0;                                             // that need no copy
  int64_t of_unknown_size_ = 0;                                   // values that need none beside those
  std::unordered_map<const ir::Node*, Expr> current_;             // each whole, as far as it is written
  std::unordered_map<const ir::Node*, std::vector<Expr>> views_;  // of each whole as it is now, of different shapes
  KnownParts concatenations_, splits_;
  std::map<std::tuple<std::string, size_t, int64_t, bool>, std::string> placed_;
  std::map<std::pair<std::string, std::vector<bool>>, std::string> copies_;
  std::map<std::pair<std::string, std::vector<int64_t>>, std::string> beside_;
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
