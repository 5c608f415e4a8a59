// Lathe's version; CMakeLists.txt says the same.
#pragma once

namespace lathe::support {
inline constexpr const char* version = "0.1.0";
}
