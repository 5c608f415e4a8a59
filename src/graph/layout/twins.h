// Values [batch, channels, spatial…] and the same elements with the channels last: what convert_layout has of them.
#pragma once

#include "graph/layout/forms.h"

namespace lathe::graph {

// With the channels last: [batch, spatial…, channels], or [batch, pixels, channels], a view of it.
enum class Form { image, rows };

// The same elements as a value, in the forms that were asked for so far.
struct Twin {
  Expr image, rows;
  Form computed_in = Form::image;
  size_t position = 0;  // the later, the likelier to be fused with what comes now
};

class Twins {
 public:
  // Null where the value was neither converted nor turned so far.
  const Twin* of(const Expr& value) const;
  // The latest of the operands' twins, and the first of those that are as late; null where none has one.
  const Twin* latest_of(const std::vector<Expr>& operands) const;

  // The value in that form, which is made where there is none: a value without a twin is turned.
  Result<Expr> in(Emitter& emitter, const Expr& value, Form form);
  Result<Expr> image(Emitter& emitter, const Expr& value);
  Result<Expr> rows(Emitter& emitter, const Expr& value);
  // What is there already.
  Result<Expr> image_or_rows(Emitter& emitter, const Expr& value);
  // An operand of what is elementwise on images of `rank` axes.
  Result<Expr> operand(Emitter& emitter, const Expr& value, size_t rank, Form form);

  // `image` is what `var` is, and so are `rows`, which may be the image too where that has one spatial axis.
  void hold_image(const Var& var, const Expr& image);
  void hold_rows(const Var& var, const Expr& rows, const Expr& image = {});
  // Emits `value`, which is what `var` is, in that form; gives what `var` itself is bound to, which nothing may need.
  Result<Expr> converted(Emitter& emitter, const Var& var, const Expr& value, Form form);

 private:
  std::unordered_map<const ir::Node*, Twin> twins_;
  std::unordered_map<const ir::Node*, Expr> widened_;  // operands of a lower rank with leading ones
  std::vector<Expr> kept_;                             // keeps the keys alive
};

}  // namespace lathe::graph
