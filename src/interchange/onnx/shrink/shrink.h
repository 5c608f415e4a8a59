// Makes a model file smaller while something stays true of it: what finds the few nodes that a failure needs. The file
// itself is edited, so that what is found is a model that anybody can run.
#pragma once

#include <functional>
#include <string>

#include "support/result.h"

namespace lathe::onnx {

struct ShrinkOptions {
  std::string name = "model.onnx";  // what diagnostics call the model
  std::string folder;               // where its external data lies; it becomes part of the model
  int most_attempts = 5000;
  std::function<void(const std::string& what, int nodes)> on_progress;  // after each edit that was kept
};

// What is tried: nodes are left out (what they gave becomes an input, what only they read goes), nodes are replaced by
// one of their inputs, outputs and attributes are dropped, dimensions and initializers become smaller, values become 1.
// `holds` is asked of serialised models that Lathe imports, or of any when it does not import the first. The answer is
// the smallest for which it said yes; the model itself when it said so of no other.
support::Result<std::string> shrink_model(std::string content, const std::function<bool(const std::string&)>& holds,
                                          const ShrinkOptions& options = {});

}  // namespace lathe::onnx
