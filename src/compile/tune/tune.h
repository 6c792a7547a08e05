// Tune: measures the versions of heavy layers within a budget of time, and keeps those that
// suffice.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/team.h"
#include "base/term.h"
#include "compile/layer_profile.h"
#include "compile/tune/pressure.h"
#include "compile/profile_store.h"
#include "compile/tune/stopwatch.h"
#include "kernel/isa.h"
#include "kernel/version.h"

typedef struct TuneLayer {
    const char    *key;         // layers with the same key are measured once
    const Version *candidates;  // [n], the best guess first
    uint32_t       n;
    double         macs;
    size_t         scratch_bytes_max;  // of a part, whatever the version
    void          *self;
    MUST_USE Err (*prepare)(void *self, const Version *v);  // before the first run; may be NULL
    void (*run)(void *self, const Version *v, Part part);
    void (*warm)(void *self, Part part);  // reads the layer's inputs; may be NULL
    uint32_t (*tasks)(void *self, const Version *v);
    Traffic (*traffic)(void *self, const Version *v, uint32_t parts);
} TuneLayer;

typedef struct TuneOptions {
    Team               *team;                              // bound to cores
    uint32_t            n_counts, counts[PROFILE_COUNTS];  // numbers of cores, ascending
    double              seconds;                           // for all layers together
    size_t              l2_bytes;                          // of a core
    const Pressure     *pressure;
    ProfileStore       *store;  // may be NULL
    ProgressSink        sink;
    const _Atomic bool *stop;  // set by another thread: enough; may be NULL
} TuneOptions;

// Layers are measured as in a program that runs through all of them: with other things in the L2,
// and in the L3 too when they do not fit into it together. The inputs are fresh.
// out[i] is what is known of layers[i] afterwards, in the arena. Layers that found no time have no
// candidates. What the store knows of an earlier search is not measured again.
MUST_USE Err tune_layers(const TuneLayer *layers, uint32_t n, const TuneOptions *o, Arena *a,
                         LayerProfile *out);

// What the store knows of a layer on these numbers of cores, without measuring. False: nothing.
bool tune_known(const TuneLayer *l, const TuneOptions *o, Arena *a, LayerProfile *out);

// TuneSearch: the search for the versions of one layer, until a deadline.

// Every candidate is tried briefly, best guess first, in at most half of the time; those that are
// fast or small are then measured again and again in turns. known: what an earlier search found,
// or empty. On success *out is in the arena; it has no candidates when time was over at once.
MUST_USE Err tune_search(const TuneLayer *l, const TuneOptions *o, Stopwatch *watch,
                         TimeNs deadline, const LayerProfile *known, Arena *a, LayerProfile *out);
