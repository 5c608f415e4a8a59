// Whether a compiled model computes what its operators mean: against the interpreters, and where a model is too large
// for them as a whole, against an unscheduled compiled build of each operator whose every tensor the interpreter
// checks at random elements.
#pragma once

#include "driver/compile.h"
#include "driver/executable.h"
#include "driver/verify/bisect.h"
#include "driver/verify/tensors.h"
#include "relax/dim_sizes.h"

namespace lathe::driver {

// Reads the model with these symbolic dimensions fixed, or told of.
using ReadWithDims = std::function<support::Result<ir::IRModule>(const relax::DimSizesByName& dims)>;

struct VerifyOptions {
  CompileOptions compile;
  relax::DimSizesByName dims;  // fixed by the user, or told of; those that are not fixed are tried at several sizes
  uint64_t seed = 1;
  double whole_limit = 1e7;  // operations up to which the interpreter runs the whole model
  int64_t samples = 256;     // random elements of each operator beyond it
  bool bisect = false;       // find the pass that is to blame
  Limits limits = {};        // of each run of compiled code
};

// One comparison.
struct VerifyRow {
  std::string dims;     // "batch=3", or ""
  std::string subject;  // an output, or an operator and its result
  std::string oracle;   // "interpreter", "unscheduled build", "onnxruntime"
  Difference difference;
  double tolerance = 0;
};

struct VerifyReport {
  std::vector<VerifyRow> rows;
  std::vector<std::string> remarks;
  bool agrees() const {
    return std::all_of(rows.begin(), rows.end(), [](const VerifyRow& row) { return row.difference.agrees(); });
  }
};

// One trial's inputs and what the compiled model made of them, for a comparison with others.
struct VerifyTrial {
  std::string dims;
  std::vector<std::pair<std::string, ir::TensorData>> inputs, outputs;
};

struct Verification {
  VerifyReport report;
  std::optional<Bisection> bisection;  // of the first trial that differs, else of the first
  std::vector<VerifyTrial> trials;
};

support::Result<Verification> verify_model(const ReadWithDims& read, const VerifyOptions& options);

}  // namespace lathe::driver
