// LayerProfile: what was measured of a layer's versions on this machine, and which of them are
// kept.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/clock.h"
#include "kernel/version.h"

enum { PROFILE_COUNTS = 8, PROFILE_KEPT = 5, PROFILE_CANDIDATES = 4096 };

typedef struct Candidate {
    Version  version;
    uint32_t tasks;                    // independent ones
    Traffic  traffic;                  // on the largest number of cores measured
    TimeNs   time_ns[PROFILE_COUNTS];  // on counts[i] cores; 0: not measured
} Candidate;

typedef struct LayerProfile {
    uint32_t   n_counts, counts[PROFILE_COUNTS];  // numbers of cores, ascending
    uint32_t   n_kept, kept[PROFILE_KEPT];        // the versions to run with, by candidate
    TimeNs     spent_ns;                          // on measuring
    bool       finished;                          // more time would change little
    uint32_t   n;
    Candidate *candidates;  // [n], every one that was seen
} LayerProfile;

// A compact record that says itself whether it is whole. The bytes are the arena's.
MUST_USE Err layer_profile_encode(const LayerProfile *p, Arena *a, uint8_t **out, size_t *len);
// False for what is damaged, of another format, or makes no sense.
bool layer_profile_decode(const uint8_t *bytes, size_t len, Arena *a, LayerProfile *out);
