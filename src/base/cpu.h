// Cpu: the machine's topology, caches and features, and the CPU and memory budget of this process.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cgroup.h"
#include "base/err.h"

typedef enum CpuFeature {
#define X(id, name) CPU_##id,
#include "base/cpu_feature.def"
#undef X
    CPU_FEATURES
} CpuFeature;

typedef struct CpuThread {  // a hardware thread; core, package and l3 count from 0
    uint32_t os;            // number in affinity masks
    uint32_t core, package;
    uint32_t l3;       // index of its L3 cache; CPU_NO_L3 if there is none
    bool     allowed;  // in the process's affinity mask
} CpuThread;

#define CPU_NO_L3 UINT32_MAX

typedef struct Cpu {
    char       model[128];  // "unknown" if the system does not say
    CpuThread *threads;     // [n_threads]
    uint32_t   n_threads, n_cores, n_packages, n_l3;
    size_t     l1d_bytes, l2_bytes, l3_bytes;  // size of one cache; 0 if unknown
    uint64_t   features;                       // bits by CpuFeature; use cpu_has
} Cpu;

// Fails on lack of memory only: what the system does not report counts as 1, or as 0.
MUST_USE Err cpu_read(Arena *a, const CgroupRoots *roots, Cpu *out);

const char        *cpu_feature_name(CpuFeature f);
static inline bool cpu_has(const Cpu *c, CpuFeature f) { return (c->features >> f & 1) != 0; }

typedef struct CpuBudget {
    uint32_t cores;        // compute threads to use: the minimum of the next three, at least 1
    uint32_t present;      // cores of the machine
    uint32_t allowed;      // cores in the affinity mask
    int64_t  quota_milli;  // cgroup quota in thousandths of a core; INT64_MAX if there is none
} CpuBudget;

CpuBudget cpu_budget(const Cpu *c, const CgroupRoots *roots);
void      cpu_update_affinity(Cpu *c);  // re-reads `allowed` from the calling thread's affinity
// Picks CPUs for n compute threads: one per core first, then SMT siblings, in topology order, so
// that neighbours share an L3. Returns how many were written to os, at most n.
uint32_t cpu_pick(const Cpu *c, uint32_t n, uint32_t *os);
uint64_t
cpu_mem_budget(const CgroupRoots *roots);  // bytes: the smaller of RAM and the cgroup limit

// Fills in threads, cores, packages and caches from sysfs; dir is "/sys/devices/system/cpu". A
// thread without topology files counts as a core of its own.
MUST_USE Err cpu_read_topology(const char *dir, Arena *a, Cpu *c);
