// Python's operators on scalar expressions: operands brought to one dtype, constants folded.
#include "nodes.h"

namespace lathe::python {
namespace {

using ir::DType;
using ir::Expr;
using Builder = Expr (*)(Expr, Expr);

Expr divided(Expr a, Expr b) {
  if (!a->dtype.is_floating()) {
    const std::string message =
        fmt::format("'/' of {} does not say how to round: use // to round down, or tir.truncdiv", a->dtype.str());
    throw nb::type_error(message.c_str());
  }
  return ir::div(std::move(a), std::move(b));
}

template <const ir::Intrinsic& op>
Expr called(Expr a, Expr b) {
  const DType dtype = a->dtype;
  return ir::call(dtype, op, {std::move(a), std::move(b)});
}

// On conditions, & and | are the logical operators.
template <const ir::Intrinsic& op, Builder logical>
Expr bitwise(Expr a, Expr b) {
  return a->dtype.is_bool() ? logical(std::move(a), std::move(b)) : called<op>(std::move(a), std::move(b));
}

const std::map<std::string, Builder> builders = {
    {"+", ir::add},
    {"-", ir::sub},
    {"*", ir::mul},
    {"/", divided},
    {"//", ir::floordiv},
    {"%", ir::floormod},
    {"**", called<ir::intrinsic::pow>},
    {"<<", called<ir::intrinsic::shift_left>},
    {">>", called<ir::intrinsic::shift_right>},
    {"&", bitwise<ir::intrinsic::bitwise_and, ir::logical_and>},
    {"|", bitwise<ir::intrinsic::bitwise_or, ir::logical_or>},
    {"^", called<ir::intrinsic::bitwise_xor>},
    {"<", ir::lt},
    {"<=", ir::le},
    {">", ir::gt},
    {">=", ir::ge},
    {"==", ir::eq},
    {"!=", ir::ne},
};

// A scalar beside a vector is in every lane; an integer beside a float becomes that float type; of two integers of one
// sign, or two floats, the narrower becomes the wider. Everything else is refused by the builders.
void match(Expr& a, Expr& b) {
  if (a->dtype.is_scalar() && b->dtype.is_vector()) a = ir::make<ir::Broadcast>(a, int64_t{b->dtype.lanes});
  if (b->dtype.is_scalar() && a->dtype.is_vector()) b = ir::make<ir::Broadcast>(b, int64_t{a->dtype.lanes});
  const DType x = a->dtype, y = b->dtype;
  if (x == y || x.lanes != y.lanes || x.is_handle() || y.is_handle()) return;
  const bool widen_left = x.is_floating() == y.is_floating() ? x.bits < y.bits : y.is_floating();
  const bool same_family = x.code == y.code && (x.is_integer() || x.is_ieee_float());
  if (!same_family && x.is_floating() == y.is_floating()) return;
  if (widen_left)
    a = ir::cast(y, a);
  else
    b = ir::cast(x, b);
}

nb::object binary(const std::string& op, nb::handle left, nb::handle right) {
  // A number takes the other operand's type; a float beside an integer keeps its own.
  const ir::Value x = value_or_throw(left), y = value_or_throw(right);
  const auto is_node = [](const ir::Value& v) { return v.get<ir::NodeRef>() != nullptr; };
  const auto weak = [](nb::handle number, const ir::Value& v, const Expr& beside) {
    const bool real = v.get<double>() != nullptr;
    return expr_of(number, real && !beside->dtype.is_floating() ? DType::float32() : beside->dtype.element());
  };
  Expr a = is_node(x) ? expr_of(left) : Expr(), b = is_node(y) ? expr_of(right) : Expr();
  if (!a && !b) throw nb::type_error("one operand at least is an expression");
  if (!a) a = weak(left, x, b);
  if (!b) b = weak(right, y, a);
  match(a, b);
  return node_object(builders.at(op)(a, b));
}

}  // namespace

void bind_operators(nb::module_& m) {
  m.def("binary", binary, nb::arg("operator"), nb::arg("a"), nb::arg("b"), "The expression `a operator b`.");
}

}  // namespace lathe::python
