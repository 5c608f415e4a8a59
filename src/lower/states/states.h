// Values that a context keeps from one run to the next: a cache of keys and values, a recurrent cell's memory. The
// model takes each as an input and gives it as an output; whoever runs the artifact sees neither. The attribute of the
// main function says which of its last parameters they are, one entry each, tensors first:
//
//   R.func_attr({"states": [{"output": 1}, {"axis": 2, "length": "past"}, {"output": 2}]})
//
// Output 1 replaces the first. The second is memory for as many elements along axis 2 as there may ever be, `past` of
// which count; the function writes behind them. The third is `past`, replaced by output 2. Outputs that replace states
// are the last, in this order. What a run does with them: runtime/core/states.h.
#pragma once

#include "ir/pass.h"
#include "relax/expr.h"

namespace lathe::lower {

struct State {
  int64_t output = -1;      // that replaces it; -1: it is written in place
  int64_t axis = -1;        // along which it grows there
  std::string length = {};  // the symbol that says how far, which is a state of its own

  bool is_in_place() const { return output < 0; }
};

// Empty where the function keeps none. What the attribute says is believed: see check_states.
std::vector<State> states_of(const relax::FunctionNode& function);
// Whether it says what can be, of a main function from a script too. Diagnostic: lower-wrong-state.
support::Status check_states(const relax::FunctionNode& function);
// The number that a value is that is one and no tensor (the length of a state); null for others.
ir::Expr as_size(const relax::Expr& e);
void set_states(ir::Attributes& attributes, const std::vector<State>& states);

// An input and the output that takes its place for the next run. A '*' in both stands for any text, the same in both.
using StateNames = std::pair<std::string, std::string>;

// The module whose main function keeps these: its parameters and results in the order above. Diagnostic:
// lower-wrong-state, where there is no such input or output, or one cannot take the other's place.
support::Result<ir::IRModule> keep_states(ir::IRModule module, const std::vector<StateNames>& names);

// States that a kernel puts together of what there was and what is new ("concat", along an axis of a length that only
// the run knows) are written in place: the memory is for the most elements that the sizes told of symbols allow, and
// kernels read the part of it that counts. Others are replaced as before.
support::Result<ir::IRModule> states_in_place(ir::IRModule module, const ir::PassContext& context);

}  // namespace lathe::lower
