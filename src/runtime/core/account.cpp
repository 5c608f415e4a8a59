#include "runtime/core/account.h"

#include <cstdlib>
#include <new>

#include "runtime/core/error.h"
#include "runtime/cpu/large_memory.h"

namespace lathe::runtime {

namespace {

// What is kept may be given back on any thread. Held for some instructions.
struct AccountLock {
  Account& account;
  explicit AccountLock(Account& locked) : account(locked) {
    while (account.is_locked.exchange(true, std::memory_order_acquire)) {
    }
  }
  ~AccountLock() { account.is_locked.store(false, std::memory_order_release); }
  AccountLock(const AccountLock&) = delete;
  AccountLock& operator=(const AccountLock&) = delete;
};

// False past the limit.
bool add_bytes(Account* account, uint64_t bytes, uint64_t* now) {
  const uint64_t before = account->bytes.fetch_add(bytes, std::memory_order_relaxed);
  *now = before + bytes;
  if (*now >= before && (account->limit == 0 || *now <= account->limit)) return true;
  account->bytes.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

// Under the lock: the spare blocks for which `goes` holds are freed.
template <typename Condition>
void free_spare(Account& account, Condition goes) {
  for (SpareScratch** at = &account.spare; *at != nullptr;) {
    SpareScratch* block = *at;
    if (!goes(*block)) {
      at = &block->next;
      continue;
    }
    *at = block->next;
    account.bytes.fetch_sub(block->bytes, std::memory_order_relaxed);
    std::free(block);
  }
}

// Under the lock: the smallest block that holds as much; just as much where there is a limit, which refuses the same
// whatever ran before.
SpareScratch* take_spare(Account& account, uint64_t bytes, uint64_t alignment) {
  const uint64_t most = account.limit == 0 ? UINT64_MAX : bytes;
  SpareScratch** best = nullptr;
  for (SpareScratch** at = &account.spare; *at != nullptr; at = &(*at)->next) {
    const uint64_t held = (*at)->bytes;
    if (held >= bytes && held <= most && reinterpret_cast<uintptr_t>(*at) % alignment == 0 &&
        (best == nullptr || held < (*best)->bytes))
      best = at;
  }
  if (best == nullptr) return nullptr;
  SpareScratch* block = *best;
  *best = block->next;
  return block;
}

}  // namespace

Account* make_account() {
  auto* account = static_cast<Account*>(std::calloc(1, sizeof(Account)));
  if (account != nullptr) account->references = 1;
  return account;
}

bool within_limit(const Account& account) {
  return account.limit == 0 || account.bytes.load(std::memory_order_relaxed) <= account.limit;
}

void free_kept(Account* account) {
  const AccountLock lock(*account);
  for (Kept& place : account->kept) {
    if (place.memory == nullptr) continue;
    std::free(place.memory);
    account->bytes.fetch_sub(place.bytes, std::memory_order_relaxed);
    place = {};
  }
  account->kept_bytes = 0;
  free_spare(*account, [](const SpareScratch&) { return true; });
}

void release(Account* account) {
  if (account == nullptr || account->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  free_kept(account);
  std::free(account);
}

bool charge(Account* account, uint64_t bytes) {
  if (account == nullptr) return true;
  uint64_t now = 0;
  if (!add_bytes(account, bytes, &now)) {
    free_kept(account);
    if (!add_bytes(account, bytes, &now)) {
      fail(LATHE_LIMIT_REACHED, nullptr, "%llu bytes more would pass the context's memory limit of %llu bytes",
           static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(account->limit));
      return false;
    }
  }
  uint64_t peak = account->peak.load(std::memory_order_relaxed);
  while (now > peak && !account->peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return true;
}

void discharge(Account* account, uint64_t bytes) {
  if (account != nullptr) account->bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

Account*& current_account() {
  static thread_local Account* account = nullptr;
  return account;
}

bool keep_result(Account* account, void* memory, uint64_t bytes) {
  if (account == nullptr || bytes < Account::least_kept) return false;
  const AccountLock lock(*account);
  if (bytes > Account::most_kept - account->kept_bytes) return false;
  for (Kept& place : account->kept) {
    if (place.memory != nullptr) continue;
    place = {memory, bytes};
    account->kept_bytes += bytes;
    return true;
  }
  return false;
}

void* take_result(Account* account, uint64_t bytes, uint64_t alignment) {
  if (account == nullptr || bytes < Account::least_kept) return nullptr;
  const AccountLock lock(*account);
  for (Kept& place : account->kept) {
    if (place.bytes != bytes || reinterpret_cast<uintptr_t>(place.memory) % alignment != 0) continue;
    void* const memory = place.memory;
    place = {};
    account->kept_bytes -= bytes;
    return memory;
  }
  return nullptr;
}

ScratchBlock take_scratch(Account* account, uint64_t bytes, uint64_t alignment) {
  if (account != nullptr && bytes >= Account::least_kept) {
    const AccountLock lock(*account);
    if (SpareScratch* block = take_spare(*account, bytes, alignment)) return {block, block->bytes, false};
    // A run needs no block that is smaller beside the one that takes its place.
    free_spare(*account, [](const SpareScratch&) { return true; });
  }
  if (!charge(account, bytes)) return {nullptr, 0, true};
  void* const memory = allocate_large(bytes, alignment);
  if (memory == nullptr) discharge(account, bytes);
  return {memory, bytes, false};
}

void give_scratch(Account* account, void* memory, uint64_t bytes) {
  if (account == nullptr || bytes < Account::least_kept) {
    std::free(memory);
    return discharge(account, bytes);
  }
  const AccountLock lock(*account);
  account->spare = new (memory) SpareScratch{account->spare, bytes, true};
}

void trim_scratch(Account* account) {
  if (account == nullptr) return;
  const AccountLock lock(*account);
  free_spare(*account, [](const SpareScratch& block) { return !block.is_of_this_run; });
  for (SpareScratch* block = account->spare; block != nullptr; block = block->next) block->is_of_this_run = false;
}

}  // namespace lathe::runtime
