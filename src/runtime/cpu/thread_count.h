// How many threads a run may use by default: the smaller of the affinity mask and the cgroup's CPU quota rounded up.
#pragma once

#include <cstdint>

namespace lathe::runtime {

// Cores in this process's affinity mask; at least 1.
int32_t allowed_cores();

// The CPU quota of this process's cgroup, version 2 or 1, in cores rounded up; 0 where there is none. The folders are
// parameters so that tests can show it others than "/proc/self/cgroup" and "/sys/fs/cgroup".
int32_t cgroup_quota(const char* membership = "/proc/self/cgroup", const char* root = "/sys/fs/cgroup");

// The smaller of the two: what the machine allows this process.
int32_t usable_cores();

// option where it is positive, else LATHE_NUM_THREADS, else OMP_NUM_THREADS, else usable_cores.
int32_t choose_thread_count(int32_t option);

}  // namespace lathe::runtime
