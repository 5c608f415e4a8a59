// Any bytes are an array or a diagnostic; what is read holds as many bytes as it says, and is read again as it was.
#include "npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lathe;  // NOLINT
  const std::string_view all(reinterpret_cast<const char*>(bytes), size);
  const auto read = tool::parse_npy(all, "fuzzed");
  if (!read.ok()) return 0;
  support::require(read->bytes.size() <= size, "more was read than there is");
  const auto again = tool::parse_npy(tool::npy_bytes(*read), "written").value_or_throw();
  support::require(again.descr == read->descr && again.shape == read->shape, "another type or shape came back");
  support::require(again.bytes == read->bytes, "other bytes came back");
  if (const auto strings = tool::strings_of(*read, "fuzzed"); strings.ok()) {
    const auto same = tool::strings_of(tool::npy_array(*strings, read->shape), "written").value_or_throw();
    support::require(same == *strings, "other strings came back");
  }
  if (const auto tensor = tool::tensor_of(*read, "fuzzed", ir::DType::int_(4)); tensor.ok())
    support::require(tool::npy_array(**tensor).shape == read->shape, "another shape came back");
  return 0;
}
