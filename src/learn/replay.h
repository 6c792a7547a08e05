// Replay: a replay buffer of the latest experiences, each a record of floats of any length, sampled
// uniformly.
//
// Memory is fixed: when records or floats run out, the oldest records are dropped.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/rng.h"

typedef struct ReplayOptions {
    uint32_t records;  // at most
    size_t   floats;   // of all records together, at most
} ReplayOptions;

typedef struct ReplayPick {
    const float *record;  // valid until the next replay_add
    uint32_t     n;       // floats
    uint64_t     id;      // number of records added before it
} ReplayPick;

typedef struct Replay Replay;

Replay *replay_create(Arena *a, ReplayOptions o);

float   *replay_add(Replay *r, uint32_t n);  // a new record of n floats, to be filled by the caller
uint32_t replay_count(const Replay *r);

void replay_draw(const Replay *r, Rng *rng, uint32_t n, ReplayPick *out);  // with replacement
