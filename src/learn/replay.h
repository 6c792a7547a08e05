// Replay: the latest experiences, each a record of floats of any length, drawn evenly or by what
// they still have to teach.
//
// Memory is fixed: when records or floats run out, the oldest records go.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/rng.h"

typedef struct ReplayOptions {
    uint32_t records;  // at most
    size_t   floats;   // of all records together, at most
    float    alpha;    // a record is drawn by its error to this power; 0: evenly
    float    beta;     // how much weights make up for that, 0 .. 1
    float    least;    // an error counts as that much at least
} ReplayOptions;

typedef struct ReplayPick {
    const float *record;  // valid until the next replay_add
    uint32_t     n;       // floats
    float        weight;  // importance; the largest of a draw is 1
    uint64_t     id;
} ReplayPick;

typedef struct Replay Replay;

Replay *replay_create(Arena *a, ReplayOptions o);

// Room for a record of n floats, to be filled at once. It counts as much as the most that any did.
float   *replay_add(Replay *r, uint32_t n);
uint32_t replay_count(const Replay *r);

// Draws n picks, with repetition; by error one from each n-th part of the sum. Not while empty.
void replay_draw(const Replay *r, Rng *rng, uint32_t n, ReplayPick *out);
void replay_set_error(Replay *r, uint64_t id, float error);  // dropped meanwhile: nothing happens

ReplayOptions *replay_options(Replay *r);  // beta may change

// SumTree: numbers that are not negative, their total, and who is at a place in it, in logarithmic
// time.

typedef struct SumTree {
    double  *node;  // [2 * leaves] a tree: the sum of nodes 2 i and 2 i + 1 is node i
    uint32_t leaves;
} SumTree;

void sum_tree_init(SumTree *s, Arena *a, uint32_t n);  // all 0
void sum_tree_set(SumTree *s, uint32_t i, double value);

static inline double sum_tree_get(const SumTree *s, uint32_t i) { return s->node[s->leaves + i]; }
static inline double sum_tree_total(const SumTree *s) { return s->node[1]; }

// The first i such that what stands up to and with i sums to more than `at`; never one that is 0.
uint32_t sum_tree_find(const SumTree *s, double at);
