// StepTimesStore: the step times of whole programs, kept in the profile store between starts.
#pragma once

#include "compile/program.h"
#include "compile/profile_store.h"

typedef struct StepTimesStore {
    ProfileStore *store;
    uint32_t      n_counts, counts[PROFILE_COUNTS];
    bool          reckoned;  // accepts times extrapolated to more than one core, and measured ones
} StepTimesStore;

// True and filled like step_times_measure if the store has a program of these steps and versions.
bool step_times_store_get(const StepTimesStore *s, Program *p, Arena *a, TimeNs **light_ns);
void step_times_store_put(const StepTimesStore *s, const Program *p, const TimeNs *light_ns,
                          Arena *scratch);
