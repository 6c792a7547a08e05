// LapsStore: times of a whole program's steps, kept in the profile store between starts.
#pragma once

#include "compile/program.h"
#include "compile/store.h"

typedef struct LapsStore {
    Store   *store;
    uint32_t n_counts, counts[PROFILE_COUNTS];
    bool     reckoned;  // times on more than one core were; measured ones are taken as well
} LapsStore;

// As laps_measure leaves them, if the store knows a program of just these steps and versions.
bool laps_store_get(const LapsStore *s, Program *p, Arena *a, TimeNs **light_ns);
void laps_store_put(const LapsStore *s, const Program *p, const TimeNs *light_ns, Arena *scratch);
