// The names that operator files use from the rooms below.
#pragma once

#include "ops/attributes.h"
#include "ops/operators.h"
#include "te/topi/elementwise.h"

namespace lathe::ops {

using ir::DType;
using ir::Expr;
using relax::DTypeSet;
using relax::FusionKind;
using relax::InferContext;
using relax::Input;
using relax::LowerContext;
using relax::Result;
using relax::Shape;
using relax::StructInfo;
using relax::TensorStructInfo;
using te::Tensor;
using Axes = std::vector<int64_t>;
using Indices = std::vector<Expr>;

namespace codes = relax::codes;

}  // namespace lathe::ops
