#include "runtime/core/device.h"

namespace lathe::runtime {

const Device& device_of(abi::Backend backend) {
  switch (backend) {
#define LATHE_BACKEND(name, ...) \
  case abi::Backend::name:       \
    return name##_device();
#include "abi/backends.def"
#undef LATHE_BACKEND
  }
  __builtin_unreachable();
}

}  // namespace lathe::runtime
