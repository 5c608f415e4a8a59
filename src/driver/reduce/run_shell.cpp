// The user's own command, under a limit of time.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "driver/reduce/reduce.h"
#include "support/environment.h"

namespace lathe::driver {
namespace {

constexpr size_t most_said = 65536;

// Reads until the pipe is closed or the time is over; true when it was closed.
bool read_all(int pipe, std::chrono::steady_clock::time_point deadline, std::string& said) {
  char buffer[4096];
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waits{.fd = pipe, .events = POLLIN, .revents = 0};
    if (::poll(&waits, 1, static_cast<int>(std::min<int64_t>(left.count(), 1000))) <= 0) continue;
    const ssize_t count = ::read(pipe, buffer, sizeof buffer);
    if (count <= 0) return true;
    said.append(buffer, std::min(static_cast<size_t>(count), most_said - std::min(most_said, said.size())));
  }
}

}  // namespace

CommandOutcome run_shell(const std::string& line, double timeout) {
  int ends[2];
  if (::pipe(ends) != 0) return {.code = 127, .said = "there is no pipe"};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  for (const int end : ends) ::posix_spawn_file_actions_addclose(&actions, end);
  // A group of its own: what the command starts ends with it.
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::string shell = "/bin/sh", option = "-c", text = line;
  char* words[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, words[0], &actions, &attributes, words, support::process_environment());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  ::close(ends[1]);
  CommandOutcome outcome;
  if (failed == 0) {
    const auto limit = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(std::min(timeout, 1e6)));
    outcome.timed_out = !read_all(ends[0], std::chrono::steady_clock::now() + limit, outcome.said);
    if (outcome.timed_out) ::kill(-child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  } else {
    outcome = {.code = 127, .said = "there is no shell"};
  }
  ::close(ends[0]);
  return outcome;
}

}  // namespace lathe::driver
