// What the codecs' libraries call in place of the C library (cmake/codecs.cmake has the list): memory is the
// decoding's, which counts and frees it; ending the process ends the decoding; files and prints do nothing. It also has
// the few functions of libm and of the compiler's library that they need, because an artifact is linked against
// neither.
#include <cmath>

#include "runtime/kernels/images/decoding.h"

using lathe::images::current_decoding;

extern "C" {

void* lathe_codec_malloc(size_t bytes) { return current_decoding().allocate(bytes); }

void* lathe_codec_calloc(size_t count, size_t bytes) {
  size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) all = SIZE_MAX;
  void* memory = current_decoding().allocate(all);
  std::memset(memory, 0, all);
  return memory;
}

void* lathe_codec_realloc(void* memory, size_t bytes) { return current_decoding().reallocate(memory, bytes); }

void lathe_codec_free(void* memory) { current_decoding().release(memory); }

// The decoding's memory is aligned to 64 bytes, more than any codec asks for.
int lathe_codec_posix_memalign(void** memory, size_t alignment, size_t bytes) {
  if (alignment > 64) current_decoding().refuse("the codec asks for memory aligned to %zu bytes", alignment);
  *memory = current_decoding().allocate(bytes);
  return 0;
}

[[noreturn]] void lathe_codec_give_up() { current_decoding().refuse("the codec gave up"); }

// For files, streams and the environment: there are none.
long lathe_codec_nothing() { return 0; }
void* lathe_codec_stream = nullptr;

double lathe_codec_floor(double x) {
  if (!(std::fabs(x) < 0x1p52)) return x;
  const auto whole = static_cast<double>(static_cast<int64_t>(x));
  return whole > x ? whole - 1 : whole;
}
double lathe_codec_sqrt(double x) { return __builtin_sqrt(x); }
long lathe_codec_lrintf(float x) { return __builtin_lrintf(x); }
// Codecs scale by powers of two; gamma, which would need others, is not asked of them.
double lathe_codec_pow(double base, double exponent) {
  const auto whole = static_cast<int>(exponent);
  if (base != 2.0 || whole != exponent) lathe_codec_give_up();
  return std::ldexp(1.0, whole);
}
int lathe_codec_popcount(uint64_t bits) {
  int count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}
}
