// Any text is a trace or a diagnostic; a trace that is read prints, and the print is read again as the same one.
#include "schedule/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lathe;  // NOLINT
  const auto trace = schedule::parse_trace(std::string(reinterpret_cast<const char*>(bytes), size));
  if (!trace.ok()) return 0;
  const std::string text = trace->as_python();
  const auto again = schedule::parse_trace(text);
  if (!again.ok()) fmt::print(stderr, "{}\n{}", text, support::render(again.diagnostics()));
  support::require(again.ok(), "a trace that was read and printed is not read again");
  support::require(again->as_python() == text, "a trace that was printed is another when it is read");
  return 0;
}
