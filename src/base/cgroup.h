// Cgroup: CPU and memory limits of this process from Linux control groups, version 1 or 2.
#pragma once

#include <stdint.h>

typedef struct CgroupRoots {  // file-system roots; tests use a tree of their own
    const char *proc;         // "/proc"
    const char *cgroup;       // "/sys/fs/cgroup"
    const char *cpu;          // "/sys/devices/system/cpu"
} CgroupRoots;

extern const CgroupRoots cgroup_roots;  // this machine's

// The smallest limit from the process's group up to the root; INT64_MAX if there is none.
// Unreadable and invalid files count as no limit.
int64_t cgroup_cpu_milli(const CgroupRoots *roots);  // thousandths of a core
int64_t cgroup_memory_bytes(const CgroupRoots *roots);
// Total time the groups were throttled by their CPU quota; 0 if unknown.
int64_t cgroup_throttled_ns(const CgroupRoots *roots);
