// What the conversion of one operator is given: the binding, and what convert_layout knows of the function so far.
#pragma once

#include "graph/layout/grouped_channels.h"
#include "graph/layout/planes.h"
#include "graph/layout/twins.h"
#include "graph/layout/wanted_layouts.h"

namespace lathe::graph {

struct Layouts {
  ir::IRModule& module;  // takes tensor programs with the channels last
  const WantedLayouts wanted;
  Twins twins = {};
  Planes planes = {};
  GroupedChannels groups = {};
  std::unordered_map<const ir::Node*, Expr> splits = {};       // tuples, their parts with the channels last
  std::unordered_map<std::string, std::string> programs = {};  // tensor programs, those with the channels last
};

struct Conversion {
  Layouts& layouts;
  Emitter& emitter;
  const Var& var;
  const Expr& value;  // a call of `op`
  const Operator& op;
  const Call& call;

  template <typename T>
  const T& attributes() const {
    return *static_cast<const T*>(call.attributes.get());
  }
  // Whether the first operand is there with the channels last.
  bool has_twin() const { return layouts.twins.of(call.args[0]) != nullptr; }
  Result<Expr> image(const Expr& e) const { return layouts.twins.image(emitter, e); }
  Result<Expr> rows(const Expr& e) const { return layouts.twins.rows(emitter, e); }
  // `last` is what the variable is, in that form; gives what the variable itself is bound to.
  Result<Expr> converted(const Expr& last, Form form) const {
    return layouts.twins.converted(emitter, var, last, form);
  }
};

// What the variable is bound to instead, or null, where the value stays as it is.
Result<Expr> convert_convolution(const Conversion& c);
// Of any operator that is a view.
Result<Expr> convert_view(const Conversion& c);
Result<Expr> convert_permutation(const Conversion& c);

}  // namespace lathe::graph
