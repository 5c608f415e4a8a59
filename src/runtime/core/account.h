// What the runs of a context hold, counted against its limit, and memory that is kept from one run to the next.
#pragma once

#include <atomic>
#include <cstdint>

namespace lathe::runtime {

// Memory that a result gave back, for the next result of its size: fresh pages cost more than a small model's run.
struct Kept {
  void* memory;
  uint64_t bytes;
};

// Memory that kernels of a run gave back, for the next one that asks for so much or less. It says so of itself.
struct SpareScratch {
  SpareScratch* next;
  uint64_t bytes;
  bool is_of_this_run;
};

// Counts the bytes that a context's runs hold, against its limit, and keeps some of what they give back; that stays
// counted, and goes before the limit refuses. Results may outlive the context, so references are counted.
struct Account {
  static constexpr uint64_t least_kept = 64 << 10, most_kept = 64 << 20;  // bytes: of one, of all results together
  std::atomic<int32_t> references;
  std::atomic<uint64_t> bytes, peak;
  uint64_t limit;               // 0: none
  std::atomic<bool> is_locked;  // for what follows
  Kept kept[8];                 // of results
  uint64_t kept_bytes;
  SpareScratch* spare;  // no more than a run needs
};
Account* make_account();
void release(Account* account);
bool within_limit(const Account& account);
void free_kept(Account* account);               // of results, and scratch
bool charge(Account* account, uint64_t bytes);  // false, with the error said, past the limit
void discharge(Account* account, uint64_t bytes);

// What a result gave back, and to give it back; null and false where nothing fits.
void* take_result(Account* account, uint64_t bytes, uint64_t alignment);
bool keep_result(Account* account, void* memory, uint64_t bytes);

// Scratch memory of a run, of which large blocks are kept for the next one.
struct ScratchBlock {
  void* memory;        // null where there is none
  uint64_t bytes;      // as many as were asked for, or more
  bool is_past_limit;  // it is null for this, and the error is said
};
ScratchBlock take_scratch(Account* account, uint64_t bytes, uint64_t alignment);
void give_scratch(Account* account, void* memory, uint64_t bytes);
// Ends a run: what it did not use is freed.
void trim_scratch(Account* account);

// The account that values made on this thread are charged to; null outside of runs.
Account*& current_account();

}  // namespace lathe::runtime
