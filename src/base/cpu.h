// Cpu: what this machine has, what of it we may use, and how much memory goes with that.
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
    uint32_t os;            // its number for affinity calls
    uint32_t core, package;
    uint32_t l3;       // threads with the same number share one; CPU_NO_L3 when there is none
    bool     allowed;  // by our affinity
} CpuThread;

#define CPU_NO_L3 UINT32_MAX

typedef struct Cpu {
    char       model[128];  // "unknown" at worst
    CpuThread *threads;     // [n_threads]
    uint32_t   n_threads, n_cores, n_packages, n_l3;
    size_t     l1d_bytes, l2_bytes, l3_bytes;  // of one cache; 0 when unknown
    uint64_t   features;                       // bits by CpuFeature; use cpu_has
} Cpu;

// Never fails over what the machine says: what cannot be learned is counted as one of it, or as 0.
MUST_USE Err cpu_read(Arena *a, const CgroupRoots *roots, Cpu *out);

const char        *cpu_feature_name(CpuFeature f);
static inline bool cpu_has(const Cpu *c, CpuFeature f) { return (c->features >> f & 1) != 0; }

typedef struct CpuBudget {
    uint32_t cores;    // the smallest of the next three, at least 1: so many threads may compute
    uint32_t present;  // cores of the machine
    uint32_t allowed;  // cores our affinity reaches
    int64_t  quota_milli;  // of the control groups; INT64_MAX when there is none
} CpuBudget;

CpuBudget cpu_budget(const Cpu *c, const CgroupRoots *roots);
void      cpu_update_affinity(Cpu *c);  // as the calling thread's affinity is by now
// Where n threads compute best, by affinity number: a core each before siblings, near L3 first.
// Returns how many there are, at most n.
uint32_t cpu_pick(const Cpu *c, uint32_t n, uint32_t *os);
uint64_t cpu_mem_budget(const CgroupRoots *roots);  // bytes: of RAM and control groups the smaller

// CpuSys: the hardware threads, cores and caches that Linux lists in a folder, without allocating.

// Fills in the threads, what they share and the caches; dir is "/sys/devices/system/cpu" or its
// like. What is not told of a thread makes it a core of its own.
MUST_USE Err cpu_read_topology(const char *dir, Arena *a, Cpu *c);
