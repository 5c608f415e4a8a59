// Any bytes are a saved program or a diagnostic; what is loaded is saved, and that is loaded again as the same text.
#include "driver/saved/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace lathe;  // NOLINT
  const auto loaded = driver::saved::load_json({reinterpret_cast<const char*>(bytes), size});
  if (!loaded.ok()) return 0;
  const auto text = driver::saved::save_json(*loaded);
  support::require(text.ok(), "a program that was loaded is not saved");
  const auto again = driver::saved::load_json(*text);
  support::require(again.ok(), "a program that was loaded and saved is not loaded again");
  support::require(*driver::saved::save_json(*again) == *text, "a program that was saved is another when it is loaded");
  return 0;
}
