// Any bytes are an array or a diagnostic; what is read holds as many bytes as it says, and is read again as it was.
#include "npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lathe;  // NOLINT
  const std::string_view all(reinterpret_cast<const char*>(bytes), size);
  const auto read = tool::read_npy_bytes(all, "fuzzed");
  if (!read.ok()) return 0;
  support::require((*read)->view().size() <= size, "more was read than there is");
  const auto again = tool::read_npy_bytes(tool::npy_bytes(**read), "written").value_or_throw();
  support::require(again->dtype == (*read)->dtype && again->shape == (*read)->shape, "another type or shape came back");
  support::require(again->view() == (*read)->view(), "other bytes came back");
  return 0;
}
