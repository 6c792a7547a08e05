// Host: this machine as a place for tenants: its cores, what they share, and how fast that is.
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
    Team        *team;  // a member a core, for measuring before tenants run; NULL after host_quiet
    uint32_t     n_counts, counts[PROFILE_COUNTS];  // numbers of cores that times are measured on
} Host;

// cores 0: as many as we may use. store NULL: the user's. Measures for about half a second.
MUST_USE Err host_open(Host *h, uint32_t cores, const char *store);
void         host_quiet(Host *h);  // lets the team go
void         host_close(Host *h);  // accepts a zeroed Host
