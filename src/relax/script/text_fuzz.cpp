// Any bytes are a script of both dialects or a diagnostic; what is read prints, and the print is read again.
#include "ops/operators.h"
#include "relax/script/dialect.h"
#include "script/parse.h"
#include "script/print.h"
#include "tir/script/dialect.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lathe;  // NOLINT
  static const auto graph = relax::script_dialect(ops::default_operators());
  const script::Dialect* dialects[] = {&tir::script_dialect(), graph.get()};
  const auto module = script::parse({"input", std::string(reinterpret_cast<const char*>(bytes), size)}, dialects);
  if (!module.ok()) return 0;
  const std::string text = script::print(*module, {}, dialects);
  const auto again = script::parse({"printed", text}, dialects);
  if (!again.ok()) fmt::print(stderr, "{}\n{}", text, support::render(again.diagnostics()));
  support::require(again.ok(), "what was read and printed is not read again");
  return 0;
}
