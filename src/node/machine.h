// NodeMachineSpec: a machine to simulate: cores, caches, bandwidths, dispatch and barrier costs.
#pragma once

#include "base/settings.h"
#include "contract/node.h"
#include "kernel/isa.h"

#define NODE_MACHINE_SPEC(X)                                                                       \
    X(name, string, "machine", 1, 63, "name in tables")                                            \
    X(isa, string, "avx2", 1, 15, "instruction set: baseline, avx2, avxvnni or avx512")            \
    X(cores, int, 64, 1, CORES_MAX, "cores")                                                       \
    X(reserved, int, 0, 0, CORES_MAX - 1, "cores reserved for dispatching, not for layers")        \
    X(slice_cores, int, 4, 1, CORES_MAX, "cores that share a slice of L3")                         \
    X(gflops, double, 93, 0.1, 1e5, "GFLOP/s of a core, float32")                                  \
    X(efficiency, double, 0.92, 0.01, 1, "share of the register tile's peak that is reached")      \
    X(l1_kb, int, 32, 4, 1 << 20, "L1 data cache of a core")                                       \
    X(l2_kb, int, 512, 16, 1 << 20, "L2 of a core")                                                \
    X(l3_kb, int, 16384, 64, 1 << 24, "L3 of a slice")                                             \
    X(l3_usable, double, 0.75, 0.01, 1, "share of a slice that can be kept hot")                   \
    X(l3_gbs, double, 40, 0.1, 1e4, "GB/s of a core from its slice")                               \
    X(dram_gbs, double, 20, 0.1, 1e4, "GB/s of a core from memory")                                \
    X(dram_all_gbs, double, 90, 0.1, 1e5, "GB/s of all cores from memory")                         \
    X(overlap, double, 0.75, 0, 1, "share of memory time hidden by arithmetic, or the reverse")    \
    X(move_gbs, double, 12, 0.1, 1e4, "GB/s of a core from another slice")                         \
    X(dispatch_us, double, 3, 0, 1e4, "microseconds from a decision to a block's first layer")     \
    X(dispatch_core_us, double, 0.1, 0, 1e3, "the same, for each core of the block")               \
    X(barrier_us, double, 0.5, 0, 1e3,                                                             \
      "microseconds of the barrier after a layer on several cores")                                \
    X(barrier_core_us, double, 0.06, 0, 1e3, "the same, for each core of the block")               \
    X(jitter, double, 0.03, 0, 1, "standard deviation of a layer's time, relative")                \
    X(interference_us, double, 500, 0, 1e6, "time over which interference is averaged")            \
    X(hysteresis, double, 0.25, 0, 2, "hysteresis of the interference level, in levels")

typedef struct NodeMachineSpec {
    NODE_MACHINE_SPEC(SETTING_FIELD)
} NodeMachineSpec;

// The settings of a machine, to be changed one by one: rows of NodeMachineSpec.
Settings machine_settings(NodeMachineSpec *spec, Arena *a);

// A shipped machine by name, or a YAML file by its path.
MUST_USE Err machine_load(const char *what, Arena *a, NodeMachineSpec *out);
MUST_USE Err machine_parse(const char *name, const char *text, size_t len, Arena *a,
                           NodeMachineSpec *out);

MUST_USE Err machine_isa(const NodeMachineSpec *s, const Isa **out);
CacheSizes   machine_caches(const NodeMachineSpec *s);          // l3: the usable part of a slice
NodeMachine  machine_view(const NodeMachineSpec *s, Arena *a);  // the policies' view
// The core counts that tables are made for; at most NODE_COUNTS.
uint32_t machine_counts(const NodeMachineSpec *s, uint16_t *counts);

static inline uint32_t machine_cores(const NodeMachineSpec *s) {  // available for layers
    return (uint32_t)(s->cores - s->reserved);
}

static inline uint32_t machine_slices(const NodeMachineSpec *s,
                                      uint32_t cores) {  // slices that these cores fill
    return (cores + (uint32_t)s->slice_cores - 1) / (uint32_t)s->slice_cores;
}

static inline double machine_barrier_ns(const NodeMachineSpec *s, uint32_t cores) {
    return cores > 1 ? 1e3 * (s->barrier_us + s->barrier_core_us * cores) : 0;
}

// Time of a layer that needs core_ns on its cores and moves bytes from memory at up to
// `granted` bytes/ns; without the barrier.
static inline double machine_layer_ns(const NodeMachineSpec *s, uint32_t cores, double core_ns,
                                      double bytes, double granted) {
    double alone = s->dram_gbs * cores < s->dram_all_gbs ? s->dram_gbs * cores : s->dram_all_gbs;
    double memory = bytes / alone, hidden = memory < core_ns ? memory : core_ns;
    double ns = memory + core_ns - s->overlap * hidden;
    return bytes > granted * ns ? bytes / granted : ns;
}

static inline double machine_dispatch_ns(const NodeMachineSpec *s, uint32_t cores) {
    return 1e3 * (s->dispatch_us + s->dispatch_core_us * cores);
}

typedef struct MachineFile {  // built in from data/machines
    const char *name, *text;
} MachineFile;

extern const MachineFile machine_files[];  // terminated by a NULL name
