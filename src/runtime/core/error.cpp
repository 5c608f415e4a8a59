#include "runtime/core/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace lathe::runtime {
namespace {

// Fixed buffers: an error must be sayable when there is no memory.
struct Slot {
  LatheError error;
  char message[1024];
  char node[256];
};
thread_local Slot slot = {{LATHE_OK, nullptr, nullptr}, {0}, {0}};

}  // namespace

int32_t fail(int32_t code, const char* node, const char* format, ...) {
  // Formatted aside first: the arguments may be the texts of the last error.
  char message[sizeof(slot.message)];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  if (node != slot.node) std::snprintf(slot.node, sizeof(slot.node), "%s", node == nullptr ? "" : node);
  std::memcpy(slot.message, message, sizeof(message));
  slot.error = {code, slot.message, slot.node};
  return code;
}

const LatheError& last_error() {
  if (slot.error.message == nullptr) slot.error = {LATHE_OK, slot.message, slot.node};
  return slot.error;
}

int32_t at_node(const char* node) {
  if (slot.node[0] == 0) std::snprintf(slot.node, sizeof(slot.node), "%s", node);
  return slot.error.code;
}

ShapeText shape_text(const int64_t* shape, int32_t rank) {
  ShapeText out;
  size_t used = static_cast<size_t>(std::snprintf(out.text, sizeof(out.text), "["));
  for (int32_t i = 0; i < rank && used < sizeof(out.text) - 32; ++i)
    used += static_cast<size_t>(std::snprintf(out.text + used, sizeof(out.text) - used, i > 0 ? ", %lld" : "%lld",
                                              static_cast<long long>(shape[i])));
  std::snprintf(out.text + used, sizeof(out.text) - used, "]");
  return out;
}

DTypeText dtype_text(DLDataType dtype) {
  static const char* const names[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  DTypeText out;
  if (dtype.code == kDLBool && dtype.lanes == 1)
    std::snprintf(out.text, sizeof(out.text), "bool");
  else if (dtype.code >= kDLFloat8_e3m4)
    std::snprintf(out.text, sizeof(out.text), "float%d (DLPack type %d)", dtype.bits, dtype.code);
  else if (dtype.lanes == 1)
    std::snprintf(out.text, sizeof(out.text), "%s%d", names[dtype.code], dtype.bits);
  else
    std::snprintf(out.text, sizeof(out.text), "%s%dx%d", names[dtype.code], dtype.bits, dtype.lanes);
  return out;
}

}  // namespace lathe::runtime
