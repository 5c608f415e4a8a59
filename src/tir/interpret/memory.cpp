#include "tir/interpret/memory.h"

namespace lathe::tir {
namespace interpreter {

uint64_t read_bits(const uint8_t* bytes, int64_t at, int64_t bits) {
  if (at % 8 == 0 && bits % 8 == 0) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at / 8, static_cast<size_t>(bits / 8));
    return word;
  }
  uint64_t word = 0;
  for (int64_t k = 0; k < bits; ++k) word |= static_cast<uint64_t>((bytes[(at + k) / 8] >> ((at + k) % 8)) & 1) << k;
  return word;
}

void write_bits(uint8_t* bytes, int64_t at, int64_t bits, uint64_t value) {
  if (at % 8 == 0 && bits % 8 == 0) {
    std::memcpy(bytes + at / 8, &value, static_cast<size_t>(bits / 8));
    return;
  }
  for (int64_t k = 0; k < bits; ++k) {
    const auto mask = static_cast<uint8_t>(1u << ((at + k) % 8));
    uint8_t& byte = bytes[(at + k) / 8];
    byte = static_cast<uint8_t>((value >> k) & 1 ? byte | mask : byte & ~mask);
  }
}

bool Memory::holds_value(int64_t at, int64_t bits) const {
  if (!written || written->empty()) return true;
  const uint64_t all = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return read_bits(written->data(), at, bits) == all;
}

void Memory::mark_written(int64_t at, int64_t bits) {
  if (written && !written->empty()) write_bits(written->data(), at, bits, ~uint64_t{0});
}

std::unique_ptr<Memory> fresh_memory(std::string name, int64_t size) {
  auto memory = std::make_unique<Memory>();
  memory->name = std::move(name);
  // A pattern no kernel relies on, should a check be missing.
  memory->own_bytes.assign(static_cast<size_t>(size), 0xa5);
  memory->own_written.assign(static_cast<size_t>(size), 0);
  memory->bytes = memory->own_bytes.data();
  memory->size = size;
  memory->written = &memory->own_written;
  return memory;
}

}  // namespace interpreter

TensorBuffer TensorBuffer::zeros(DType dtype, std::vector<int64_t> shape) {
  TensorBuffer tensor{.dtype = dtype, .shape = std::move(shape)};
  tensor.bytes.assign(static_cast<size_t>(dtype.storage_bytes(tensor.elements())), 0);
  return tensor;
}

TensorBuffer TensorBuffer::uninitialised(DType dtype, std::vector<int64_t> shape) {
  TensorBuffer tensor = zeros(dtype, std::move(shape));
  tensor.bytes.assign(tensor.bytes.size(), 0xa5);
  tensor.written.assign(tensor.bytes.size(), 0);
  return tensor;
}

TensorBuffer TensorBuffer::of(const TensorData& data) {
  TensorBuffer tensor{.dtype = data->dtype, .shape = data->shape};
  const std::string_view bytes = data->view();
  tensor.bytes.assign(bytes.begin(), bytes.end());
  return tensor;
}

int64_t TensorBuffer::elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

int64_t TensorBuffer::int_at(int64_t index) const {
  const int64_t bits = dtype.storage_bits();
  return interpreter::from_bits(dtype, interpreter::read_bits(bytes.data(), index * bits, bits)).i;
}

double TensorBuffer::float_at(int64_t index) const {
  const int64_t bits = dtype.storage_bits();
  const interpreter::Scalar value =
      interpreter::from_bits(dtype, interpreter::read_bits(bytes.data(), index * bits, bits));
  return dtype.is_floating() ? value.f : static_cast<double>(value.i);
}

void TensorBuffer::set_int(int64_t index, int64_t value) {
  const int64_t bits = dtype.storage_bits();
  interpreter::write_bits(bytes.data(), index * bits, bits,
                          interpreter::to_bits(dtype, {wrap_integer(value, dtype), 0}));
  if (!written.empty()) interpreter::write_bits(written.data(), index * bits, bits, ~uint64_t{0});
}

void TensorBuffer::set_float(int64_t index, double value) {
  const int64_t bits = dtype.storage_bits();
  interpreter::write_bits(bytes.data(), index * bits, bits, encode_float(dtype, value));
  if (!written.empty()) interpreter::write_bits(written.data(), index * bits, bits, ~uint64_t{0});
}

bool TensorBuffer::is_written(int64_t index) const {
  const int64_t bits = dtype.storage_bits();
  if (written.empty()) return true;
  const uint64_t all = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return interpreter::read_bits(written.data(), index * bits, bits) == all;
}

TensorData TensorBuffer::to_data() const { return tensor_data(dtype, shape, std::string(bytes.begin(), bytes.end())); }

}  // namespace lathe::tir
