// The graph's inputs as parameters: their types, and symbolic dimensions as size variables.
#pragma once

#include "interchange/onnx/import.h"
#include "interchange/onnx/read/model.h"
#include "relax/expr.h"

namespace lathe::onnx {

// A dimension's name in options: its own, or, without one, one made of the input's.
std::string dimension_name(const std::string& dim_param, const std::string& input, int index);

struct GraphInputs {
  std::vector<relax::Var> params;  // those that no initializer gives
  std::vector<ir::Var> symbols;    // of their extents
  relax::DimSizesByName sizes;     // what the options tell of symbols, and that images have at least one element a line
};

support::Result<GraphInputs> read_inputs(const Model& model, const schema::GraphProto& graph,
                                         const ImportOptions& options);

}  // namespace lathe::onnx
