// Values [batch, groups, elements of a group] that are images [batch, channels, spatial…] whose channels are taken
// together in equal groups, computed on the image's rows [batch, pixels, channels].
#pragma once

#include "graph/layout/forms.h"

namespace lathe::graph {

// Whether an image [batch, channels, spatial…] is taken for [batch, groups, elements] of several channels each.
bool groups_channels(const Shape& source, const Shape& result);

// Such values, by the rows of their images. What their variables are bound to stays: it goes where nothing wants it.
class GroupedChannels {
 public:
  // Null where the value is none.
  Expr of(const Expr& value) const;
  bool has_any(const std::vector<Expr>& operands) const;
  void hold(const Var& var, const Expr& rows) { rows_[var.get()] = rows; }
  // `var` is `value`, one of these, with each group of a batch element normalised to mean 0 and variance 1; gives null.
  Result<Expr> normalize(Emitter& emitter, const Var& var, const Expr& value, double epsilon);
  // `var` is elementwise on such values: held too where its other operands are one number a group. Gives null.
  Result<Expr> elementwise(Emitter& emitter, const Var& var, const Operator& op, const Call& call);

 private:
  std::unordered_map<const ir::Node*, Expr> rows_;
};

}  // namespace lathe::graph
