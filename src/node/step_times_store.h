// StepTimesStore: times of a whole program's steps, kept in the profile store between starts.
#pragma once

#include "compile/program.h"
#include "compile/profile_store.h"

typedef struct StepTimesStore {
    ProfileStore *store;
    uint32_t      n_counts, counts[PROFILE_COUNTS];
    bool          reckoned;  // times on more than one core were; measured ones are taken as well
} StepTimesStore;

// As step_times_measure leaves them, if the store knows a program of just these steps and versions.
bool step_times_store_get(const StepTimesStore *s, Program *p, Arena *a, TimeNs **light_ns);
void step_times_store_put(const StepTimesStore *s, const Program *p, const TimeNs *light_ns,
                          Arena *scratch);
