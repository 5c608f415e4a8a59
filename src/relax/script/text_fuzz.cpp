// Any bytes are a script of both dialects or a diagnostic; what is read prints, and the print is read again.
#include "relax/call_tir.h"
#include "relax/script/dialect.h"
#include "script/parse.h"
#include "script/print.h"
#include "tir/script/dialect.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lathe;  // NOLINT
  static const relax::OperatorTable* const operators = [] {
    auto* table = new relax::OperatorTable;
    table->add(relax::call_tir_operator);
    return table;
  }();
  static const auto graph = relax::script_dialect(*operators);
  const script::Dialect* dialects[] = {&tir::script_dialect(), graph.get()};
  const auto module = script::parse({"input", std::string(reinterpret_cast<const char*>(bytes), size)}, dialects);
  if (!module.ok()) return 0;
  const std::string text = script::print(*module, {}, dialects);
  (void)script::parse({"printed", text}, dialects);
  return 0;
}
