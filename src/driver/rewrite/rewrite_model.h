// An ONNX model made into another ONNX model: passes over its nodes, part of it, other names, rounded weights; what
// comes of it is run beside the first on random inputs before it is written.
#pragma once

#include "driver/compile.h"
#include "driver/executable.h"
#include "relax/dim_sizes.h"

namespace lathe::driver {

struct RewriteOptions {
  std::vector<std::string> passes;  // rows of node_pipeline(), in this order
  relax::DimSizesByName dims;
  std::vector<std::string> inputs, outputs;    // names of values: the part between them; empty: the model's own
  std::map<std::string, std::string> renames;  // of values, inputs and outputs
  int64_t weight_levels = 0;                   // each tensor of weights takes at most so many values; 0: as they are
  bool data_file = false;                      // large tensors go into a file beside the model
  bool check = true;
  uint64_t seed = 1;
  CompileOptions compile;  // of both models, to be compared
  Limits limits = {};
};

struct RewriteReport {
  struct Size {
    int64_t nodes = 0;   // of the graph
    uint64_t bytes = 0;  // of the model's file and those beside it
  };
  Size before, after;
  std::vector<ir::Remark> remarks;
  // Of the comparison: the sizes tried and, where nothing could be tried, why not.
  int trials = 0;
  std::string unchecked;
  double largest_error = 0;  // of any output, over its largest value
};

// Refused, and nothing is written: names that are not there, an output that needs an input which is left out, results
// that differ. Where weights are rounded, results may differ, and the report says by how much.
support::Result<RewriteReport> rewrite_model(const std::string& from, const std::string& to,
                                             const RewriteOptions& options);

// The part of a model of nodes that computes `outputs` from `inputs` (onnx::import_nodes); each may be empty.
support::Result<ir::IRModule> extract_nodes(ir::IRModule module, const std::vector<std::string>& inputs,
                                            const std::vector<std::string>& outputs);
// Each constant of floats with more elements than levels takes the nearest of that many values, at equal distances from
// its smallest to its largest: what a general-purpose compressor then makes small.
ir::IRModule round_weights(ir::IRModule module, int64_t levels);

}  // namespace lathe::driver
