// Tune: measures kernel versions of heavy layers within a time budget, and keeps the best few.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/team.h"
#include "base/term.h"
#include "base/work_stop.h"
#include "compile/layer_profile.h"
#include "compile/tune/pressure.h"
#include "compile/profile_store.h"
#include "kernel/isa.h"
#include "kernel/version.h"

typedef struct TuneLayer {
    const char    *key;         // layers with equal keys are measured once
    const Version *candidates;  // [n] in order of preference
    uint32_t       n;
    double         macs;
    size_t         scratch_bytes_max;  // per thread, maximum of all versions
    void          *self;
    MUST_USE       Err (*prepare)(void *self, const Version *v);  // packs weights; may be NULL
    void (*run)(void *self, const Version *v, Part part);
    void (*warm)(void *self, Part part);  // reads the layer's inputs into the cache; may be NULL
    uint32_t (*tasks)(void *self, const Version *v);
    Traffic (*traffic)(void *self, const Version *v, uint32_t parts);
} TuneLayer;

// Of a search beside other work, which it must not disturb and which must not falsify its samples.
typedef struct TunePace {
    bool (*wait)(void *self);  // before each sample, until cores are idle; false: the search ends
    bool (*disturbed)(void *self);  // after it: other work may have slowed it down
    void *self;
} TunePace;

typedef struct TuneOptions {
    Team    *team;                              // threads to measure on
    uint32_t n_counts, counts[PROFILE_COUNTS];  // core counts, ascending
    double   seconds;   // budget of all layers together; with `pace` CPU time of the calling thread
    size_t   l2_bytes;  // per core
    const Pressure *pressure;
    ProfileStore   *store;  // may be NULL
    ProgressSink    sink;
    WorkFlag       *stop;  // set by another thread to end tuning early; may be NULL
    // Not NULL: threads are not pinned, layers that the store has for any core counts are not
    // searched again, and the unfinished search of a layer is not stored when it is told to end.
    const TunePace *pace;
} TuneOptions;

// Layers are measured as in a program that runs all of them: other data fills the L2, and the L3
// too if the layers together exceed it. Layer inputs are in the cache. out[i] is the profile of
// layers[i], in the arena; without candidates if there was no time. What the store has of an
// earlier search is not measured again.
MUST_USE Err tune_layers(const TuneLayer *layers, uint32_t n, const TuneOptions *o, Arena *a,
                         LayerProfile *out);

// The stored profile of a layer for these core counts, without measuring. False: none.
bool tune_known(const TuneLayer *l, const TuneOptions *o, Arena *a, LayerProfile *out);
