// Cgroup: the limits that Linux control groups, version 1 or 2, put on this process.
#pragma once

#include <stdint.h>

typedef struct CgroupRoots {  // where to look; tests bring a tree of their own
    const char *proc;         // "/proc"
    const char *cgroup;       // "/sys/fs/cgroup"
    const char *cpu;          // "/sys/devices/system/cpu"
} CgroupRoots;

extern const CgroupRoots cgroup_roots;  // this machine's

// The smallest limit from our group up to the root; INT64_MAX when there is none. What cannot be
// read or makes no sense is no limit.
int64_t cgroup_cpu_milli(const CgroupRoots *roots);  // thousandths of a core
int64_t cgroup_memory_bytes(const CgroupRoots *roots);
// How long our groups were kept from their cores so far, for having used up their share; 0:
// unknown.
int64_t cgroup_throttled_ns(const CgroupRoots *roots);
