// The sum over this code generator's sources by which what it made is known; written by the build
// (cmake/code_generator_sum.cmake).
#pragma once

namespace lathe::codegen {

extern const char* const code_generator_sum;

}  // namespace lathe::codegen
