// Recurrent cells over sequences. What the input contributes is a product for all steps at once, made before; here the
// steps follow each other in one tensor program.
#pragma once

#include "ops/build.h"

namespace lathe::ops::build {

using CellFunction = std::function<Expr(const Expr&)>;  // an activation, of one element

enum class CellKind : uint8_t { rnn, gru, lstm };

// The gates lie behind one another: rnn: 1; gru: update, reset, hidden; lstm: input, output, forget, cell.
//   rnn   h' = f(x + h R)
//   gru   z, r = f(x + h R);  n = g(x + (r h) R), or with `linear_before_reset` g(x + r (h R + bias));
//         h' = (1 - z) n + z h
//   lstm  i, f = f(x + h R + P c), or with `couples_forget` f = 1 - i;  n = g(x + h R);  c' = f c + i n;
//         o = f(x + h R + P c');  h' = o h(c')
struct RecurrentCell {
  CellKind kind = CellKind::rnn;
  std::vector<CellFunction> functions;  // f, g, h as far as the kind has them
  bool reverse = false;                 // from the last step of a sequence to its first
  bool linear_before_reset = false, couples_forget = false;
  double clip = 0;  // what functions are applied to is kept within [-clip, clip]; 0: as it is
};

// All of one floating dtype but the lengths. B is the batch, H the hidden size, G the gates.
struct RecurrentOperands {
  Value inputs;       // [T, B, G * H]: x R' with all biases that are added outside
  Value weights;      // [H, G * H]
  Value hidden;       // [B, H], before the first step
  Value cell;         // [B, H], of an lstm
  Value lengths;      // [B], integers: steps from there on give 0 and leave the state; null: all have T
  Value peepholes;    // [3 * H], of an lstm: input, output, forget; null: none
  Value hidden_bias;  // [H], of a gru with linear_before_reset
  // Whether the weights are constants: then they are packed when compiled, where their columns are whole panels.
  bool knows_weights = false;
};

struct RecurrentResult {
  Value all;     // [T, B, H]
  Value hidden;  // [B, H], after the last step of each sequence
  Value cell;    // [B, H], of an lstm
};
RecurrentResult recurrent(BlockBuilder& b, const RecurrentOperands& operands, const RecurrentCell& how);

}  // namespace lathe::ops::build
