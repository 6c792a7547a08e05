// Host: this machine: cores, caches, measured speeds.
#pragma once

#include "base/arena.h"
#include "base/cpu.h"
#include "base/team.h"
#include "compile/tune/pressure.h"
#include "compile/profile_store.h"
#include "contract/node.h"

typedef struct Host {
    Arena        arena;
    Cpu          cpu;
    const Isa   *isa;
    Pressure     pressure;  // measured
    NodeMachine  machine;   // as policies see it
    ProfileStore store;
    Team    *team;  // one thread per core, for measuring before tenants run; NULL after host_quiet
    uint32_t n_counts, counts[PROFILE_COUNTS];  // core counts that are measured
} Host;

// cores 0: as many as the process may use. store NULL: the user's. Measures for about 0.5 s.
MUST_USE Err host_open(Host *h, uint32_t cores, const char *store);
// Whether a file (NULL: in the cache directory) can hold measured profiles; ERR_CONFIG otherwise.
// host_open goes on without.
MUST_USE Err host_check_store(const char *store);
void         host_quiet(Host *h);  // ends the team's threads
void         host_close(Host *h);  // accepts a zeroed Host
