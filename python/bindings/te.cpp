#include "ir/visit.h"
#include "nodes.h"
#include "te/tensor.h"

namespace lathe::python {
namespace {

using ir::Expr;
using te::Tensor;

std::vector<ir::IterVar> iter_vars_of(nb::handle objects) {
  std::vector<ir::IterVar> axes;
  const auto add = [&](nb::handle object) {
    const ir::NodeRef node = node_of(object);
    if (!node || !node.as<ir::IterVarNode>())
      throw nb::type_error("axis takes what te.reduce_axis gives, or a list of it");
    axes.push_back(ir::cast<ir::IterVarNode>(node));
  };
  if (PyTuple_Check(objects.ptr()) || PyList_Check(objects.ptr()))
    for (nb::handle object : objects) add(object);
  else
    add(objects);
  return axes;
}

nb::list node_list(const auto& handles) {
  nb::list list;
  for (const auto& handle : handles) list.append(node_object(handle));
  return list;
}

// Sizes as indices: int64, whatever integer the caller has.
std::vector<Expr> shape_of(nb::handle object) {
  std::vector<Expr> shape = exprs_of(object);
  for (Expr& extent : shape)
    if (extent->dtype != ir::DType::int64()) extent = ir::cast(ir::DType::int64(), extent);
  return shape;
}

// What a Python function computes at symbolic indices. It is called once, because what it reads is known only then; the
// tensor's own indices are put in afterwards.
struct Computed {
  std::vector<Expr> extents;
  std::vector<ir::Var> indices;
  std::vector<Expr> bodies;
  std::vector<Tensor> inputs;

  std::vector<Expr> at(const std::vector<Expr>& given) const {
    ir::VarMap map;
    for (size_t d = 0; d < given.size(); ++d) map[indices[d]] = given[d];
    std::vector<Expr> placed;
    for (const Expr& body : bodies) placed.push_back(ir::substitute(body, map));
    return placed;
  }
};

Computed computed(nb::handle shape, const nb::callable& body, const nb::callable& inputs_of) {
  Computed made{.extents = shape_of(shape), .indices = {}, .bodies = {}, .inputs = {}};
  for (size_t d = 0; d < made.extents.size(); ++d)
    made.indices.push_back(ir::var(d < 6 ? std::string(1, "ijklmn"[d]) : fmt::format("i{}", d)));
  const nb::object value = body(node_list(made.indices));
  made.bodies = exprs_of(value);
  for (const Expr& e : made.bodies)
    for (nb::handle input : nb::object(inputs_of(node_object(e)))) {
      const auto tensor = nb::cast<Tensor>(input);
      const bool known = std::any_of(made.inputs.begin(), made.inputs.end(),
                                     [&](const Tensor& t) { return t.buffer.same_as(tensor.buffer); });
      if (!known) made.inputs.push_back(tensor);
    }
  return made;
}

std::vector<Tensor> compute(nb::handle shape, const nb::callable& body, const nb::callable& inputs_of,
                            const std::string& name, const std::string& tag) {
  const Computed made = computed(shape, body, inputs_of);
  if (made.bodies.size() != 1)
    return te::compute_all(made.extents, [&](const std::vector<Expr>& at) { return made.at(at); }, made.inputs, name);
  return {
      te::compute(made.extents, [&](const std::vector<Expr>& at) { return made.at(at)[0]; }, made.inputs, name, tag)};
}

nb::object reduce(const std::string& kind, nb::handle source, nb::handle axis, nb::handle where, nb::handle init) {
  Expr e = expr_of(source);
  if (!where.is_none()) {
    const Expr neutral = kind == "sum"    ? ir::constant(e->dtype, 0)
                         : kind == "prod" ? ir::constant(e->dtype, 1)
                         : kind == "max"  ? ir::min_value(e->dtype)
                                          : ir::max_value(e->dtype);
    e = ir::if_then_else(expr_of(where), e, neutral);
  }
  const std::vector<ir::IterVar> axes = iter_vars_of(axis);
  if (kind == "sum") return node_object(te::sum(e, axes, init.is_none() ? Expr() : expr_of(init, e->dtype)));
  if (!init.is_none()) throw nb::value_error("init is taken by te.sum only");
  if (kind == "prod") return node_object(te::prod(e, axes));
  return node_object(kind == "max" ? te::max(e, axes) : te::min(e, axes));
}

// A reducer of user's functions: fcombine(x, y) and fidentity(dtype); several values at once as tuples.
nb::object comm_reduce(const nb::callable& combine, const nb::callable& identity, nb::handle sources, nb::handle axis) {
  const std::vector<Expr> values = exprs_of(sources);
  const bool single = values.size() == 1;
  std::vector<ir::DType> dtypes;
  for (const Expr& value : values) dtypes.push_back(value->dtype);
  const auto sides = [&](const std::vector<Expr>& side) {
    return single ? node_object(side[0]) : nb::object(nb::tuple(node_list(side)));
  };
  const auto typed = [&](const nb::object& results) {
    std::vector<Expr> list;
    if (single) return std::vector<Expr>{expr_of(results, dtypes[0])};
    for (nb::handle item : results)
      list.push_back(expr_of(item, list.size() < dtypes.size() ? std::optional(dtypes[list.size()]) : std::nullopt));
    if (list.size() != dtypes.size()) throw nb::value_error("a reducer gives one value for each that it combines");
    return list;
  };
  const ir::CommReducer reducer = te::comm_reducer(
      [&](const std::vector<Expr>& l, const std::vector<Expr>& r) { return typed(combine(sides(l), sides(r))); },
      [&](const std::vector<ir::DType>& types) {
        nb::list names;
        for (const ir::DType t : types) names.append(t.str());
        return typed(identity(*names));
      },
      dtypes);
  const std::vector<ir::IterVar> axes = iter_vars_of(axis);
  nb::list results;
  for (size_t i = 0; i < values.size(); ++i)
    results.append(
        node_object(ir::make<ir::Reduce>(reducer, axes, values, Expr(), static_cast<int64_t>(i), std::vector<Expr>{})));
  return single ? nb::object(results[0]) : nb::object(nb::tuple(results));
}

// Parameters in the order of the list, which may mix inputs and outputs; scalars where they stand.
nb::object create_prim_func(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> inputs, outputs;
  for (const Tensor& tensor : tensors) (tensor.op ? outputs : inputs).push_back(tensor);
  const tir::Function made = te::create_prim_func(inputs, outputs);
  const auto param_of = [&](const Tensor& tensor) -> ir::Var {
    size_t at = 0;
    for (const auto* list : {&inputs, &outputs})
      for (const Tensor& t : *list) {
        if (t.buffer.same_as(tensor.buffer)) return made->params[at];
        ++at;
      }
    return {};
  };
  std::vector<ir::Var> params;
  for (const Tensor& tensor : tensors) params.push_back(param_of(tensor));
  params.insert(params.end(), made->params.begin() + static_cast<int64_t>(tensors.size()), made->params.end());
  return node_object(ir::with(*made, [&](tir::PrimFunc& copy) {
    copy.params = params;
    copy.buffer_map.clear();
    for (const ir::Var& param : params)
      if (const ir::Buffer b = made->buffer_of(param)) copy.buffer_map.emplace_back(param, b);
    copy.attrs.set("tir.noalias", true);
  }));
}

nb::list op_inputs(const Tensor& tensor) {
  nb::list list;
  if (tensor.op)
    for (const Tensor& input : tensor.op->inputs) list.append(nb::cast(input));
  return list;
}

}  // namespace

void bind_te(nb::module_& m) {
  nb::class_<Tensor>(m, "TensorState", "A tensor of tensor expressions; lathe.te.Tensor is what users see.")
      .def_prop_ro("buffer", [](const Tensor& t) { return node_object(t.buffer); })
      .def_prop_ro("is_placeholder", [](const Tensor& t) { return !t.op; })
      .def_prop_ro("inputs", op_inputs)
      .def_prop_ro("axis", [](const Tensor& t) { return t.op ? node_list(t.op->axis) : nb::list(); })
      .def_prop_ro("reduce_axis", [](const Tensor& t) { return t.op ? node_list(t.op->reduce_axis) : nb::list(); })
      .def_prop_ro("body", [](const Tensor& t) { return t.op ? node_list(t.op->body) : nb::list(); })
      .def_prop_ro("tag", [](const Tensor& t) { return t.op ? t.op->tag : std::string(); });
  m.def(
      "te_placeholder",
      [](nb::handle shape, const std::string& dtype, const std::string& name) {
        return te::placeholder(shape_of(shape), dtype_named(dtype), name);
      },
      nb::arg("shape"), nb::arg("dtype"), nb::arg("name"));
  m.def("te_compute", compute, nb::arg("shape"), nb::arg("body"), nb::arg("inputs_of"), nb::arg("name"),
        nb::arg("tag"));
  m.def(
      "te_reduce_axis",
      [](nb::handle min, nb::handle extent, const std::string& name) {
        return node_object(te::reduce_axis(expr_of(min), expr_of(extent), name));
      },
      nb::arg("min"), nb::arg("extent"), nb::arg("name"));
  m.def("te_reduce", reduce, nb::arg("kind"), nb::arg("source"), nb::arg("axis"), nb::arg("where").none(),
        nb::arg("init").none());
  m.def("te_comm_reduce", comm_reduce, nb::arg("combine"), nb::arg("identity"), nb::arg("sources"), nb::arg("axis"));
  m.def("te_create_prim_func", create_prim_func, nb::arg("tensors"));
}

}  // namespace lathe::python
