// Loops and blocks of tensor functions.
#include "script/vocabulary.h"
#include "tir/analysis/regions.h"
#include "tir/script/read_function.h"

namespace lathe::tir {

using script::Arguments;
using script::syntax::ExprKind;

// ---- loops ----

namespace {

std::optional<ForKind> kind_of_loop(std::string_view path) {
  if (path == "tir.serial") return ForKind::serial;
  if (path == "tir.parallel") return ForKind::parallel;
  if (path == "tir.vectorized") return ForKind::vectorized;
  if (path == "tir.unroll") return ForKind::unrolled;
  if (path == "tir.thread_binding") return ForKind::thread_binding;
  return std::nullopt;
}

constexpr std::string_view axis_names[] = {"spatial", "S", "reduce", "R", "scan", "opaque", "thread_index", "remap"};
constexpr std::string_view loop_names[] = {"grid", "serial", "parallel", "vectorized", "unroll", "thread_binding"};

// What the loops of one line have in common.
struct LoopForm {
  ForKind kind = ForKind::serial;
  DType variable;
  IterVar thread_binding;
  Attributes annotations;
};

}  // namespace

// The extents of a grid: expressions, and lists of them after a star.
std::vector<Range> FunctionReader::grid(const Syntax& call) {
  std::vector<Range> domains;
  for (size_t i = 1; i < call.items.size(); ++i) {
    const Syntax& extent = *call.items[i];
    if (!call.labels[i - 1].empty())
      fail(script::codes::wrong_arguments, extent,
           "there is no argument '" + std::string(call.labels[i - 1]) + "' here");
    if (extent.kind != ExprKind::starred) {
      domains.push_back(domain(extent, DType::int64()));
      continue;
    }
    const Value list = value(*extent.items[0]);
    const auto* extents = list.get<Value::List>();
    if (!extents) fail(script::codes::wrong_type, extent, "what stands after a star here is a list of extents");
    for (const Value& each : *extents) domains.push_back(Range{int64(0), to_expr(each, extent, DType::int64())});
  }
  return domains;
}

Stmt FunctionReader::for_loop(const Line& s) {
  if (!s.other.empty()) {
    Syntax at;
    at.begin = s.begin;
    at.end = s.head_end;
    fail(script::codes::not_in_scripts, at, "loops of scripts have no 'else'");
  }
  const Syntax& iterable = *s.value;
  std::vector<std::string_view> names;
  const Syntax* const alone[] = {s.target};
  for (const Syntax* target : s.target->kind == ExprKind::name ? std::span(alone) : s.target->items) {
    if (target->kind != ExprKind::name) fail(script::codes::misplaced, *target, "a loop's variable is a name");
    names.push_back(target->text);
  }
  if (iterable.kind != ExprKind::call)
    fail(script::codes::misplaced, iterable,
         "a loop runs over range, T.grid, T.serial, T.parallel, T.vectorized, T.unroll or "
         "T.thread_binding");
  const std::string path = path_of(*iterable.items[0]);
  std::vector<Range> domains;
  LoopForm form;
  if (path == "tir.grid") {
    domains = grid(iterable);
  } else {
    const Arguments arguments(*this, iterable);
    const bool is_range =
        path.empty() && iterable.items[0]->kind == ExprKind::name && iterable.items[0]->text == "range";
    const auto kind = is_range ? ForKind::serial : kind_of_loop(path);
    if (!kind)
      fail(script::codes::unknown_function, *iterable.items[0], "'" + source_text(*iterable.items[0]) + "' is no loop",
           path.starts_with("tir.") ? script::nearest_help(path.substr(4), "T.", loop_names) : "");
    form.kind = *kind;
    arguments.check(3, {"start", "stop", "thread", "annotations", "dtype"});
    const Syntax* thread = arguments.find(2, "thread");
    const Syntax* last = arguments.find(1, "stop");
    if (last && last->kind == ExprKind::string) thread = std::exchange(last, nullptr);
    const Syntax& first = arguments.need(0, "start");
    if (!last) {
      domains.push_back(domain(first, DType::int64()));
    } else {
      auto [begin, end] = unify(first, *last);
      domains.push_back(between(begin, end));
    }
    DType t = domains[0].extent->dtype;
    if (const Syntax* named = arguments.named("dtype")) {
      t = dtype(*named, "a loop");
      if (is_int(domains[0].min, 0)) domains[0].min = constant(t, int64_t{0});
    }
    form.variable = t;
    if (const Syntax* notes = arguments.named("annotations")) form.annotations = attributes(*notes);
    if (form.kind == ForKind::thread_binding) {
      if (!thread) fail(script::codes::wrong_arguments, iterable, "argument 'thread' is missing");
      const Value v = value(*thread);
      form.thread_binding = script::node_in<IterVarNode>(v);
      if (!form.thread_binding) {
        const std::string tag = string(*thread, "a thread axis");
        form.thread_binding = make<IterVarNode>(Range{}, var(tag, t), IterType::thread_index, tag);
      }
    } else if (thread) {
      fail(script::codes::wrong_arguments, *thread,
           is_range ? "loops of tensor programs have no step" : "only T.thread_binding has a thread");
    }
  }
  if (names.size() != domains.size())
    fail(script::codes::wrong_arguments, *s.target,
         std::to_string(names.size()) + " variables for " + std::to_string(domains.size()) + " extents");
  std::vector<Var> variables;
  scope.push();
  for (size_t i = 0; i < names.size(); ++i) {
    const DType t = path == "tir.grid" ? domains[i].extent->dtype : form.variable;
    variables.push_back(make<VarNode>(std::string(names[i]), t));
    define(names[i], variables.back(), *s.target);
    domains_[variables.back().get()] = domains[i];
  }
  Stmt body = suite(s.body);
  scope.pop();
  for (size_t i = names.size(); i-- > 0;) {
    domains_.erase(variables[i].get());
    body = placed(Stmt(make<For>(variables[i], domains[i].min, domains[i].extent, form.kind, std::move(body),
                                 form.thread_binding, form.annotations)),
                  s);
  }
  return body;
}

// ---- blocks ----

FunctionReader::OpenBlock& FunctionReader::block_for(const Syntax& at, const char* what) {
  if (blocks_.back()->is_function) fail(script::codes::misplaced, at, std::string(what) + " stands inside a block");
  return *blocks_.back();
}

Stmt FunctionReader::block(const Syntax& call, const Line& s) {
  const Arguments arguments(*this, call);
  arguments.check(1, {"name", "no_realize"});
  const Syntax *given = arguments.find(0, "name"), *bare = arguments.named("no_realize");
  const std::string name = given ? string(*given, "a block's name") : "";
  OpenBlock open;
  open.realized = !(bare && boolean(*bare, "no_realize"));
  blocks_.push_back(&open);
  scope.push();
  Stmt body = suite(s.body);
  scope.pop();
  blocks_.pop_back();

  const bool is_root = name == "root" && open.iter_vars.empty();
  const bool infer = complete_ && !is_root && (!open.reads || !open.writes);
  Ref<Block> made =
      make<Block>(std::move(open.iter_vars), std::move(open.alloc_buffers), std::move(open.match_buffers),
                  open.reads.value_or(std::vector<BufferRegion>{}), open.writes.value_or(std::vector<BufferRegion>{}),
                  name, std::move(open.init), std::move(body), std::move(open.annotations));
  if (infer) {
    const Regions regions = infer_regions(*made);
    made = ir::with(*made, [&](Block& copy) {
      if (!open.reads) copy.reads = regions.reads;
      if (!open.writes) copy.writes = regions.writes;
    });
  }
  made = placed(std::move(made), s);
  if (!open.realized) return made;
  const Expr predicate = open.predicate ? open.predicate : ir::boolean(true);
  return placed(Stmt(make<BlockRealize>(std::move(open.values), predicate, std::move(made))), s);
}

void FunctionReader::add_axis(const Syntax& target, Range dom, Expr bound, IterType type, DType t, std::string tag) {
  if (target.kind != ExprKind::name) fail(script::codes::misplaced, target, "an axis is assigned to a name");
  OpenBlock& open = *blocks_.back();
  const Var v = make<VarNode>(std::string(target.text), t);
  open.iter_vars.push_back(make<IterVarNode>(std::move(dom), v, type, std::move(tag)));
  if (open.realized) open.values.push_back(std::move(bound));
  define(target.text, v, target);
}

void FunctionReader::axis(const Syntax& target, const Syntax& call, const std::string& kind) {
  const OpenBlock& open = block_for(call, "an axis");
  static const std::unordered_map<std::string_view, IterType> kinds = {{"spatial", IterType::spatial},
                                                                       {"S", IterType::spatial},
                                                                       {"reduce", IterType::reduce},
                                                                       {"R", IterType::reduce},
                                                                       {"scan", IterType::scan},
                                                                       {"opaque", IterType::opaque},
                                                                       {"thread_index", IterType::thread_index}};
  const auto it = kinds.find(kind);
  if (it == kinds.end())
    fail(script::codes::unknown_function, *call.items[0], "there is no axis of kind '" + kind + "'",
         script::nearest_help(kind, "T.axis.", axis_names));
  const Arguments arguments(*this, call);
  arguments.check(2, {"dom", "binding", "dtype", "thread"});
  const Syntax *named = arguments.named("dtype"), *tag = arguments.named("thread");
  Expr bound;
  Value given;
  if (open.realized) {
    given = value(arguments.need(1, "binding"));
    bound = script::expr_in(given);
  }
  // Literals take the dtype that is asked for, else the binding's.
  const DType literal = named ? dtype(*named, "an axis") : bound ? bound->dtype : DType::int64();
  Range dom = domain(arguments.need(0, "dom"), literal);
  const DType t = named ? literal : dom.extent->dtype;
  if (open.realized && !bound) bound = to_expr(given, arguments.need(1, "binding"), DType::int64());
  add_axis(target, std::move(dom), std::move(bound), it->second, t, tag ? string(*tag, "a thread tag") : std::string());
}

// vi, vj = T.axis.remap("SR", [i, j]): axes that run over the loops of the same domain.
void FunctionReader::remap(const Syntax& target, const Syntax& call) {
  block_for(call, "T.axis.remap");
  const Arguments arguments(*this, call);
  arguments.check(2, {"kinds", "bindings", "dtype"});
  const std::string kinds = string(arguments.need(0, "kinds"), "T.axis.remap");
  const Syntax& bindings = arguments.need(1, "bindings");
  const std::vector<Expr> loops = expr_list(bindings, "T.axis.remap");
  const Syntax* const alone[] = {&target};
  const std::span<const Syntax* const> targets = target.kind == ExprKind::name ? std::span(alone) : target.items;
  if (kinds.size() != loops.size() || targets.size() != loops.size())
    fail(script::codes::wrong_arguments, call,
         std::to_string(targets.size()) + " variables, " + std::to_string(kinds.size()) + " letters and " +
             std::to_string(loops.size()) + " loops");
  for (size_t i = 0; i < loops.size(); ++i) {
    const auto it = domains_.find(loops[i].get());
    if (it == domains_.end())
      fail(script::codes::wrong_arguments, bindings, "T.axis.remap takes variables of loops around the block");
    if (kinds[i] != 'S' && kinds[i] != 'R')
      fail(script::codes::wrong_arguments, arguments.need(0, "kinds"),
           std::string("an axis is 'S' or 'R' here, not '") + kinds[i] + "'");
    add_axis(*targets[i], it->second, loops[i], kinds[i] == 'S' ? IterType::spatial : IterType::reduce, loops[i]->dtype,
             "");
  }
}

std::vector<BufferRegion> FunctionReader::region_list(const Arguments& arguments) {
  arguments.check(1000, {});
  std::span<const Syntax* const> items = arguments.positional;
  if (items.size() == 1 && items[0]->kind == ExprKind::list) items = items[0]->items;
  std::vector<BufferRegion> list;
  for (const Syntax* item : items) {
    auto [whole, ranges] = region(*item);
    list.push_back(make<BufferRegionNode>(whole, std::move(ranges)));
  }
  return list;
}

// The lines that describe the open block.
bool FunctionReader::block_line(const std::string& path, const Syntax& call) {
  if (path == "tir.reads" || path == "tir.writes") {
    OpenBlock& open = block_for(call, "the declaration of a region");
    auto& regions = path == "tir.reads" ? open.reads : open.writes;
    if (regions) fail(script::codes::defined_twice, call, "the block's regions are declared already");
    regions = region_list(Arguments(*this, call));
    return true;
  }
  if (path == "tir.where") {
    OpenBlock& open = block_for(call, "T.where");
    if (open.predicate) fail(script::codes::defined_twice, call, "the block has a condition already");
    open.predicate = condition(Arguments(*this, call).need(0, "predicate"));
    return true;
  }
  if (path == "tir.block_attr") {
    OpenBlock& open = block_for(call, "T.block_attr");
    const Attributes more = attributes(Arguments(*this, call).need(0, "attrs"));
    for (const auto& [name, attribute] : more) open.annotations.set(name, attribute);
    return true;
  }
  return false;
}

}  // namespace lathe::tir
