#include "runtime/kernels/images/decoding.h"

#include <cstdio>

namespace lathe::images {

// In front of what is handed out.
struct alignas(64) Decoding::Block {
  Block *previous, *next;
  uint64_t bytes;
};

namespace {

thread_local Decoding* this_threads_decoding = nullptr;

}  // namespace

Decoding& current_decoding() { return *this_threads_decoding; }

int32_t Decoding::run(const char* format, void (*read)(Decoding&)) {
  format_ = format;
  this_threads_decoding = this;
  if (setjmp(begin_) == 0) read(*this);
  this_threads_decoding = nullptr;
  release_all();
  return status_;
}

void Decoding::leave(int32_t status) {
  status_ = status == 0 ? LATHE_VALUE_FAILED : status;
  std::longjmp(begin_, 1);
}

void Decoding::refuse(const char* why, ...) {
  va_list arguments;
  va_start(arguments, why);
  refuse_list(why, arguments);
}

void Decoding::refuse_list(const char* why, va_list arguments) {
  char message[400];
  const int length = std::snprintf(message, 100, "the %s image cannot be decoded: ", format_);
  std::vsnprintf(message + length, sizeof(message) - static_cast<size_t>(length), why, arguments);
  leave(call_.services->raise_error(call_.call_state, LATHE_CHECK_FAILED, message, call_.node));
}

void* Decoding::allocate(uint64_t bytes) {
  check_stop();
  if (bytes > INT64_MAX - sizeof(Block)) bytes = INT64_MAX - sizeof(Block);  // what no memory has
  auto* block = static_cast<Block*>(
      call_.services->allocate(call_.call_state, static_cast<int64_t>(bytes + sizeof(Block)), alignof(Block)));
  if (block == nullptr) leave(LATHE_OUT_OF_MEMORY);
  *block = {nullptr, blocks_, bytes};
  if (blocks_ != nullptr) blocks_->previous = block;
  blocks_ = block;
  return block + 1;
}

void* Decoding::reallocate(void* memory, uint64_t bytes) {
  if (memory == nullptr) return allocate(bytes);
  const Block* block = static_cast<Block*>(memory) - 1;
  void* moved = allocate(bytes);
  std::memcpy(moved, memory, block->bytes < bytes ? block->bytes : bytes);
  release(memory);
  return moved;
}

void Decoding::release(void* memory) {
  if (memory == nullptr) return;
  Block* block = static_cast<Block*>(memory) - 1;
  if (block->next != nullptr) block->next->previous = block->previous;
  (block->previous != nullptr ? block->previous->next : blocks_) = block->next;
  call_.services->release(call_.call_state, block);
}

void Decoding::release_all() {
  while (blocks_ != nullptr) release(blocks_ + 1);
}

void Decoding::begin(int64_t width, int64_t height) {
  if (width <= 0 || height <= 0)
    refuse("it is %lld wide and %lld high", static_cast<long long>(width), static_cast<long long>(height));
  constexpr int64_t most_pixels = int64_t{1} << 46;  // of no machine; products of it fit
  if (width > most_pixels / height)
    refuse("it says that it is %lld wide and %lld high", static_cast<long long>(width), static_cast<long long>(height));
  const int64_t shape[] = {height, width, channels()};
  LatheValue* value = call_.outputs[0] = call_.values->make_tensor({kDLUInt, 8, 1}, 3, shape);
  if (value == nullptr) leave(LATHE_VALUE_FAILED);
  width_ = width;
  height_ = height;
  pixels_ = static_cast<uint8_t*>(call_.values->tensor(value)->data);
  std::memset(pixels_, 0, static_cast<uint64_t>(width * height * channels()));
}

}  // namespace lathe::images
