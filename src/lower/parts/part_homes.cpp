#include "lower/parts/part_homes.h"

#include "graph/rewrite_bindings.h"
#include "ir/visit.h"
#include "lower/plan/plan_memory.h"
#include "relax/infer.h"
#include "support/mutation.h"

namespace lathe::lower {

LATHE_FAULT(parts_in_place_in_front, "lower_test", "all parts are written in front of the whole");

using namespace relax;  // NOLINT: the subject of this file

namespace {

// Shorter rows of a part are copied: writing them takes as many stores as copying, to as many lines of the cache.
constexpr int64_t shortest_row = 64;  // bytes

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
  const auto symbols_of = [](const Expr& tensor) { return ir::free_vars(make<ShapeExpr>(*known_shape(tensor))); };
  const std::vector<ir::Var> known = symbols_of(e);
  const std::vector<ir::Var> used = symbols_of(Expr(static_cast<const VarNode*>(&whole)));
  return std::all_of(used.begin(), used.end(), [&](const ir::Var& symbol) {
    return std::find(known.begin(), known.end(), symbol) != known.end();
  });
}

// The view that is bound, where it is known to be of as many elements as what it is of.
const Call* as_view(const VarBinding& bound) {
  const auto* call = bound.value.as<Call>();
  const Operator* op = call ? callee_operator(*call) : nullptr;
  if (!op || !op->is_view) return nullptr;
  const auto own = known_shape(bound.var), viewed = known_shape(call->args[0]);
  // The run would have to look at a view of as many elements as only it knows.
  return own && viewed && same_extent(ir::product(*own), ir::product(*viewed)) ? call : nullptr;
}

// Where a part, `value`, of what `tensor` is lies; nothing where that is no number.
std::optional<Home> home_of(const Home& all, const Expr& tensor, const tir::Parts& parts, const tir::Part& part,
                            const Expr& value) {
  const std::optional<int64_t> inner = row_of(*known_shape(tensor), parts.axis + 1), begin = as_int(part.begin),
                               extent = as_int((*known_shape(value))[parts.axis]);
  if (!inner || !begin || !extent) return std::nullopt;
  return Home{all.whole, all.pitch, support::flip(parts_in_place_in_front) ? 0 : all.begin + *begin * *inner,
              *extent * *inner};
}

}  // namespace

std::optional<Shape> known_shape(const Expr& e) {
  const auto* info = as_tensor(e);
  return info ? info->shape : std::nullopt;
}

PartHomes::PartHomes(const ir::IRModule& module, const relax::Function& function) : module_(module) {
  look_at(function);
  std::set<const ir::Node*> excluded;
  while (const ir::Node* whole = find_homes(excluded)) excluded.insert(whole);
}

const Home* PartHomes::find(const Expr& e) const {
  const auto home = homes_.find(origin_of(e));
  return home == homes_.end() ? nullptr : &home->second;
}

const CallTir* PartHomes::call_of(const Var& var) const {
  const auto call = calls_.find(var.get());
  return call == calls_.end() ? nullptr : &call->second;
}

const tir::Parts& PartHomes::parts_of_joined(const Var& var) const { return *concatenation(calls_.at(var.get())); }

Home PartHomes::home_of_joined(const Var& var) const { return *rows_of(var, parts_of_joined(var)); }

std::string PartHomes::text() const {
  std::string not_copied = of_unknown_size_ == 0 || bytes_ > 0 ? std::to_string(bytes_) + " bytes" : "";
  if (of_unknown_size_ > 0)
    not_copied +=
        (bytes_ > 0 ? " and " : "") + std::to_string(of_unknown_size_) + " values of sizes that the run knows";
  return std::to_string(homes_.size()) + " values are computed or read where they are parts: " + not_copied +
         " are not copied";
}

// ---- what there is ----

void PartHomes::look_at(const relax::Function& function) {
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

void PartHomes::add(const Var& var, const CallTir& call, size_t output) {
  const auto* info = as_tensor(var);
  const bool is_empty = info && static_bytes(*info) == 0;
  if (!info || !info->shape || is_empty || info->dtype.storage_bits() % 8 != 0) {
    wanted_.insert(&call);
    return;
  }
  computed_.emplace(var.get(), Computed{var, &call, output});
  order_.push_back(var.get());
}

const ir::Node* PartHomes::origin_of(const Expr& e) const {
  const auto it = origin_.find(e.get());
  return it == origin_.end() ? e.get() : it->second;
}

PartHomes::Computed* PartHomes::computed_at(const Expr& e) {
  const auto it = computed_.find(origin_of(e));
  return it == computed_.end() ? nullptr : &it->second;
}

// Anything but a kernel, which wants the value in memory of its own.
void PartHomes::use(const Expr& e) {
  ir::post_order(e, [&](const ir::NodeRef& n) {
    if (!n.is<VarNode>()) return;
    if (Computed* computed = computed_at(Expr(static_cast<const VarNode*>(n.get())))) computed->has_other_uses = true;
    if (const auto call = calls_.find(n.get()); call != calls_.end()) wanted_.insert(&call->second);
  });
}

const tir::PrimFunc* PartHomes::kernel(const CallTir& call) const {
  const auto function = module_.find_as<tir::PrimFunc>(call.function);
  return function && function->buffer_map.size() == call.args.size() + call.outputs.size() ? function.get() : nullptr;
}

const tir::Parts* PartHomes::parts_of(const CallTir& call, KnownParts& known, PartsOf parts) const {
  const auto [it, is_new] = known.try_emplace(call.function);
  const tir::PrimFunc* function = is_new ? kernel(call) : nullptr;
  if (function) it->second = parts(*function);
  return it->second ? &*it->second : nullptr;
}

const tir::Parts* PartHomes::concatenation(const CallTir& call) const {
  return parts_of(call, concatenations_, &tir::as_concatenation);
}

const tir::Parts* PartHomes::split(const CallTir& call) const { return parts_of(call, splits_, &tir::as_split); }

// ---- where values lie ----

// The last concatenations first, so that what is concatenated again lies in the largest. A whole of which a
// kernel would read what it writes is given back, to be left out.
const ir::Node* PartHomes::find_homes(const std::set<const ir::Node*>& excluded) {
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
          !tells_symbols_of(value->var, *home->whole) || !is_part_of(*value->call, value->param(), value->var, *home) ||
          !can_be_read_at(*value, *home))
        continue;
      settle(*value, *home);
      joins_.insert(order_[i]);
    }
  }
  find_splits(excluded);
  return read_and_written();
}

// Where the parts of a concatenation lie behind one another in another whole, if it can be read there.
std::optional<Home> PartHomes::home_of_parts(const Computed& joined, const tir::Parts& parts) const {
  const auto first = homes_.find(origin_of(joined.call->args[parts.parts.front().param]));
  const std::optional<int64_t> width = row_of(*known_shape(joined.var), parts.axis);
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
void PartHomes::find_splits(const std::set<const ir::Node*>& excluded) {
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

void PartHomes::settle(const Computed& value, const Home& home) {
  homes_[value.var.get()] = home;
  const std::optional<int64_t> bytes = static_bytes(*as_tensor(value.var));
  bytes_ += bytes.value_or(0);
  of_unknown_size_ += !bytes;
}

// Where all of `tensor` lies, as rows that its parts share; nothing where it lies in rows of another kind.
std::optional<Home> PartHomes::rows_of(const Expr& tensor, const tir::Parts& parts) const {
  const std::optional<int64_t> row = row_of(*known_shape(tensor), parts.axis);
  if (!row) return std::nullopt;
  const auto own = homes_.find(origin_of(tensor));
  if (own == homes_.end()) return Home{origin_of(tensor), *row, 0, *row};
  return own->second.width == *row ? std::optional(own->second) : std::nullopt;
}

bool PartHomes::can_be_read_at(const Computed& value, const Home& home) const {
  if (value.has_other_uses || home.width * as_tensor(value.var)->dtype.storage_bits() / 8 < shortest_row) return false;
  for (const CallTir* reader : value.readers)
    for (size_t i = 0; i < reader->args.size(); ++i)
      if (origin_of(reader->args[i]) == value.var.get() && !is_part_of(*reader, i, reader->args[i], home)) return false;
  return true;
}

// Whether the kernel can have its parameter, which is `tensor`, there.
bool PartHomes::is_part_of(const CallTir& call, size_t param, const Expr& tensor, const Home& home) const {
  const tir::PrimFunc* function = kernel(call);
  return function && has_columns(*known_shape(tensor), home) && tir::can_be_part(*function, param);
}

const ir::Node* PartHomes::read_and_written() const {
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
bool PartHomes::lies_in(const Home& home, const Computed& whole, size_t param) const {
  const tir::Parts& parts = *concatenation(*whole.call);
  const auto part =
      std::find_if(parts.parts.begin(), parts.parts.end(), [&](const tir::Part& one) { return one.param == param; });
  return home.begin == home_of(*rows_of(whole.var, parts), whole.var, parts, *part, whole.call->args[param])->begin;
}

}  // namespace lathe::lower
