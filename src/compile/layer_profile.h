// LayerProfile: measured times of a layer's kernel versions on this machine, and the versions kept.
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
    uint32_t tasks;                    // independent tasks
    Traffic  traffic;                  // on the largest core count measured
    TimeNs   time_ns[PROFILE_COUNTS];  // on counts[i] cores; 0: not measured
} Candidate;

typedef struct LayerProfile {
    uint32_t   n_counts, counts[PROFILE_COUNTS];  // core counts, ascending
    uint32_t   n_kept, kept[PROFILE_KEPT];        // candidates to run with
    TimeNs     spent_ns;                          // time spent on measuring
    bool       finished;                          // the search ended by itself, not by its deadline
    uint32_t   n;
    Candidate *candidates;  // [n] all versions tried
} LayerProfile;

// A record of varints with a checksum; the bytes live in the arena.
MUST_USE Err layer_profile_encode(const LayerProfile *p, Arena *a, uint8_t **out, size_t *len);
// False: damaged, of another format, or inconsistent.
bool layer_profile_decode(const uint8_t *bytes, size_t len, Arena *a, LayerProfile *out);
