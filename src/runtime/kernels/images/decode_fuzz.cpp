// libFuzzer: a file of whatever kind, decoded under limits.
#include "runtime/kernels/images/decoding_fixture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lathe::images;
  static const testing::Decoder decoders[] = {testing::Decoder(PixelOrder::rgb), testing::Decoder(PixelOrder::gray)};
  decoders[size % 2].decode(data, size);
  return 0;
}
