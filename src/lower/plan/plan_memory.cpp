#include "lower/plan/plan_memory.h"

#include <unordered_set>

#include "ir/visit.h"
#include "lower/batch/batch_parts.h"
#include "lower/legalize/versions.h"
#include "lower/parts/apart.h"
#include "lower/states/states.h"
#include "relax/infer.h"
#include "relax/strings.h"
#include "support/lifetimes.h"
#include "support/mutation.h"
#include "tir/stmt.h"

namespace lathe::lower {

LATHE_FAULT(plan_memory_ignores_lifetimes, "lower_test", "tensors alive at the same time share memory");
LATHE_FAULT(plan_memory_overwrites_operands, "lower_test", "a kernel works in place on an operand that is read later");
LATHE_FAULT(plan_memory_swaps_parts, "lower_test", "the parts of a joined value lie in the reverse order");
LATHE_FAULT(plan_memory_frees_slots_early, "lower_test", "memory of unknown size is free before its last reader ran");

namespace {

using namespace relax;  // NOLINT: the subject of this file

// One piece of memory: a kernel's output, with everything that aliases it.
struct Piece {
  const ir::Node* var;
  int output;
  const TensorStructInfo* info;
  int first = 0, last = 0;  // the binding that writes it, the last that reads it
  int merged_into = -1;     // takes this piece's memory
  int64_t part = 0;         // bytes in front of it there
  Expr whole = {};          // the variable of a value that it is a part of
  int result = -1;          // is result number … of the function
  bool is_copy = false;     // of a part, which is to outlive that
  bool is_state = false;    // memory of whoever runs the program, which it writes into
  StructInfo as = {};       // the result's, where that is a view of it
};

class Planner {
 public:
  Planner(const ir::IRModule& module, const relax::Function& function, ResultMemory results)
      : module_(module), results_(results) {
    const std::vector<State> states =
        results == ResultMemory::outputs && check_states(*function) ? states_of(*function) : std::vector<State>{};
    for (size_t i = 0; i < states.size(); ++i)
      if (states[i].is_in_place()) keep(function->params[function->params.size() - states.size() + i]);
    const auto* body = function->body.as<SeqExpr>();
    for (const BindingBlock& block : body->blocks)
      for (const Binding& binding : block->bindings) step(binding);
    finish(body->body);
  }

  MemoryPlan run() {
    place_static();
    place_slots();
    place_merged();
    for (const Piece& piece : pieces_) {
      if (piece.result >= 0 || piece.whole || piece.is_state) continue;
      if (const auto bytes = static_bytes(*piece.info)) plan_.unplanned_bytes += *bytes;
    }
    return std::move(plan_);
  }

 private:
  void keep(const Var& param) {
    where_[param.get()] = {static_cast<int>(pieces_.size())};
    pieces_.push_back({param.get(), 0, as_tensor(param)});
    pieces_.back().is_state = true;
  }

  // The pieces that an expression's value lies in, by element of a tuple.
  std::vector<int> pieces_of(const Expr& e) const {
    if (const auto* tuple = e.as<Tuple>()) {
      std::vector<int> all;
      for (const Expr& item : tuple->items) {
        const std::vector<int> pieces = pieces_of(item);
        all.insert(all.end(), pieces.begin(), pieces.end());
      }
      return all;
    }
    const auto it = where_.find(e.get());
    return it == where_.end() ? std::vector<int>{} : it->second;
  }

  void use(const Expr& e, int at) {
    for (const int piece : pieces_of(e)) pieces_[static_cast<size_t>(root(piece))].last = at;
  }
  int root(int piece) const {
    while (pieces_[static_cast<size_t>(piece)].merged_into >= 0)
      piece = pieces_[static_cast<size_t>(piece)].merged_into;
    return piece;
  }

  void step(const Binding& binding) {
    const int at = ++time_;
    if (const auto* cast = binding.as<MatchCast>()) {
      use(cast->value, at);
      where_[cast->var.get()] = pieces_of(cast->value);
      return;
    }
    const auto& bound = *binding.as<VarBinding>();
    if (const auto parts = as_call_tir(bound.value)) {
      for (const Expr& tensor : parts->args) use(tensor, at);
      std::vector<int> made;
      for (size_t i = 0; i < parts->outputs.size(); ++i) {
        Piece piece{bound.var.get(), static_cast<int>(i), parts->outputs[i].as<TensorStructInfo>(), at, at};
        made.push_back(static_cast<int>(pieces_.size()));
        pieces_.push_back(piece);
      }
      calls_.push_back({at, *parts, made});
      where_[bound.var.get()] = made;
      return;
    }
    if (const auto* item = bound.value.as<TupleGetItem>()) {
      const std::vector<int> pieces = pieces_of(item->tuple);
      if (static_cast<size_t>(item->index) < pieces.size())
        where_[bound.var.get()] = {pieces[static_cast<size_t>(item->index)]};
      return;
    }
    if (bound.value.is<Tuple>() || bound.value.is<VarNode>()) {
      where_[bound.var.get()] = pieces_of(bound.value);
      return;
    }
    if (is_joined_batch(bound.value)) return join(bound, at);
    if (is_alloc_tensor(bound.value)) {
      where_[bound.var.get()] = {static_cast<int>(pieces_.size())};
      pieces_.push_back({bound.var.get(), 0, as_tensor(bound.var), at, at});
      return;
    }
    if (const auto* call = bound.value.as<Call>()) {
      for (const Expr& arg : call->args)
        if (arg) use(arg, at);
      if (is_batch_part(bound.value)) where_[bound.var.get()] = pieces_of(call->args[0]);
      const Operator* op = callee_operator(*call);
      const bool is_same = op && (op->is_view || op == &as_strings_operator);
      if (is_same || is_tensor_to_shape(bound.value)) where_[bound.var.get()] = pieces_of(call->args[0]);
    }
  }

  // The memory of the whole is there when its first part is computed. A part that has memory of another kind is copied.
  void join(const VarBinding& bound, int at) {
    const auto& call = *bound.value.as<Call>();
    const int whole = static_cast<int>(pieces_.size());
    pieces_.push_back({bound.var.get(), 0, as_tensor(bound.var), at, at});
    pieces_.back().is_copy = call.args.size() == 1;
    int64_t bytes = 0, begin = 0, left = *static_bytes(*as_tensor(bound.var));
    for (const Expr& part : call.args) {
      use(part, at);
      begin += std::exchange(bytes, *static_bytes(*as_tensor(part)));
      left -= bytes;
      const std::vector<int> pieces = pieces_of(part);
      if (pieces.size() != 1) continue;
      Piece& piece = pieces_[static_cast<size_t>(pieces[0])];
      if (piece.merged_into >= 0 || piece.is_copy || static_bytes(*piece.info) != bytes) continue;
      piece.merged_into = whole;
      piece.whole = bound.var;
      piece.part = support::flip(plan_memory_swaps_parts) ? left : begin;
      pieces_.back().first = std::min(pieces_.back().first, piece.first);
    }
    where_[bound.var.get()] = {whole};
  }

  // Whether a result is all of the piece; under another shape where both are known to have as many elements.
  static bool is_whole(const TensorStructInfo& result, const Piece& piece) {
    if (!result.shape || !piece.info->shape || !(result.dtype == piece.info->dtype)) return false;
    return is_same(result, piece) || relax::same_extent(element_count(result), element_count(*piece.info));
  }
  static bool is_same(const TensorStructInfo& result, const Piece& piece) {
    return ir::structural_equal(ir::NodeRef(ir::Ref<TensorStructInfo>(&result)),
                                ir::NodeRef(ir::Ref<TensorStructInfo>(piece.info)));
  }

  // Results stay until the end; one that is a whole kernel output of its own is written where the caller wants it.
  void finish(const Expr& result) {
    const int end = ++time_;
    std::vector<Expr> results{result};
    if (const auto* tuple = result.as<Tuple>()) results = tuple->items;
    std::unordered_set<int> taken;
    for (size_t i = 0; i < results.size(); ++i) {
      use(results[i], end);
      const std::vector<int> pieces = pieces_of(results[i]);
      if (pieces.size() != 1 || !taken.insert(pieces[0]).second) continue;
      Piece& piece = pieces_[static_cast<size_t>(pieces[0])];
      const auto* info = as_tensor(results[i]);
      // Strings are copied: the caller gets them as a value of another kind.
      if (results_ == ResultMemory::outputs && holds_strings(results[i]->struct_info)) continue;
      if (!info || piece.merged_into >= 0 || !is_whole(*info, piece)) continue;
      piece.result = static_cast<int>(i);
      if (!is_same(*info, piece)) piece.as = results[i]->struct_info;
    }
    update_in_place();
    share_in_place();
  }

  // Lets arguments that a call updates take the memory of the output, where nobody reads them afterwards.
  void update_in_place() {
    for (const auto& [at, parts, made] : calls_)
      for (size_t k = 0; k < made.size(); ++k) {
        const auto updated = parts.updated(k);
        if (!updated) continue;
        const std::vector<int> operand = pieces_of(parts.args[*updated]);
        if (operand.size() != 1) continue;
        Piece& in = pieces_[static_cast<size_t>(operand[0])];
        const Piece& out = pieces_[static_cast<size_t>(made[k])];
        const bool read_later = in.last != at && !support::flip(plan_memory_overwrites_operands);
        const bool is_free =
            in.merged_into < 0 && in.result < 0 && !read_later && !reads_what_is_written(parts, *updated, operand[0]);
        if (!is_free || !same_bytes(*in.info, *out.info)) continue;
        if (in.is_state) {
          pieces_[static_cast<size_t>(made[k])].is_state = true;
          plan_.updates.insert({out.var, out.output});
          continue;
        }
        in.merged_into = made[k];
        Piece& all = pieces_[static_cast<size_t>(root(made[k]))];
        all.first = std::min(all.first, in.first);
        plan_.updates.insert({out.var, out.output});
      }
  }

  // Pairs of parameters of the kernel, and of all that do its work at some sizes, of which the second may take the
  // memory of the first.
  std::vector<std::pair<int64_t, int64_t>> shared_parameters(const std::string& kernel) const {
    const auto pairs_of = [](const tir::PrimFunc& function) {
      std::vector<std::pair<int64_t, int64_t>> pairs;
      if (const auto* listed = function.attrs.get<ir::Value::List>("inplace"))
        for (const ir::Value& pair : *listed) {
          const auto& both = *pair.get<ir::Value::List>();
          pairs.emplace_back(*both[0].get<int64_t>(), *both[1].get<int64_t>());
        }
      return pairs;
    };
    const auto function = module_.find_as<tir::PrimFunc>(kernel);
    if (!function) return {};
    auto pairs = pairs_of(*function);
    for (const Version& version : versions_of(*function)) {
      const auto other = module_.find_as<tir::PrimFunc>(version.function);
      const auto own = other ? pairs_of(*other) : decltype(pairs){};
      std::erase_if(pairs, [&](const auto& pair) { return std::find(own.begin(), own.end(), pair) == own.end(); });
    }
    return pairs;
  }

  static ir::Expr element_count(const TensorStructInfo& info) { return relax::simplified(ir::product(*info.shape)); }
  // Whether two tensors take as much memory, whatever their symbols' sizes.
  static bool same_bytes(const TensorStructInfo& a, const TensorStructInfo& b) {
    const auto own = static_bytes(a), other = static_bytes(b);
    if (own || other) return own == other;
    return a.shape && b.shape && a.dtype == b.dtype && relax::same_extent(element_count(a), element_count(b));
  }

  // Lets outputs take the memory of operands that die in the kernel that writes them.
  void share_in_place() {
    for (const auto& [at, parts, made] : calls_) {
      for (const auto& [input, parameter] : shared_parameters(parts.function)) {
        const int64_t output = parameter - static_cast<int64_t>(parts.args.size());
        Piece& out = pieces_[static_cast<size_t>(made.at(static_cast<size_t>(output)))];
        const std::vector<int> operand = pieces_of(parts.args.at(static_cast<size_t>(input)));
        if (out.merged_into >= 0 || out.result >= 0 || operand.size() != 1) continue;
        const int from = root(operand[0]);
        Piece& in = pieces_[static_cast<size_t>(from)];
        const bool read_later = in.last != at && !support::flip(plan_memory_overwrites_operands);
        if (read_later || in.result >= 0 || in.is_state || used_twice(parts, from)) continue;
        if (!same_bytes(*in.info, *out.info)) continue;
        out.merged_into = from;
        in.last = std::max(in.last, out.last);
        ++plan_.in_place;
      }
    }
  }

  // Whether the kernel, which updates an argument that is that piece, reads of it what it writes, by other arguments.
  bool reads_what_is_written(const CallTir& parts, size_t updated, int piece) const {
    const auto kernel = module_.find_as<tir::PrimFunc>(parts.function);
    for (size_t i = 0; i < parts.args.size(); ++i)
      for (const int other : pieces_of(parts.args[i]))
        if (i != updated && root(other) == piece && !(kernel && are_apart(*kernel, i, updated))) return true;
    return false;
  }

  // Whether two operands of the kernel lie in that piece: then it must not be overwritten while the other is read.
  bool used_twice(const CallTir& parts, int piece) const {
    int uses = 0;
    for (const Expr& tensor : parts.args)
      for (const int p : pieces_of(tensor)) uses += root(p) == piece;
    return uses > 1;
  }

  void place_static() {
    std::vector<const Piece*> planned;
    std::vector<support::Lifetime> lifetimes;
    for (const Piece& piece : pieces_) {
      const auto bytes = static_bytes(*piece.info);
      if (piece.result >= 0 || piece.merged_into >= 0 || piece.is_state || !bytes) continue;
      const int own = static_cast<int>(planned.size());
      const bool apart = support::flip(plan_memory_ignores_lifetimes);
      lifetimes.push_back({std::max<int64_t>(*bytes, 1), apart ? own : piece.first, apart ? own : piece.last});
      planned.push_back(&piece);
    }
    const support::Layout layout = support::place_by_size(lifetimes, plan_alignment);
    plan_.arena_bytes = layout.size;
    for (size_t i = 0; i < planned.size(); ++i)
      plan_.placements[{planned[i]->var, planned[i]->output}] = {
          Placement::planned, layout.offsets[i], support::aligned(lifetimes[i].size, plan_alignment), 0};
    for (const Piece& piece : pieces_)
      if (piece.result >= 0)
        plan_.placements[{piece.var, piece.output}] = results_ == ResultMemory::own
                                                          ? Placement{Placement::own, 0, 0, 0}
                                                          : Placement{Placement::output, 0, 0, piece.result, piece.as};
  }

  // What takes another's memory lies where that does, a part of it in its place there.
  void place_merged() {
    for (const Piece& piece : pieces_) {
      if (piece.merged_into < 0) continue;
      Placement own{.kind = Placement::planned, .whole = piece.whole, .part = piece.part};
      int at = piece.merged_into;
      for (; pieces_[static_cast<size_t>(at)].merged_into >= 0; at = pieces_[static_cast<size_t>(at)].merged_into) {
        const Piece& between = pieces_[static_cast<size_t>(at)];
        if (between.whole) own.whole = between.whole;
        own.part += between.part;
      }
      const Piece& into = pieces_[static_cast<size_t>(at)];
      Placement placement = plan_.placements.at({into.var, into.output});
      if (own.whole) {
        placement.whole = own.whole;
        placement.part = own.part;
        placement.offset += placement.kind == Placement::planned ? own.part : 0;
        placement.bytes = std::min(placement.bytes, support::aligned(*static_bytes(*piece.info), plan_alignment));
      }
      plan_.placements[{piece.var, piece.output}] = std::move(placement);
    }
  }

  // Symbolic sizes: a slot is free when its last tensor has died.
  void place_slots() {
    std::vector<int> slot_last;
    for (const Piece& piece : pieces_) {
      if (piece.result >= 0 || piece.merged_into >= 0 || piece.is_state || static_bytes(*piece.info)) continue;
      size_t slot = 0;
      const int reach = support::flip(plan_memory_frees_slots_early) ? 1 : 0;
      while (slot < slot_last.size() && slot_last[slot] - reach >= piece.first) ++slot;
      if (slot == slot_last.size()) slot_last.push_back(0);
      slot_last[slot] = piece.last;
      plan_.placements[{piece.var, piece.output}] = {Placement::slot, 0, 0, static_cast<int64_t>(slot)};
    }
    plan_.slots = static_cast<int64_t>(slot_last.size());
  }

  struct CallSite {
    int at;
    CallTir parts;
    std::vector<int> made;
  };
  const ir::IRModule& module_;
  const ResultMemory results_;
  std::vector<Piece> pieces_;
  std::unordered_map<const ir::Node*, std::vector<int>> where_;
  std::vector<CallSite> calls_;
  int time_ = 0;
  MemoryPlan plan_;
};

}  // namespace

std::optional<int64_t> static_bytes(const TensorStructInfo& info) {
  if (!info.shape) return std::nullopt;
  int64_t count = 1;
  for (const ir::Expr& extent : *info.shape) {
    const auto value = ir::as_int(extent);
    if (!value) return std::nullopt;
    count *= *value;
  }
  return info.dtype.storage_bytes(count);
}

MemoryPlan plan_memory(const ir::IRModule& module, const relax::Function& function, ResultMemory results) {
  return Planner(module, function, results).run();
}

}  // namespace lathe::lower
