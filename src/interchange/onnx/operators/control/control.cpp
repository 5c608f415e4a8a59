// If, Loop and Scan: the graphs inside become functions of the module, and what they take from around them arguments.
#include "relax/control.h"

#include <unordered_set>

#include "interchange/onnx/codes.h"
#include "interchange/onnx/operators/control/loop.h"
#include "interchange/onnx/operators/tables.h"
#include "interchange/onnx/read/names.h"
#include "ir/visit.h"
#include "onnx_schema.pb.h"
#include "ops/build.h"
#include "relax/collection.h"
#include "relax/outline.h"
#include "relax/strings.h"

namespace lathe::onnx::operators {

namespace build = ops::build;
using relax::StructInfo;
using relax::TensorStructInfo;
using schema::GraphProto;

namespace {

const TensorStructInfo& tensor_type(const StructInfo& info) { return *info.as<TensorStructInfo>(); }

std::vector<Expr> tensors_of(NodeImport& c, std::vector<GraphValue> values) {
  std::vector<Expr> tensors;
  for (GraphValue& value : values) tensors.push_back(tensor_of(c.builder(), value));
  return tensors;
}

// What `emit` emits and gives, as a function. Where it throws nothing of it stays.
relax::Outlined outlined(NodeImport& c, std::vector<relax::Var> params,
                         const std::function<std::vector<Expr>()>& emit) {
  relax::BlockBuilder& b = c.builder();
  const relax::BlockBuilder::Mark mark = b.mark();
  try {
    b.begin_scope();
    b.begin_dataflow();
    std::vector<Expr> results = emit();
    for (Expr& result : results) result = b.emit_output(std::move(result), "result");
    return relax::outline(b.end_scope(ir::make<relax::Tuple>(std::move(results))), std::move(params));
  } catch (...) {
    b.go_back(mark);
    throw;
  }
}

std::string add(NodeImport& c, const relax::Outlined& made, const std::string& what) {
  const std::string node = std::get<support::ModelNode>(c.place()).node;
  return c.builder().add_function(made.function, identifier(node) + "_" + what);
}

const std::vector<StructInfo>& results_of(const relax::Outlined& made) {
  return made.function->body->struct_info.as<relax::TupleStructInfo>()->items;
}

using Symbols = std::unordered_set<const ir::Node*>;
// The symbols that a function gets from its caller.
Symbols symbols_given_to(const relax::Outlined& made) {
  Symbols symbols;
  for (const relax::Var& param : made.function->params)
    ir::pre_order(param->struct_info, [&](const ir::NodeRef& n) {
      if (n.is<ir::VarNode>()) symbols.insert(n.get());
      return true;
    });
  return symbols;
}
bool is_made_of(const ir::Expr& extent, const Symbols& symbols) {
  const std::vector<ir::Var> used = ir::free_vars(extent);
  return std::all_of(used.begin(), used.end(), [&](const ir::Var& v) { return symbols.count(v.get()) > 0; });
}

bool all_known(const Extents& extents) {
  return std::all_of(extents.begin(), extents.end(), [](const auto& extent) { return extent.has_value(); });
}
StructInfo declared(const Extents& extents, DType dtype) {
  if (!all_known(extents)) return relax::tensor_info_of_rank(static_cast<int64_t>(extents.size()), dtype);
  Shape shape;
  for (const auto& extent : extents) shape.push_back(*extent);
  return relax::tensor_info(std::move(shape), dtype);
}
// Whether the value is known to be one truth, and which.
std::optional<bool> constant_truth(NodeImport& c, size_t i) {
  const Integers* known = c.known(i);
  const auto constants = known ? constants_of(*known) : std::nullopt;
  return constants && constants->size() == 1 ? std::optional(constants->front() != 0) : std::nullopt;
}

void expect_dtype(NodeImport& c, size_t i, DType dtype) {
  if (c.value(i).tensor && !relax::as_tensor(c.value(i).tensor))
    c.fail(codes::wrong_node, "the input " + std::to_string(i) + " is no tensor, but " + dtype.str() + " is needed");
  if (c.dtype(i) != dtype)
    c.fail(codes::wrong_node,
           "the input " + std::to_string(i) + " is " + c.dtype(i).str() + ", but " + dtype.str() + " is needed");
}

std::string count_of(int64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// ---- If ----

void check_branch(NodeImport& c, const GraphProto& graph, const std::string& name) {
  if (graph.input_size() != 0)
    c.fail(codes::wrong_node, name + " has " + count_of(graph.input_size(), "input") + "; a branch has none");
  if (static_cast<size_t>(graph.output_size()) != c.output_count())
    c.fail(codes::wrong_node, name + " gives " + count_of(graph.output_size(), "output") + ", but the node has " +
                                  std::to_string(c.output_count()));
}

// What two branches have in common: each output's type, and the extents that are known around the node.
struct Joined {
  std::vector<StructInfo> infos;
  std::vector<Extents> extents;
};

Joined join(NodeImport& c, const relax::Outlined& yes, const relax::Outlined& no) {
  const Symbols known_yes = symbols_given_to(yes), known_no = symbols_given_to(no);
  Joined joined;
  for (size_t i = 0; i < results_of(yes).size(); ++i) {
    const StructInfo &one = results_of(yes)[i], &other = results_of(no)[i];
    std::vector<StructInfo>& infos = joined.infos;
    joined.extents.emplace_back();
    if (!one.is<TensorStructInfo>() || !other.is<TensorStructInfo>()) {
      infos.push_back(relax::joined(one, other));
      if (!infos.back())
        c.fail(codes::unsupported, "the output " + std::to_string(i) + " is " + text_of_info(one) +
                                       " from then_branch and " + text_of_info(other) + " from else_branch");
      continue;
    }
    const TensorStructInfo &a = tensor_type(one), &b = tensor_type(other);
    const std::string difference = "the output " + std::to_string(i) + " is " + relax::text_of(a) +
                                   " from then_branch and " + relax::text_of(b) + " from else_branch";
    if (a.dtype != b.dtype) c.fail(codes::wrong_node, difference);
    if (a.ndim != b.ndim) throw RanksDiffer{difference};
    for (size_t d = 0; d < a.shape->size(); ++d) {
      const ir::Expr &left = (*a.shape)[d], &right = (*b.shape)[d];
      const bool is_known =
          relax::same_extent(left, right) && is_made_of(left, known_yes) && is_made_of(right, known_no);
      joined.extents.back().push_back(is_known ? std::optional(left) : std::nullopt);
    }
    infos.push_back(declared(joined.extents.back(), a.dtype));
  }
  return joined;
}

std::vector<Expr> emit_branches(NodeImport& c, const Expr& condition, const relax::Outlined& yes,
                                const relax::Outlined& no) {
  const Joined joined = join(c, yes, no);
  const relax::Branch parts{condition, {add(c, yes, "then"), yes.captured}, {add(c, no, "else"), no.captured}};
  const Expr all = c.builder().emit(relax::make_branch(parts, joined.infos, c.builder().origin()).value_or_throw());
  std::vector<Expr> results;
  for (size_t i = 0; i < joined.infos.size(); ++i)
    results.push_back(named(c, c.builder().tuple_item(all, static_cast<int64_t>(i)), joined.extents[i], "branch"));
  return results;
}

// A branch that the model fails in when it is taken, instead of one that was refused; its results are never seen.
relax::Outlined failing(NodeImport& c, const support::Diagnostics& refused, const relax::Outlined& other) {
  const std::vector<StructInfo>& wanted = results_of(other);
  if (!std::all_of(wanted.begin(), wanted.end(), [](const StructInfo& info) {
        const auto* tensor = info.as<TensorStructInfo>();
        return tensor && tensor->shape && tensor->dtype != relax::string_dtype;
      }))
    throw support::DiagnosticError(refused);
  const support::Diagnostic& first = refused.at(0);
  const auto* at = std::get_if<support::ModelNode>(&first.place);
  relax::Message message;
  if (at && !at->node.empty()) message << "the branch that was taken does not fit '" << at->node << "': ";
  message << first.message;
  return outlined(c, {}, [&] {
    build::expect(c.builder(), ir::boolean(false), message);
    std::vector<Expr> results;
    for (const StructInfo& info : wanted) {
      Shape shape = *tensor_type(info).shape;
      for (ir::Expr& extent : shape)
        if (!ir::as_int(extent)) extent = ir::int64(1);
      results.push_back(
          c.call(ops::full, {ir::make<relax::ShapeExpr>(std::move(shape)), c.scalar(tensor_type(info).dtype, 0)}));
    }
    return results;
  });
}

// Branches that give different numbers of dimensions: each goes on to the end of the graph by itself. One that cannot,
// because what comes after it does not take what it gives, fails when it is taken.
[[noreturn]] void take_apart(NodeImport& c, const Expr& condition, const GraphProto& then, const GraphProto& otherwise,
                             const std::string& why) {
  c.graphs().expect_end(why);
  const auto to_end = [&](const GraphProto& graph, const char* name) {
    return support::catch_diagnostics([&]() -> support::Result<relax::Outlined> {
      return outlined(c, {}, [&] { return c.graphs().convert_to_end(graph, name); });
    });
  };
  const support::Result<relax::Outlined> yes = to_end(then, "then_branch"), no = to_end(otherwise, "else_branch");
  for (const auto* end : {&yes, &no})
    if (!end->ok() && std::any_of(end->diagnostics().begin(), end->diagnostics().end(),
                                  [](const support::Diagnostic& d) { return d.code == codes::too_large; }))
      throw support::DiagnosticError(end->diagnostics());
  if (!yes.ok() && !no.ok()) throw support::DiagnosticError(yes.diagnostics());
  std::vector<Expr> results;
  try {
    results = emit_branches(c, condition, yes.ok() ? *yes : failing(c, yes.diagnostics(), *no),
                            no.ok() ? *no : failing(c, no.diagnostics(), *yes));
  } catch (const RanksDiffer&) {
    c.fail(codes::unsupported,
           why +
               "; Lathe compiles such branches where the graph's outputs have the same number of dimensions, or "
               "declare it");
  }
  c.graphs().end_with(std::move(results));
}

void if_else(NodeImport& c) {
  const GraphProto& then = c.attributes.graph("then_branch");
  const GraphProto& otherwise = c.attributes.graph("else_branch");
  check_branch(c, then, "then_branch");
  check_branch(c, otherwise, "else_branch");
  expect_dtype(c, 0, DType::boolean());
  if (const auto chosen = constant_truth(c, 0)) {
    c.results() = c.graphs().convert_inline(*chosen ? then : otherwise, *chosen ? "then_branch" : "else_branch");
    return;
  }
  const Expr condition = as_scalar(c, c.input(0));
  const auto branch = [&](const GraphProto& graph, const char* name) {
    return outlined(c, {}, [&] { return tensors_of(c, c.graphs().convert_alone(graph, name)); });
  };
  std::string why;
  try {
    const relax::Outlined yes = branch(then, "then_branch"), no = branch(otherwise, "else_branch");
    const std::vector<Expr> results = emit_branches(c, condition, yes, no);
    for (size_t i = 0; i < c.output_count(); ++i) c.set(i, results[i]);
    return;
  } catch (const RanksDiffer& differ) {
    why = differ.why;
  }
  take_apart(c, condition, then, otherwise, why);
}

// ---- loops ----

bool is_constant_true(const Expr& e) {
  const auto* constant = e.as<relax::Constant>();
  return constant && constant->data->elements() == 1 && ir::int_at(*constant->data, 0) != 0;
}

// The type of something carried: what it is at first, with a name for each extent that a turn changes.
struct Carried {
  StructInfo info;
  std::vector<bool> changes;
  bool is_wrapped = false;  // an optional at first, while a turn gives what it holds
};

const relax::OptionalStructInfo* as_optional(const StructInfo& info) { return info.as<relax::OptionalStructInfo>(); }

// Names the extents that another turn would change; true when there was one.
bool generalize(NodeImport& c, Carried& carried, const StructInfo& after, size_t k) {
  if (!carried.info.is<TensorStructInfo>() || !after.is<TensorStructInfo>()) {
    StructInfo both = relax::joined(carried.info, after);
    if (const auto* optional = as_optional(carried.info); optional && !as_optional(after)) {
      both = relax::joined(optional->element, relax::element_info(after));
      if (both) both = ir::make<relax::OptionalStructInfo>(both);
      carried.is_wrapped = static_cast<bool>(both);
    }
    if (!both)
      c.fail(codes::wrong_node, "the value " + std::to_string(k) + " that is carried is " + text_of_info(carried.info) +
                                    " before and " + text_of_info(after) + " after a turn");
    const bool is_changed = !ir::structural_equal(both, carried.info) || (carried.is_wrapped && !as_optional(after));
    carried.info = both;
    return is_changed;
  }
  const TensorStructInfo &a = tensor_type(carried.info), &b = tensor_type(after);
  if (a.dtype != b.dtype || a.ndim != b.ndim)
    c.fail(a.dtype != b.dtype ? codes::wrong_node : codes::unsupported,
           "the value " + std::to_string(k) + " that is carried from turn to turn is " + relax::text_of(a) +
               " before and " + relax::text_of(b) + " after one" +
               (a.dtype != b.dtype ? "" : "; Lathe compiles loops that keep the number of dimensions"));
  Shape shape = *a.shape;
  bool is_changed = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (carried.changes[d] || relax::same_extent(shape[d], (*b.shape)[d])) continue;
    shape[d] = ir::size_var("carried_" + std::to_string(k) + "_" + std::to_string(d));
    carried.changes[d] = is_changed = true;
  }
  carried.info = relax::tensor_info(std::move(shape), a.dtype);
  return is_changed;
}

// A scalar for an input of the body, which may be declared as a vector of one element.
GraphValue scalar_for(NodeImport& c, const schema::ValueInfoProto& input, const Expr& scalar) {
  const bool is_vector = input.type().tensor_type().has_shape() && input.type().tensor_type().shape().dim_size() == 1;
  return {.tensor = is_vector ? c.reshape(scalar, {ir::int64(1)}) : scalar};
}

void check_body(NodeImport& c, const GraphProto& body, size_t inputs, size_t fixed_outputs) {
  if (static_cast<size_t>(body.input_size()) != inputs)
    c.fail(codes::wrong_node,
           "body has " + count_of(body.input_size(), "input") + ", but the node gives it " + std::to_string(inputs));
  if (static_cast<size_t>(body.output_size()) < fixed_outputs)
    c.fail(codes::wrong_node, "body gives " + count_of(body.output_size(), "output") + ", but " +
                                  std::to_string(fixed_outputs) + " or more are needed");
}

void loop(NodeImport& c) {
  const GraphProto& body = c.attributes.graph("body");
  const size_t carried = c.input_count() < 2 ? 0 : c.input_count() - 2;
  check_body(c, body, 2 + carried, 1 + carried);
  Turns turns;
  if (c.has(0)) {
    expect_dtype(c, 0, DType::int64());
    if (const Integers* known = c.known(0); known && known->size() == 1)
      turns.count = relax::non_negative(known->front());
    turns.trips = as_scalar(c, c.input(0));
  }
  if (c.has(1)) {
    expect_dtype(c, 1, DType::boolean());
    if (constant_truth(c, 1) != true) turns.condition = as_scalar(c, c.input(1));
  }
  for (size_t k = 0; k < carried; ++k) turns.initial.push_back(c.input(2 + k));
  turns.body = [&](const Expr& turn, const Expr& condition, const std::vector<Expr>& values) {
    std::vector<GraphValue> inputs{scalar_for(c, body.input(0), turn), scalar_for(c, body.input(1), condition)};
    for (const Expr& value : values) inputs.push_back({.tensor = value});
    std::vector<Expr> results = results_of_body(c, body, std::move(inputs));
    const auto* decides = relax::as_tensor(results[0]);
    if (!decides || decides->dtype != DType::boolean())
      c.fail(codes::wrong_node, "the first output of body, which says whether to go on, is " +
                                    (decides ? relax::text_of(*decides) : "no tensor") + ", but bool is needed");
    return results;
  };
  set_results(c, emit_loop(c, turns));
}

// ---- Scan ----

Expr tensor_of_extent(NodeImport& c, const ir::Expr& extent) {
  GraphValue value{.integers = Integers{extent}, .dtype = DType::int64()};
  return tensor_of(c.builder(), value);
}

// Part `position` (a scalar) of x along the axis, which goes.
Expr part(NodeImport& c, const Expr& x, const Expr& position, int64_t axis) {
  return c.call(ops::take, {x, position}, ir::make<ops::AxisAttributes>(axis));
}

Expr reversed(NodeImport& c, const Expr& x) {
  const Shape shape = build::shape_of(x);
  const auto flip = [&](const std::vector<te::Tensor>& in) {
    return std::vector{te::compute(
        shape,
        [&](std::vector<ir::Expr> at) {
          at[0] = shape[0] - 1 - at[0];
          return in[0](at);
        },
        in, "reversed")};
  };
  const Expr y = c.builder().call_te("reversed", {x}, flip).value_or_throw();
  return build::dtype_of(x) == relax::string_dtype ? c.call(relax::as_strings_operator, {y}) : y;
}

struct Directions {
  std::vector<int64_t> inputs, outputs, input_axes, output_axes;
};

std::vector<int64_t> list_of(NodeImport& c, const char* name, size_t count, bool is_direction) {
  const auto given = c.attributes.integers(name);
  if (!given) return std::vector<int64_t>(count, 0);
  if (given->size() != count)
    c.fail(codes::wrong_attribute, std::string(name) + " has " +
                                       count_of(static_cast<int64_t>(given->size()), "element") + ", but " +
                                       std::to_string(count) + " are needed");
  for (const int64_t each : *given)
    if (is_direction && each != 0 && each != 1)
      c.fail(codes::wrong_attribute, std::string(name) + " holds " + std::to_string(each) + "; a direction is 0 or 1");
  return *given;
}

// The states and parts of the inputs go into the body turn by turn; what it gives beside states is stacked.
std::vector<Expr> scan(NodeImport& c, const GraphProto& body, const std::vector<Expr>& states,
                       const std::vector<Expr>& inputs, const Directions& directions) {
  const auto axis_of = [&](size_t k) { return c.axis(directions.input_axes[k], relax::as_tensor(inputs[k])->ndim); };
  Turns turns;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const ir::Expr& length = build::shape_of(inputs[k])[static_cast<size_t>(axis_of(k))];
    if (!turns.count) {
      turns.count = length;
    } else if (relax::different_extents(*turns.count, length)) {
      c.fail(codes::wrong_shape, "the inputs that are scanned have lengths " + relax::text_of(*turns.count) + " and " +
                                     relax::text_of(length));
    } else if (!relax::same_extent(*turns.count, length)) {
      build::expect_equal(c.builder(), length, *turns.count);
    }
  }
  turns.trips = tensor_of_extent(c, *turns.count);
  turns.initial = states;
  turns.body = [&](const Expr& turn, const Expr& condition, const std::vector<Expr>& values) {
    std::vector<GraphValue> given;
    for (const Expr& value : values) given.push_back({.tensor = value});
    for (size_t k = 0; k < inputs.size(); ++k) {
      Expr position = turn;
      if (directions.inputs[k] != 0)
        position = c.call(ops::subtract, {c.call(ops::subtract, {turns.trips, c.scalar(DType::int64(), 1)}), turn});
      given.push_back({.tensor = part(c, inputs[k], position, axis_of(k))});
    }
    std::vector<Expr> results = results_of_body(c, body, std::move(given));
    results.insert(results.begin(), condition);
    return results;
  };
  std::vector<Expr> results = emit_loop(c, turns);
  for (size_t k = states.size(); k < results.size(); ++k) {
    const size_t row = k - states.size();
    if (directions.outputs[row] != 0) results[k] = reversed(c, results[k]);
    const int64_t axis = c.axis(directions.output_axes[row], relax::as_tensor(results[k])->ndim, "scan_output_axes");
    results[k] = first_axis_to(c, results[k], axis);
  }
  return results;
}

void scan(NodeImport& c) {
  const GraphProto& body = c.attributes.graph("body");
  const auto count = c.attributes.integer("num_scan_inputs");
  const bool has_batch = c.version < 9;  // and lengths as its first input
  const size_t given = c.input_count() - (has_batch ? 1 : 0);
  if (count < 1 || static_cast<size_t>(count) > given)
    c.fail(codes::wrong_attribute, "num_scan_inputs is " + std::to_string(count) + ", but the node has " +
                                       count_of(static_cast<int64_t>(given), "input"));
  const size_t scanned = static_cast<size_t>(count), states = given - scanned;
  check_body(c, body, given, states);
  const size_t rows = static_cast<size_t>(body.output_size()) - states;
  std::vector<Expr> values;
  for (size_t i = c.input_count() - given; i < c.input_count(); ++i) values.push_back(c.input(i));
  const auto split = [&](const std::vector<Expr>& all) {
    const auto middle = all.begin() + static_cast<ptrdiff_t>(states);
    return std::pair(std::vector<Expr>(all.begin(), middle), std::vector<Expr>(middle, all.end()));
  };
  if (!has_batch) {
    const Directions directions{
        list_of(c, "scan_input_directions", scanned, true), list_of(c, "scan_output_directions", rows, true),
        list_of(c, "scan_input_axes", scanned, false), list_of(c, "scan_output_axes", rows, false)};
    const auto [initial, inputs] = split(values);
    return set_results(c, scan(c, body, initial, inputs, directions));
  }
  if (c.has(0)) c.fail(codes::unsupported, "Scan of opset 8 with lengths of its own for each element of the batch");
  const Directions directions{list_of(c, "directions", scanned, true), std::vector<int64_t>(rows, 0),
                              std::vector<int64_t>(scanned, 0), std::vector<int64_t>(rows, 0)};
  Turns turns;
  turns.count = build::shape_of(values[0]).at(0);
  turns.trips = tensor_of_extent(c, *turns.count);
  turns.body = [&](const Expr& turn, const Expr& condition, const std::vector<Expr>&) {
    std::vector<Expr> parts;
    for (const Expr& value : values) parts.push_back(part(c, value, turn, 0));
    const auto [initial, inputs] = split(parts);
    std::vector<Expr> results = scan(c, body, initial, inputs, directions);
    results.insert(results.begin(), condition);
    return results;
  };
  set_results(c, emit_loop(c, turns));
}

}  // namespace

Expr emit_call(NodeImport& c, const relax::Operator& op, std::vector<Expr> args, std::vector<StructInfo> infos,
               relax::AttributesRef attributes) {
  relax::BlockBuilder& b = c.builder();
  return b.emit(
      relax::make_call(op, std::move(args), std::move(attributes), b.origin(), std::move(infos)).value_or_throw());
}

Expr named(NodeImport& c, const Expr& x, const Extents& extents, const std::string& name) {
  if (!relax::as_tensor(x) || (all_known(extents) && relax::as_tensor(x)->shape)) return x;
  Shape shape;
  for (const auto& extent : extents)
    shape.push_back(extent ? *extent : ir::Expr(ir::size_var(identifier(name) + "_" + std::to_string(shape.size()))));
  return c.builder().match_cast(x, relax::tensor_info(std::move(shape), relax::as_tensor(x)->dtype));
}

Expr as_scalar(NodeImport& c, const Expr& x) { return c.reshape(x, {}); }

// Rows are stacked by their bytes. Of a type of fewer bits they are kept in this one, which has all its values.
std::optional<DType> type_of_rows(DType dtype) {
  if (dtype.is_bool() || dtype.bits >= 8) return std::nullopt;
  if (dtype.is_floating()) return DType::float_(16);
  return dtype.is_uint() ? DType::uint(8) : DType::int_(8);
}

std::vector<Expr> emit_loop(NodeImport& c, const Turns& turns) {
  relax::BlockBuilder& b = c.builder();
  std::map<size_t, DType> narrow;  // results of the body that are kept in a wider type
  std::vector<Carried> carried;
  for (const Expr& value : turns.initial) {
    const auto* info = relax::as_tensor(value);
    carried.push_back({value->struct_info, std::vector<bool>(info ? info->shape->size() : 0, false)});
  }
  relax::Outlined body;
  bool goes_on_always = false;
  for (bool is_changed = true; is_changed;) {
    const relax::BlockBuilder::Mark mark = b.mark();
    std::vector<relax::Var> params{
        relax::relax_var("turn", relax::tensor_info(std::vector<int64_t>{}, DType::int64())),
        relax::relax_var("condition", relax::tensor_info(std::vector<int64_t>{}, DType::boolean()))};
    for (const Carried& each : carried) params.push_back(relax::relax_var("carried", each.info));
    body = outlined(c, params, [&] {
      std::vector<Expr> results = turns.body(params[0], params[1], {params.begin() + 2, params.end()});
      results[0] = as_scalar(c, results[0]);
      for (size_t k = 0; k < carried.size(); ++k)
        if (carried[k].is_wrapped)
          results[1 + k] =
              emit_call(c, relax::make_optional_operator, {results[1 + k]}, {as_optional(carried[k].info)->element});
      for (size_t k = 1 + carried.size(); k < results.size(); ++k)
        if (const auto* row = relax::as_tensor(results[k]))
          if (const std::optional<DType> wide = type_of_rows(row->dtype)) {
            narrow.insert_or_assign(k, row->dtype);
            results[k] = c.cast(results[k], *wide);
          }
      goes_on_always = !turns.condition && (results[0].get() == params[1].get() || is_constant_true(results[0]));
      if (goes_on_always) results[0] = c.scalar(DType::boolean(), 1);
      return results;
    });
    is_changed = false;
    for (size_t k = 0; k < carried.size(); ++k)
      is_changed = generalize(c, carried[k], results_of(body)[1 + k], k) || is_changed;
    if (is_changed) b.go_back(mark);
  }

  Symbols known = symbols_given_to(body);
  relax::Loop parts{"", turns.trips, turns.condition, turns.initial, body.captured, {}};
  std::vector<Extents> extents;
  for (const Carried& each : carried) {
    extents.emplace_back();
    if (!each.info.is<TensorStructInfo>()) {
      parts.results.push_back(each.info);
      continue;
    }
    const TensorStructInfo& info = tensor_type(each.info);
    for (size_t d = 0; d < each.changes.size(); ++d) {
      const ir::Expr& extent = (*info.shape)[d];
      if (each.changes[d]) known.erase(extent.get());
      extents.back().push_back(each.changes[d] ? std::nullopt : std::optional(extent));
    }
    parts.results.push_back(declared(extents.back(), info.dtype));
  }
  for (size_t k = 1 + carried.size(); k < results_of(body).size(); ++k) {
    if (!results_of(body)[k].is<TensorStructInfo>())
      c.fail(codes::wrong_node, "the output " + std::to_string(k) + " of body, which is stacked, is no tensor");
    const TensorStructInfo& row = tensor_type(results_of(body)[k]);
    extents.push_back({goes_on_always ? turns.count : std::nullopt});
    Shape of_none;
    for (const ir::Expr& extent : *row.shape) {
      const bool is_known = is_made_of(extent, known);
      extents.back().push_back(is_known ? std::optional(extent) : std::nullopt);
      of_none.push_back(is_known ? extent : ir::int64(0));
    }
    parts.results.push_back(relax::tensor_info(std::move(of_none), row.dtype));
  }
  parts.body = add(c, body, "body");
  const Expr all = b.emit(relax::make_loop(parts, b.origin()).value_or_throw());
  std::vector<Expr> results;
  for (size_t k = 0; k < extents.size(); ++k)
    results.push_back(named(c, b.tuple_item(all, static_cast<int64_t>(k)), extents[k], "loop"));
  for (size_t k = 0; k < carried.size(); ++k)  // none where there was no turn: the run fails
    if (carried[k].is_wrapped) results[k] = emit_call(c, relax::optional_get_operator, {results[k]});
  for (const auto& [k, dtype] : narrow) results[k - 1] = c.cast(results[k - 1], dtype);
  return results;
}

Expr first_axis_to(NodeImport& c, const Expr& x, int64_t axis) {
  if (axis == 0) return x;
  std::vector<int64_t> order;
  for (int64_t d = 1; d < relax::as_tensor(x)->ndim; ++d) order.push_back(d);
  order.insert(order.begin() + axis, 0);
  return c.call(ops::permute_dims, {x}, ir::make<ops::PermuteDimsAttributes>(std::optional(std::move(order))));
}

Expr axis_to_first(NodeImport& c, const Expr& x, int64_t axis) {
  if (axis == 0) return x;
  std::vector<int64_t> order{axis};
  for (int64_t d = 0; d < relax::as_tensor(x)->ndim; ++d)
    if (d != axis) order.push_back(d);
  return c.call(ops::permute_dims, {x}, ir::make<ops::PermuteDimsAttributes>(std::optional(std::move(order))));
}

std::vector<Expr> results_of_body(NodeImport& c, const GraphProto& body, std::vector<GraphValue> given) {
  for (size_t i = 0; i < given.size(); ++i) {
    const auto& input = body.input(static_cast<int>(i));
    const auto* info = relax::as_tensor(given[i].tensor);
    const int32_t number = input.type().tensor_type().elem_type();
    if (!info || number == schema::TensorProto::UNDEFINED) continue;
    const DType wanted = element_type(number, "the input '" + input.name() + "' of body", c.place()).value_or_throw();
    if (info->dtype != wanted)
      c.fail(codes::wrong_node, "the input '" + input.name() + "' of body is " + element_name(wanted) +
                                    ", but the node gives it " + element_name(info->dtype));
  }
  return tensors_of(c, c.graphs().convert(body, "body", std::move(given)));
}

void set_results(NodeImport& c, const std::vector<Expr>& results) {
  if (results.size() < c.output_count())
    c.fail(codes::wrong_node, "body gives values for " + count_of(static_cast<int64_t>(results.size()), "output") +
                                  ", but the node has " + std::to_string(c.output_count()));
  for (size_t i = 0; i < c.output_count(); ++i) c.set(i, results[i]);
}

Table control() {
  static const OperatorRow rows[] = {
      {"If", {1}, 1, 1, any_number, if_else},
      {"Loop", {1}, 0, any_number, any_number, loop, nullptr, "", true},
      {"Scan", {8, 9}, 0, any_number, any_number, scan},
  };
  return rows;
}

}  // namespace lathe::onnx::operators
