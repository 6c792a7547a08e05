// Want: a task as agents see it: what it can use, how fast it is with that, and what its progress
// is worth.
#pragma once

#include "contract/cluster.h"
#include "contract/profile.h"

enum { WANT_RUNGS = PROFILE_RUNGS };

typedef struct WantRung {
    uint32_t cores_milli, memory_mib;  // for each GPU; of a task without GPUs: for all of it
    float    rate;
} WantRung;

typedef struct Want {
    uint64_t job;  // whose; 1 more than its number
    uint32_t gpus, milli, class, types;
    uint32_t n_rungs, usual;
    WantRung rungs[WANT_RUNGS];  // each buys less than the one below
    float    restart_s, left_s;
    float    value;  // of a second of work, the more the sooner it is through
    bool     wide;   // more GPUs than any server has
} Want;

typedef struct WantRules {
    bool  fixed;  // its default demand and nothing else
    float gang;   // how much of that for each GPU, as a power
    float urge;   // how much longer jobs gain that are on the critical path
    float
        margin;   // critical is who has more left than so many times what the cluster needs for all
    float age_s;  // that count as left of a job of which nobody knows how long it takes
} WantRules;

// What does not change while the task lives.
void want_open(Want *w, const ClusterSetup *s, const ClusterJob *j, const WantRules *r);

// What does: drain_s is how long the cluster needs for all that is there.
void want_look(Want *w, const ClusterView *v, const ClusterTask *t, double drain_s,
               const WantRules *r);

// What a job counts as having left: less when it takes longer than all together.
float want_urged(const Want *w, double drain_s, const WantRules *r);

static inline uint32_t want_units(const Want *w, uint32_t gpus) { return w->gpus > 0 ? gpus : 1; }
