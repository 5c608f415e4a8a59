#include "runtime/cpu/deadline.h"

#include <pthread.h>
#include <signal.h>

#include <ctime>

namespace lathe::runtime {
namespace {

constexpr int64_t never = INT64_MAX;

struct Watch {
  pthread_mutex_t mutex;
  pthread_cond_t earlier;  // signalled when a deadline comes before `wakes_at`
  bool is_registered, is_running;
  int64_t wakes_at;
  Deadline* armed;
};
Watch watch = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wakes_at = never};

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

void make_condition() {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
#if defined(__linux__)
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
  pthread_cond_init(&watch.earlier, &attributes);
  pthread_condattr_destroy(&attributes);
}

// Tells those that are late; the time of the next one.
int64_t tell_and_look_ahead() {
  const int64_t time = now();
  int64_t next = never;
  for (Deadline* each = watch.armed; each != nullptr; each = each->next) {
    if (each->at <= time) {
      each->at = never;
      each->late(each->owner);
    } else if (each->at < next) {
      next = each->at;
    }
  }
  return next;
}

void* keep_watch(void*) {
  pthread_mutex_lock(&watch.mutex);
  for (;;) {
    watch.wakes_at = tell_and_look_ahead();
    if (watch.wakes_at == never) {
      pthread_cond_wait(&watch.earlier, &watch.mutex);
    } else {
      const timespec until = {watch.wakes_at / 1000000000, watch.wakes_at % 1000000000};
      pthread_cond_timedwait(&watch.earlier, &watch.mutex, &until);
    }
  }
  return nullptr;
}

// The thread does not come along into a child, nor do the runs of other threads; what this thread has armed may.
void before_fork() { pthread_mutex_lock(&watch.mutex); }
void after_fork_in_parent() { pthread_mutex_unlock(&watch.mutex); }
void after_fork_in_child() {
  watch.mutex = PTHREAD_MUTEX_INITIALIZER;
  make_condition();
  watch.is_running = false;
  watch.wakes_at = never;
  watch.armed = nullptr;
}

// With the lock held.
bool ensure_thread() {
  if (watch.is_running) return true;
  if (!watch.is_registered) {
    make_condition();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    watch.is_registered = true;
  }
  sigset_t all, before;  // signals belong to the application's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  watch.is_running = pthread_create(&thread, nullptr, keep_watch, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (watch.is_running) pthread_detach(thread);
  return watch.is_running;
}

}  // namespace

bool arm(Deadline& deadline) {
  pthread_mutex_lock(&watch.mutex);
  const bool is_watched = ensure_thread();
  if (is_watched) {
    deadline.next = watch.armed;
    watch.armed = &deadline;
    // Runs of one limit follow one another with later and later deadlines: the thread sleeps on until the first of
    // them would have been, and is rarely woken.
    if (deadline.at < watch.wakes_at) {
      watch.wakes_at = deadline.at;
      pthread_cond_signal(&watch.earlier);
    }
  }
  pthread_mutex_unlock(&watch.mutex);
  return is_watched;
}

void disarm(Deadline& deadline) {
  pthread_mutex_lock(&watch.mutex);
  for (Deadline** link = &watch.armed; *link != nullptr; link = &(*link)->next) {
    if (*link != &deadline) continue;
    *link = deadline.next;
    break;
  }
  pthread_mutex_unlock(&watch.mutex);
}

}  // namespace lathe::runtime
