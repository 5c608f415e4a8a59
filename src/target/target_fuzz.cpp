// Any bytes are a target, as JSON or as text, or a diagnostic; what is read is written as JSON, and that is read again
// as the same target.
#include "target/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lathe;  // NOLINT
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  for (const auto& read : {target::target_from_json(text), target::parse_target(text)}) {
    if (!read.ok()) continue;
    const auto again = target::target_from_json(read->to_json());
    support::require(again.ok(), "a target that was read and written is not read again");
    support::require(again->str() == read->str(), "a target that was written is another when it is read");
  }
  return 0;
}
