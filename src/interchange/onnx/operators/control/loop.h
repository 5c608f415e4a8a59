// Loops over functions of the module, as Loop, Scan and what goes through sequences need them.
#pragma once

#include "interchange/onnx/node.h"

namespace lathe::onnx::operators {

struct Turns {
  Expr trips, condition;          // scalars; may be null
  std::optional<ir::Expr> count;  // of `trips`, where it is known
  std::vector<Expr> initial;
  // What a turn gives of its number, whether there is a condition to go on, and what is carried: a condition, what is
  // carried on, then rows. It is called again while shapes of what is carried turn out to change.
  std::function<std::vector<Expr>(const Expr& turn, const Expr& condition, const std::vector<Expr>& carried)> body;
};
// What is carried after the last turn, then the stacked rows.
std::vector<Expr> emit_loop(NodeImport& c, const Turns& turns);

using Extents = std::vector<std::optional<ir::Expr>>;  // nothing where only the run knows
// The tensor with names for the extents that only the run knows.
Expr named(NodeImport& c, const Expr& x, const Extents& extents, const std::string& name);
// A scalar of what has one element.
Expr as_scalar(NodeImport& c, const Expr& x);
// x with its first axis moved to that place, and with the axis of that place moved to be the first.
Expr first_axis_to(NodeImport& c, const Expr& x, int64_t axis);
Expr axis_to_first(NodeImport& c, const Expr& x, int64_t axis);

// What the graph makes of values whose element types are those that its inputs are declared to have.
std::vector<Expr> results_of_body(NodeImport& c, const schema::GraphProto& body, std::vector<GraphValue> given);

// A call of an operator whose results are as `infos` says.
Expr emit_call(NodeImport& c, const relax::Operator& op, std::vector<Expr> args,
               std::vector<relax::StructInfo> infos = {}, relax::AttributesRef attributes = {});

// "a sequence of float32[3]".
std::string text_of_info(const relax::StructInfo& info);

// The node's outputs, of which there may be fewer than `results`.
void set_results(NodeImport& c, const std::vector<Expr>& results);

}  // namespace lathe::onnx::operators
