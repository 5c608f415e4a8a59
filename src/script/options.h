// How programs are printed.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ir/tensor_data.h"

namespace lathe::script {

struct PrintOptions {
  std::string ir_prefix = "I";
  std::string tir_prefix = "T";
  std::string relax_prefix = "R";
  std::string module_name = "Module";
  int indent_spaces = 4;
  bool syntax_sugar = true;  // T.grid, T.axis.remap, infix operators
  bool show_struct_info = true;
  // Constants of more than this many elements print as a reference by content hash; their data goes here when given.
  int64_t max_constant_elements = 8;
  std::map<std::string, ir::TensorData>* constants = nullptr;
};

}  // namespace lathe::script
