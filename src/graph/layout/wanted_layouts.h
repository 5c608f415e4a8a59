// What a function wants with the channels last, asked before anything of it is converted: which convolutions are
// computed so, what the values between them are read as, and which images are made with their padding around them.
#pragma once

#include "graph/constant_weights.h"
#include "target/target.h"

namespace lathe::graph {

class WantedLayouts {
 public:
  // Borrows the target.
  WantedLayouts(const Function& function, const target::Target& target);

  // Whether a convolution is computed with the channels last.
  bool turns(const Call& conv) const;
  // Whether a convolution to a few channels, which fill no vector, reads an image with the channels last where it lies
  // so already: vectors run along the channels that are read then, and are written in planes.
  bool reads_last(const Call& conv) const;
  // Whether a convolution that turns reads an image as it lies where it was not turned for another: each group by
  // itself, or few channels.
  bool reads_as_it_lies(const Call& conv) const;
  // Whether a convolution, whose value `var` is, is depthwise, and vectors that run along the rows of its image are not
  // mostly empty: it needs no other order then, and two transpositions cost about as much as it does.
  bool fills_rows(const Call& conv, const Var& var) const;

  // Whether a value is wanted with the channels last: by a convolution that turns, by a transposition of the model's
  // own, or by what passes its own order on.
  bool wants_last(const Expr& value) const { return wanted_last_.count(value.get()) > 0; }
  // Whether it is what a convolution that `reads_last` reads, or what that is computed of.
  bool is_wanted_by_few(const Expr& value) const { return wanted_by_few_.count(value.get()) > 0; }

  // Whether a convolution computes the value, and another with padding reads it: written into the padded image, it
  // needs no copy.
  bool is_computed_into_padding(const Expr& value) const { return computed_into_padding_.count(value.get()) > 0; }
  // Whether no convolution computes it, and one with padding alone reads it: what turns it writes it so.
  bool is_turned_into_padding(const Expr& value) const { return turned_into_padding_.count(value.get()) > 0; }
  // Whether a convolution's own value, or what is elementwise behind it, is what `is_computed_into_padding` means.
  bool fills_padding(const Var& conv) const { return fill_padding_.count(conv.get()) > 0; }

 private:
  using Values = std::unordered_set<const ir::Node*>;
  void find_padded(const Function& function, const std::vector<Binding>& bindings);
  void find_wanted_last(const std::vector<Binding>& bindings);
  bool is_as_given(const Call& conv) const;

  const target::Target& target_;
  const ConstantWeights weights_;
  const int64_t lanes_;
  Values wanted_last_, wanted_by_few_;
  Values computed_into_padding_, turned_into_padding_;
  Values fill_padding_;  // variables of convolutions
};

}  // namespace lathe::graph
