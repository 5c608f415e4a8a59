// A tensor function of a library (lathe.build, export_library) called with arrays from files: `lathe run --function`.
#pragma once

#include "support/std.h"

namespace lathe::tool {

struct FunctionCall {
  std::string library, name;
  std::vector<std::string> inputs;  // "0=file.npy", "1=3": each argument by its number
  std::string output;               // .npz of the parameters that the function writes; empty: nowhere
  int threads = 0;
};

void run_function(const FunctionCall& call);

}  // namespace lathe::tool
