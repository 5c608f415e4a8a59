#include "lower/parts/parts_in_place.h"

#include "graph/rewrite_bindings.h"
#include "lower/other_kernels.h"
#include "lower/parts/apart.h"
#include "lower/parts/part_homes.h"
#include "ops/operators.h"
#include "relax/infer.h"

namespace lathe::lower {

using namespace relax;  // NOLINT: the subject of this file

namespace {

// Makes a function's kernels read and write values where these lie.
class PartPlacing {
 public:
  // Adds to `replaced` the names of the kernels that others took the place of.
  PartPlacing(ir::IRModule& module, const PartHomes& homes, std::set<std::string>& replaced)
      : module_(module), homes_(homes), replaced_(replaced) {}

  Result<relax::Function> operator()(const relax::Function& function) {
    return graph::rewrite_bindings(function, [&](graph::Emitter& emitter, const Var& var, const Expr& value) {
      return rewrite(emitter, var, value);
    });
  }

 private:
  Result<Expr> rewrite(graph::Emitter& emitter, const Var& var, const Expr& value) {
    const Home* home = homes_.find(var);
    if (home && homes_.origin_of(var) != var.get()) return Expr(current_.at(home->whole));  // a view nobody uses
    if (homes_.is_joined(var)) return joined(emitter, var, value->origin());
    const CallTir* call = homes_.call_of(var);
    if (call && homes_.is_split_in_place(*call)) return taken_apart(emitter, *call);
    if (home && !call) return Expr(current_.at(home->whole));  // an item of what is taken apart
    if (!call) return Expr();
    if (home) {
      TRY(write(emitter, *call, call->function, *home, var, value->origin()));
      return Expr(current_.at(home->whole));
    }
    if (std::none_of(call->args.begin(), call->args.end(), [&](const Expr& arg) { return homes_.find(arg); }))
      return Expr();
    Placed placed = TRY(with_parts_read(emitter, *call, call->function));
    return ir::with_origin(
        TRY(call_tir(placed.function, std::move(placed.args), call->outputs, std::move(placed.scalars))),
        value->origin());
  }

  // Nothing is left of a split.
  Expr taken_apart(const graph::Emitter& emitter, const CallTir& call) {
    replaced_.insert(call.function);
    const auto* source = static_cast<const VarNode*>(homes_.origin_of(call.args[0]));
    if (const Home* home = homes_.find(call.args[0])) return current_.at(home->whole);
    return current_.try_emplace(source, emitter.replaced(Expr(source))).first->second;
  }

  // What is left of a concatenation: copies of those parts that do not lie there.
  Result<Expr> joined(graph::Emitter& emitter, const Var& var, const ir::Origin& origin) {
    const CallTir& call = *homes_.call_of(var);
    const tir::Parts& parts = homes_.parts_of_joined(var);
    const Home home = homes_.home_of_joined(var);
    CallTir rest = call;
    rest.args.clear();
    std::vector<bool> kept;
    std::set<size_t> copied;
    for (const tir::Part& part : parts.parts) {
      const Home* own = homes_.find(call.args[part.param]);
      kept.push_back(!own || own->whole != home.whole);
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
      const Home* home = homes_.find(arg);
      if (!home) {
        placed.args.push_back(emitter.replaced(arg));
        continue;
      }
      place(placed, i, arg, *home);
      placed.args.push_back(TRY(view(emitter, arg, *home)));
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
    current_[home.whole] = TRY(shaped(emitter, written, *known_shape(Expr(&whole)), whole.name));
    return support::success();
  }

  // The whole, as the kernel sees it whose parameter is `tensor`.
  Result<Expr> view(graph::Emitter& emitter, const Expr& tensor, const Home& home) {
    Shape shape = *known_shape(tensor);
    if (home.width < home.pitch) shape.back() = ir::int64(home.pitch);
    std::vector<Expr>& known = views_[home.whole];
    const auto view =
        std::find_if(known.begin(), known.end(), [&](const Expr& one) { return same_shape(*known_shape(one), shape); });
    if (view != known.end()) return *view;
    known.push_back(TRY(shaped(emitter, current_.at(home.whole), shape, tensor.as<VarNode>()->name)));
    return known.back();
  }

  static Result<Expr> shaped(graph::Emitter& emitter, const Expr& e, const Shape& shape, const std::string& hint) {
    if (same_shape(*known_shape(e), shape)) return e;
    return emitter.call(ops::reshape, {e, make<ShapeExpr>(shape)}, {}, hint);
  }

  // Lets the kernel have its parameter, which is `tensor`, in its place.
  void place(Placed& placed, size_t param, const Expr& tensor, const Home& home) {
    if (home.width == home.pitch) return;  // all of it
    const bool at_start = home.begin == 0;
    std::string& name = placed_[{placed.function, param, home.pitch, at_start}];
    if (name.empty()) {
      const auto whole = module_.find_as<tir::PrimFunc>(placed.function);
      name = add(tir::with_part_of_whole(*whole, param, known_shape(tensor)->size() - 1, home.pitch, at_start),
                 placed.function);
    }
    placed.function = name;
    if (!at_start) placed.scalars.push_back(ir::int64(home.begin));
  }

  // Tells of the kernel which of its parameters are other parts of the whole that it writes.
  void mark_beside(Placed& placed, const CallTir& call, const Home& home) {
    std::vector<int64_t> params;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const Home* read = homes_.find(call.args[i]);
      if (read && read->whole == home.whole) params.push_back(static_cast<int64_t>(i));
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
  const PartHomes& homes_;
  std::set<std::string>& replaced_;
  std::unordered_map<const ir::Node*, Expr> current_;             // each whole, as far as it is written
  std::unordered_map<const ir::Node*, std::vector<Expr>> views_;  // of each whole as it is now, of different shapes
  std::map<std::tuple<std::string, size_t, int64_t, bool>, std::string> placed_;
  std::map<std::pair<std::string, std::vector<bool>>, std::string> copies_;
  std::map<std::pair<std::string, std::vector<int64_t>>, std::string> beside_;
  std::unordered_map<std::string, std::string> made_of_;  // the model's own kernels, by names of those made of them
};

}  // namespace

support::Result<ir::IRModule> parts_in_place(ir::IRModule module, const ir::PassContext& context) {
  std::set<std::string> replaced;
  TRY(graph::change_functions(module, [&](const std::string& name, const relax::Function& function) {
    const PartHomes homes(module, function);
    if (homes.is_empty()) return Result<relax::Function>(function);
    const Result<relax::Function> changed = PartPlacing(module, homes, replaced)(function);
    context.remark("parts_in_place", name, homes.text());
    return changed;
  }));
  drop_uncalled(module, replaced);
  return module;
}

}  // namespace lathe::lower
