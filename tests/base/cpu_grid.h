// cpu_grid: a regular CPU topology for tests, all of it allowed: packages, L3 caches, cores and
// hardware threads, numbered in that order.
#pragma once

#include "base/cpu.h"

typedef struct CpuGrid {
    uint32_t packages, l3, cores, threads;  // each within one of the former; l3 0: no L3 cache
} CpuGrid;

static inline Cpu cpu_grid(Arena *a, CpuGrid g) {
    uint32_t l3 = g.l3 > 0 ? g.l3 : 1, cores = g.packages * l3 * g.cores;
    Cpu      c = {.model = "grid",
                  .n_threads = cores * g.threads,
                  .n_cores = cores,
                  .n_packages = g.packages,
                  .n_l3 = g.packages * g.l3};
    c.threads = arena_new(a, CpuThread, c.n_threads);
    for (uint32_t i = 0; i < c.n_threads; i++) {
        uint32_t core = i / g.threads;
        c.threads[i] = (CpuThread){.os = i,
                                   .core = core,
                                   .package = core / (l3 * g.cores),
                                   .l3 = g.l3 > 0 ? core / g.cores : CPU_NO_L3,
                                   .allowed = true};
    }
    return c;
}
