#include "runtime/cpu/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "abi/call_kernel.h"
#include "runtime/cpu/environment.h"
#include "runtime/cpu/thread_count.h"

namespace lathe::runtime {
namespace {

constexpr int32_t max_workers = 512;
// As many pieces a share is taken in at most: a thread that is late, or on a core that others use too, then keeps
// little from the rest, and a piece is still far longer than taking one.
constexpr int32_t max_pieces = 2;

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

int64_t now_nanoseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
#if defined(__linux__)
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
#else
  if (word.load(std::memory_order_acquire) == expected) sched_yield();
#endif
}

void futex_wake(std::atomic<uint32_t>& word) {
#if defined(__linux__)
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
#else
  (void)word;
#endif
}

// Waits until the word differs from `old`: spins for a while, then sleeps. `sleeping` tells the other side to wake us.
void wait_for_change(std::atomic<uint32_t>& word, uint32_t old, std::atomic<uint32_t>& sleeping, int64_t spin) {
  if (spin > 0) {
    const int64_t until = now_nanoseconds() + spin;
    do {
      for (int i = 0; i < 64; ++i) {
        if (word.load(std::memory_order_acquire) != old) return;
        pause_core();
      }
    } while (now_nanoseconds() < until);
  }
  // The waker stores the word and then reads `sleeping`; both sides are sequentially consistent, so one of them sees
  // the other.
  sleeping.store(1, std::memory_order_seq_cst);
  while (word.load(std::memory_order_seq_cst) == old) futex_wait(word, old);
  sleeping.store(0, std::memory_order_relaxed);
}

void wake(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeping) {
  if (sleeping.load(std::memory_order_seq_cst) != 0) futex_wake(word);
}

struct alignas(128) Worker {
  std::atomic<uint32_t> ticket;  // raised when there is something to do
  std::atomic<uint32_t> sleeping;
  int32_t index;
  pthread_t thread;
};

// What is left of a thread's share of a region: the pieces [next, end), next in the low half. Its thread takes the
// first, others the last. Whoever takes one reads the region only then: a region does not end, and none begins, before
// every piece that was taken is done.
struct alignas(128) Share {
  std::atomic<uint32_t> left;
};

struct Pool {
  std::atomic<uint32_t>
      forking;                 // callers that want to fork; regions run inline meanwhile, so that these get their turn
  std::atomic<uint32_t> busy;  // 1 while a caller owns the workers, or a fork is under way
  int32_t workers;
  bool pins, registered;
  int32_t cores;
  std::atomic<int64_t> spin;  // nanoseconds
  // The region in progress.
  Region region;
  int32_t parts;
  uint32_t pieces;                                // of each share
  std::atomic<int32_t> sharing;                   // shares that may hold something
  alignas(128) std::atomic<uint32_t> unfinished;  // pieces
  std::atomic<uint32_t> caller_sleeping;
  Worker* worker[max_workers];
  Share share[max_workers + 1];
};
Pool pool;
thread_local bool is_in_region = false;

void pin(pthread_t thread, int32_t index) {
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  const int count = CPU_COUNT(&allowed);
  int wanted = count == 0 ? 0 : (index + 1) % count;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || wanted-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_setaffinity_np(thread, sizeof(one), &one);
    return;
  }
#else
  (void)thread, (void)index;
#endif
}

// Takes a piece of the share, its first or its last. False where none is left.
bool take(Share& share, bool first, uint32_t& piece) {
  uint32_t left = share.left.load(std::memory_order_relaxed);
  for (;;) {
    const uint32_t next = left & 0xffff, end = left >> 16;
    if (next == end) return false;
    const uint32_t rest = first ? left + 1 : left - (uint32_t{1} << 16);
    if (!share.left.compare_exchange_weak(left, rest, std::memory_order_acquire, std::memory_order_relaxed)) continue;
    piece = first ? next : end - 1;
    return true;
  }
}

void run_piece(int32_t share, uint32_t piece) {
  const Region& region = pool.region;
  const Part whole = part_of(region.extent, pool.parts, share);
  const Part part = part_of(whole.end - whole.begin, static_cast<int32_t>(pool.pieces), static_cast<int32_t>(piece));
  FloatModeScope mode(region.float_control);
  is_in_region = true;
  abi::call_body(region.body, region.closure, whole.begin + part.begin, whole.begin + part.end);
  is_in_region = false;
}

// Runs what is left of one's own share, and then of the others'; gives how many pieces that were.
uint32_t run_shares(int32_t own) {
  uint32_t done = 0, piece = 0;
  for (; take(pool.share[own], true, piece); ++done) run_piece(own, piece);
  const int32_t shares = pool.sharing.load(std::memory_order_relaxed);
  if (own >= shares) return done;  // late, and the region that is in progress now wants fewer threads
  for (int32_t i = 1; i < shares; ++i) {
    const int32_t other = own + i < shares ? own + i : own + i - shares;
    for (; take(pool.share[other], false, piece); ++done) run_piece(other, piece);
  }
  return done;
}

void* work(void* argument) {
  auto& self = *static_cast<Worker*>(argument);
  uint32_t seen = 0;
  for (;;) {
    wait_for_change(self.ticket, seen, self.sleeping, pool.spin);
    seen = self.ticket.load(std::memory_order_acquire);
    const uint32_t done = run_shares(self.index + 1);
    if (done != 0 && pool.unfinished.fetch_sub(done, std::memory_order_seq_cst) == done)
      wake(pool.unfinished, pool.caller_sleeping);
  }
  return nullptr;
}

// A fork waits until no region is in progress, so the child never inherits half of one. A fork from inside of a body
// cannot wait for itself; the child then has this thread alone and must not return into the region, as with any
// threaded library.
void before_fork() {
  if (is_in_region) return;
  pool.forking.fetch_add(1, std::memory_order_relaxed);
  while (pool.busy.exchange(1, std::memory_order_acquire) != 0) sched_yield();
}
void after_fork_in_parent() {
  if (is_in_region) return;
  pool.forking.fetch_sub(1, std::memory_order_relaxed);
  pool.busy.store(0, std::memory_order_release);
}
void after_fork_in_child() {
  pool.workers = 0;  // they did not come along; new ones start when needed
  pool.forking.store(0, std::memory_order_relaxed);
  pool.unfinished.store(0, std::memory_order_relaxed);
  pool.caller_sleeping.store(0, std::memory_order_relaxed);
  if (!is_in_region) pool.busy.store(0, std::memory_order_release);
}

void first_use() {
  const Environment environment = read_environment();
  pool.registered = true;
  pool.spin.store(static_cast<int64_t>(environment.spin_microseconds) * 1000, std::memory_order_relaxed);
  pool.cores = allowed_cores();
  pool.pins = environment.pin_threads;
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

// With the pool owned. Fewer than wanted where the system gives no more threads.
int32_t ensure_workers(int32_t wanted) {
  if (!pool.registered) first_use();
  if (wanted > max_workers) wanted = max_workers;
  while (pool.workers < wanted) {
    void* memory = nullptr;
    if (posix_memalign(&memory, alignof(Worker), sizeof(Worker)) != 0) break;
    auto* worker = static_cast<Worker*>(memory);
    worker->ticket.store(0, std::memory_order_relaxed);
    worker->sleeping.store(0, std::memory_order_relaxed);
    worker->index = pool.workers;
    // Signals belong to the application's threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&worker->thread, nullptr, work, worker);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (failed != 0) {
      std::free(worker);
      break;
    }
    pthread_detach(worker->thread);
    if (pool.pins) pin(worker->thread, pool.workers);
    pool.worker[pool.workers++] = worker;
  }
  if (pool.workers >= pool.cores) pool.spin.store(0, std::memory_order_relaxed);  // spinning would take cores from work
  return pool.workers < wanted ? pool.workers : wanted;
}

}  // namespace

Part part_of(int64_t extent, int32_t parts, int32_t index) {
  const int64_t each = extent / parts, rest = extent % parts;
  const int64_t begin = each * index + (index < rest ? index : rest);
  return {begin, begin + each + (index < rest ? 1 : 0)};
}

int32_t part_count(int64_t extent, int64_t grain, int32_t threads) {
  if (grain < 1) grain = 1;
  const int64_t parts = extent / grain;
  return static_cast<int32_t>(parts < 1 ? 1 : parts < threads ? parts : threads);
}

void run_region(const Region& region) {
  if (region.extent <= 0) return;
  int32_t parts = part_count(region.extent, region.grain, region.threads);
  if (parts <= 1 || is_in_region || pool.forking.load(std::memory_order_relaxed) != 0 ||
      pool.busy.exchange(1, std::memory_order_acquire) != 0) {
    abi::call_body(region.body, region.closure, 0, region.extent);
    return;
  }
  parts = ensure_workers(parts - 1) + 1;
  pool.region = region;
  pool.parts = parts;
  pool.pieces = static_cast<uint32_t>(part_count(region.extent / parts, region.grain, max_pieces));
  pool.unfinished.store(pool.pieces * static_cast<uint32_t>(parts), std::memory_order_relaxed);
  pool.sharing.store(parts, std::memory_order_relaxed);
  for (int32_t i = 0; i < parts; ++i) pool.share[i].left.store(pool.pieces << 16, std::memory_order_release);
  for (int32_t i = 0; i < parts - 1; ++i) {
    Worker& worker = *pool.worker[i];
    worker.ticket.fetch_add(1, std::memory_order_seq_cst);
    wake(worker.ticket, worker.sleeping);
  }
  const uint32_t done = run_shares(0);
  pool.unfinished.fetch_sub(done, std::memory_order_acq_rel);
  for (uint32_t left = pool.unfinished.load(std::memory_order_acquire); left != 0;
       left = pool.unfinished.load(std::memory_order_acquire))
    wait_for_change(pool.unfinished, left, pool.caller_sleeping, pool.spin);
  pool.busy.store(0, std::memory_order_release);
}

int32_t worker_count() { return pool.workers; }

}  // namespace lathe::runtime
