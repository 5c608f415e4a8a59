#include "runtime/core/strings/string_pool.h"

#include <sys/auxv.h>

#include <cstdlib>
#include <cstring>

#include "runtime/core/error.h"

namespace lathe::runtime {

struct StringPool::Chunk {
  Chunk* next;
  char text[];
};

namespace {

constexpr uint64_t chunk_bytes = 16 << 10;
constexpr int64_t most_strings = INT32_MAX;

uint64_t mixed(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Multiply and fold, eight bytes at a time, from a seed of the process: nobody can prepare strings that meet in a
// table.
uint64_t hash_of(const char* text, uint64_t bytes) {
  uint64_t hash = bytes ^ 0x9e3779b97f4a7c15;
  if (const auto* seed = reinterpret_cast<const char*>(getauxval(AT_RANDOM))) {
    uint64_t word = 0;
    std::memcpy(&word, seed, sizeof(word));
    hash ^= word;
  }
  for (uint64_t at = 0; at < bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text + at, bytes - at < 8 ? bytes - at : 8);
    hash = mixed(hash ^ word, 0xd6e8feb86659fd93 ^ (hash >> 32));
  }
  return mixed(hash, 0xa0761d6478bd642f);
}

}  // namespace

const char* StringPool::text(int64_t number, uint64_t* bytes) const {
  *bytes = 0;
  if (number == 0) return "";
  if (number < 0 || static_cast<uint64_t>(number) > entries_.count) return nullptr;
  const Entry& entry = entries_[static_cast<uint64_t>(number - 1)];
  *bytes = entry.bytes;
  return entry.text;
}

int64_t StringPool::number_of(const char* text, uint64_t bytes) {
  if (bytes == 0) return 0;
  if (account_ == nullptr) account_ = current_account();
  if (entries_.count * 2 >= places_.count && !grow()) return -1;
  const uint64_t mask = places_.count - 1, hash = hash_of(text, bytes);
  uint64_t at = hash & mask;
  for (; places_[at] != 0; at = (at + 1) & mask) {
    const Entry& entry = entries_[places_[at] - 1];
    if (entry.hash == hash && entry.bytes == bytes && std::memcmp(entry.text, text, bytes) == 0) return places_[at];
  }
  const char* copy = copy_of(text, bytes);
  if (copy == nullptr || !add({copy, bytes, hash})) return -1;
  places_[at] = static_cast<uint32_t>(entries_.count);
  return static_cast<int64_t>(entries_.count);
}

bool StringPool::add(const Entry& entry) {
  if (static_cast<int64_t>(entries_.count) < most_strings && entries_.push(entry)) return true;
  fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for one string more than %llu",
       static_cast<unsigned long long>(entries_.count));
  return false;
}

// Twice the places, and room for the entries that may come before they are half full.
bool StringPool::grow() {
  const uint64_t wanted = places_.count == 0 ? 64 : places_.count * 2;
  const uint64_t before = places_.count * sizeof(uint32_t) + places_.count / 2 * sizeof(Entry);
  const uint64_t after = wanted * sizeof(uint32_t) + wanted / 2 * sizeof(Entry);
  if (!charge(account_, after - before)) return false;
  held_ += after - before;
  if (!entries_.reserve(wanted / 2) || !places_.reserve(wanted)) {
    fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for %llu strings", static_cast<unsigned long long>(wanted));
    return false;
  }
  places_.count = 0;
  places_.resize(wanted);
  for (uint64_t i = 0; i < entries_.count; ++i) {
    uint64_t at = entries_[i].hash & (wanted - 1);
    while (places_[at] != 0) at = (at + 1) & (wanted - 1);
    places_[at] = static_cast<uint32_t>(i + 1);
  }
  return true;
}

char* StringPool::copy_of(const char* text, uint64_t bytes) {
  if (bytes > room_) {
    const uint64_t wanted = bytes > chunk_bytes / 4 ? bytes : chunk_bytes;
    if (bytes > UINT64_MAX / 2 || !charge(account_, wanted)) return nullptr;
    held_ += wanted;
    auto* chunk = static_cast<Chunk*>(std::malloc(sizeof(Chunk) + wanted));
    if (chunk == nullptr) {
      fail(LATHE_OUT_OF_MEMORY, nullptr, "there is no memory for a string of %llu bytes",
           static_cast<unsigned long long>(bytes));
      return nullptr;
    }
    std::memcpy(chunk->text + wanted - bytes, text, bytes);
    // A long string lies alone, behind the chunk that has room.
    if (wanted != chunk_bytes && chunks_ != nullptr) {
      chunk->next = chunks_->next;
      chunks_->next = chunk;
    } else {
      chunk->next = chunks_;
      chunks_ = chunk;
      room_ = wanted - bytes;
    }
    return chunk->text + wanted - bytes;
  }
  room_ -= bytes;
  char* copy = chunks_->text + room_;
  std::memcpy(copy, text, bytes);
  return copy;
}

void StringPool::clear() {
  while (chunks_ != nullptr) {
    Chunk* next = chunks_->next;
    std::free(chunks_);
    chunks_ = next;
  }
  std::free(entries_.elements);
  std::free(places_.elements);
  entries_.elements = nullptr;
  places_.elements = nullptr;
  entries_.count = entries_.capacity = places_.count = places_.capacity = 0;
  room_ = 0;
  discharge(account_, held_);
  held_ = 0;
  account_ = nullptr;
}

namespace {

LatheValue* numbers_of(StringPool& pool, Account* account, const LatheValue& strings) {
  LatheValue* made = make_owned_tensor(account, string_number, strings.tensor.ndim, strings.dims);
  for (int64_t i = 0; made != nullptr && i < strings.count; ++i) {
    const int64_t number = pool.number_of(strings.strings[i].text, strings.strings[i].bytes);
    static_cast<int64_t*>(made->tensor.data)[i] = number;
    if (number >= 0) continue;
    release(made);
    return nullptr;
  }
  return made;
}

LatheValue* strings_of(const StringPool& pool, const LatheValue& numbers) {
  LatheValue* made = make_string_tensor(numbers.tensor.ndim, numbers.dims);
  for (int64_t i = 0; made != nullptr && i < numbers.count; ++i) {
    const int64_t number = static_cast<const int64_t*>(numbers.tensor.data)[i];
    uint64_t bytes = 0;
    const char* text = pool.text(number, &bytes);
    if (text == nullptr)
      fail(LATHE_CHECK_FAILED, nullptr, "a tensor of strings holds %lld, which is no string's number",
           static_cast<long long>(number));
    if (text != nullptr && set_string(made, i, text, bytes)) continue;
    release(made);
    return nullptr;
  }
  return made;
}

// The same value with its members made anew. `max_depth` bounds the recursion.
template <typename Each>
LatheValue* with_members(LatheValue* value, const Each& each) {
  LatheValue* made = make_members(value->kind, value->members, value->count);
  for (int64_t i = 0; made != nullptr && i < made->count; ++i) {
    LatheValue* member = each(made->members[i]);
    if (member == nullptr) {
      release(made);
      return nullptr;
    }
    release(made->members[i]);
    made->members[i] = member;
  }
  return made;
}

bool has_members(const LatheValue& value) {
  return value.kind == abi::ValueKind::tuple || value.kind == abi::ValueKind::sequence ||
         value.kind == abi::ValueKind::optional;
}

bool holds_numbers(const LatheValue& value) {
  const DLDataType dtype = value.tensor.dtype;
  return value.kind == abi::ValueKind::tensor && value.backend == abi::Backend::cpu &&
         dtype.code == string_number.code && dtype.bits == string_number.bits && dtype.lanes == 1;
}

}  // namespace

LatheValue* with_numbers(StringPool& pool, Account* account, LatheValue* value) {
  if (value->kind == abi::ValueKind::strings) return numbers_of(pool, account, *value);
  if (!has_members(*value)) return retain(value);
  return with_members(value, [&](LatheValue* member) { return with_numbers(pool, account, member); });
}

LatheValue* with_strings(const StringPool& pool, LatheValue* value) {
  if (holds_numbers(*value)) return strings_of(pool, *value);
  if (!has_members(*value)) return retain(value);
  return with_members(value, [&](LatheValue* member) { return with_strings(pool, member); });
}

}  // namespace lathe::runtime
