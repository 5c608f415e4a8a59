#include "arith/affine.h"
#include "arith/linear.h"
#include "nodes.h"

namespace lathe::python {
namespace {

using arith::Analyzer;

ir::Var var_of(nb::handle object) { return node_as<ir::VarNode>(object, "a variable is expected"); }

// Of a list of (variable, first value, extent).
arith::Domain domain_of(nb::handle list) {
  arith::Domain domain;
  for (nb::handle item : list) {
    const ir::Var var = var_of(item[0]);
    domain.emplace_back(var, ir::Range{expr_of(item[1], var->dtype), expr_of(item[2], var->dtype)});
  }
  return domain;
}

nb::list objects(const std::vector<ir::Expr>& exprs) {
  nb::list list;
  for (const ir::Expr& e : exprs) list.append(node_object(e));
  return list;
}

nb::tuple interval_of(Analyzer& analyzer, nb::handle e, nb::handle domain) {
  const arith::Interval interval = arith::evaluate_interval(expr_of(e), domain_of(domain), analyzer);
  return nb::make_tuple(node_object(interval.min), node_object(interval.max));
}

nb::object coefficients_of(Analyzer& analyzer, nb::handle e, nb::handle variables) {
  std::vector<ir::Var> vars;
  for (nb::handle v : variables) vars.push_back(var_of(v));
  const auto form = arith::linear_coefficients(expr_of(e), vars, analyzer);
  if (!form) return nb::none();
  nb::list list = objects(form->coefficients);
  list.append(node_object(form->rest));
  return list;
}

// Indices as an affine map of variables, or why they are none.
class AffineIndices {
 public:
  AffineIndices(nb::handle indices, nb::handle domain, nb::handle predicate) {
    auto found =
        arith::detect_affine(exprs_of(indices), domain_of(domain),
                             predicate.is_none() ? ir::Expr() : expr_of(predicate, ir::DType::boolean()), analyzer_);
    if (found.ok())
      map_ = *std::move(found);
    else
      refusal_ = found.diagnostics()[0].message;
  }

  const std::string& refusal() const { return refusal_; }
  const arith::AffineMap& map() const { return map_; }

  nb::list sources() const {
    nb::list list;
    for (const arith::AffineSource& source : map_.sources)
      list.append(nb::make_tuple(node_object(source.var), node_object(source.min), sum(source.fused),
                                 node_object(source.extent)));
    return list;
  }
  nb::list sums() const {
    nb::list list;
    for (const arith::AffineSum& index : map_.indices) list.append(sum(index));
    return list;
  }
  nb::list extents() const { return objects(map_.extents); }
  nb::list normalized() { return objects(arith::normalize(map_, analyzer_)); }
  nb::list inverse(nb::handle outputs) {
    nb::list list;
    for (const auto& [var, value] : unwrap(arith::inverse(map_, exprs_of(outputs), analyzer_)))
      list.append(nb::make_tuple(node_object(var), node_object(value)));
    return list;
  }

 private:
  static nb::tuple sum(const arith::AffineSum& sum) {
    nb::list digits;
    for (const arith::AffineDigit& digit : sum.digits)
      digits.append(
          nb::make_tuple(digit.source, node_object(digit.lower), node_object(digit.extent), node_object(digit.scale)));
    return nb::make_tuple(digits, node_object(sum.base));
  }

  Analyzer analyzer_;
  arith::AffineMap map_;
  std::string refusal_;
};

}  // namespace

void bind_arith(nb::module_& m) {
  nb::class_<Analyzer>(m, "Analyzer", "What is known about integer expressions.")
      .def(nb::init<>())
      .def(
          "bind",
          [](Analyzer& a, nb::handle v, nb::handle min, nb::handle extent) {
            const ir::Var var = node_as<ir::VarNode>(v, "a variable is bound");
            if (extent.is_none()) return a.bind(var, expr_of(min, var->dtype));
            a.bind(var, ir::Range{expr_of(min, var->dtype), expr_of(extent, var->dtype)});
          },
          nb::arg("var"), nb::arg("min"), nb::arg("extent").none())
      .def(
          "update_bound",
          [](Analyzer& a, nb::handle v, std::optional<int64_t> low, std::optional<int64_t> high) {
            arith::ConstIntBound bound;
            if (low) bound.min_value = *low;
            if (high) bound.max_value = *high;
            a.update(node_as<ir::VarNode>(v, "a variable is described"), bound);
          },
          nb::arg("var"), nb::arg("low").none(), nb::arg("high").none())
      .def("update_modular",
           [](Analyzer& a, nb::handle v, int64_t coeff, int64_t base) {
             a.update(node_as<ir::VarNode>(v, "a variable is described"), arith::ModularSet{coeff, base});
           })
      .def("simplify", [](Analyzer& a, nb::handle e) { return node_object(a.simplify(expr_of(e))); })
      .def("const_int_bound",
           [](Analyzer& a, nb::handle e) {
             const arith::ConstIntBound bound = a.const_int_bound(expr_of(e));
             return nb::make_tuple(bound.min_value, bound.max_value);
           })
      .def("modular_set",
           [](Analyzer& a, nb::handle e) {
             const arith::ModularSet set = a.modular_set(expr_of(e));
             return nb::make_tuple(set.coeff, set.base);
           })
      .def("can_prove", [](Analyzer& a, nb::handle e) { return a.can_prove(expr_of(e, ir::DType::boolean())); })
      .def("can_prove_equal",
           [](Analyzer& a, nb::handle x, nb::handle y) { return a.can_prove_equal(expr_of(x), expr_of(y)); })
      .def("interval", interval_of, nb::arg("expr"), nb::arg("domain"),
           "The smallest and the largest value while (variable, first, extent) run; None: no bound.")
      .def("linear_coefficients", coefficients_of, nb::arg("expr"), nb::arg("vars"),
           "A coefficient for each variable and the rest, or None.");
  nb::class_<Analyzer::Constraint>(m, "AnalyzerConstraint", "A condition that holds while this lives.")
      .def(
          "__init__",
          [](Analyzer::Constraint* self, Analyzer& analyzer, nb::handle condition) {
            new (self) Analyzer::Constraint(analyzer, expr_of(condition, ir::DType::boolean()));
          },
          nb::keep_alive<1, 2>());
  nb::class_<AffineIndices>(m, "AffineIndices", "Indices that split and fuse variables: iterator maps.")
      .def(nb::init<nb::handle, nb::handle, nb::handle>(), nb::arg("indices"), nb::arg("domain"),
           nb::arg("predicate").none())
      .def_prop_ro("refusal", &AffineIndices::refusal)
      .def_prop_ro("injective", [](const AffineIndices& self) { return self.map().injective; })
      .def_prop_ro("surjective", [](const AffineIndices& self) { return self.map().surjective; })
      .def("sources", &AffineIndices::sources, "(variable or None, first, fused sum, extent) of each.")
      .def("sums", &AffineIndices::sums, "([(source, lower, extent, scale)], base) of each index.")
      .def("extents", &AffineIndices::extents, "How many values each index takes.")
      .def("normalized", &AffineIndices::normalized)
      .def("inverse", &AffineIndices::inverse, nb::arg("outputs"), "(variable, expression of the outputs) of each.");
}

}  // namespace lathe::python
