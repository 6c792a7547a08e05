// Chip contract: the view and the actions of a scheduling policy for a package of heterogeneous
// accelerators (units) shared by tenants.
//
// A request is a chain of layers; a layer runs on one unit without preemption. Units share the
// memory bandwidth. A policy has two parts. decide() is the dispatcher: the engine calls it at
// every event (arrival, layer end, commit, wake-up), and it must be fast. plan(), if present, is
// called every period T_s and may be slow (a network's forward pass, a search): it reports its
// cost, and its result takes effect only at commit(), after the time that the package's controller
// needs to compute it. Durations are floats in nanoseconds, points in time are TimeNs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/settings.h"

enum {
    CHIP_KINDS = 8,    // unit kinds of a package, at most
    CHIP_UNITS = 128,  // units of a package, at most
    CHIP_TENANTS = 32,
    CHIP_LEVELS = 3,  // service levels: high, medium, low
};
#define CHIP_NONE UINT32_MAX

// One layer on one kind of unit, alone and with all the bandwidth that it can use.
typedef struct ChipCost {
    float ns;         // INFINITY: the unit cannot compute it
    float bytes_ns;   // bandwidth demand: memory bytes per nanosecond
    float energy_pj;  // memory traffic included
} ChipCost;

// The per-layer costs of a network; constant during a run.
typedef struct ChipModel {
    const char        *name;
    uint32_t           n_layers, n_kinds;
    const char *const *layers;  // [n_layers] names
    const ChipCost    *costs;   // see chip_cost
    const float *rest_ns;  // [n_layers + 1] time of all layers from l on, each on its fastest kind
    const uint8_t *fastest;  // [n_layers] kind
} ChipModel;

static inline const ChipCost *chip_cost(const ChipModel *m, uint32_t layer, uint32_t kind) {
    return &m->costs[(size_t)layer * m->n_kinds + kind];
}

typedef struct ChipTenant {
    const ChipModel *model;
    const char      *name;
    double           priority;  // weight; 1 is the default
    double           target;    // share of requests to finish in time; 0: none
} ChipTenant;

typedef struct ChipKind {
    const char *name;
    uint32_t    n_units;
} ChipKind;

typedef struct ChipRequest {
    uint64_t id;  // ascending by arrival
    TimeNs   arrival, deadline;
    uint32_t tenant;  // index
    uint32_t level;   // service level
} ChipRequest;

struct ChipFuture;
struct ChipEngine;
struct ChipPolicy;

// Constant during a run.
typedef struct ChipSetup {
    const ChipTenant        *tenants;
    const ChipKind          *kinds;
    const uint8_t           *kind_of;  // [n_units]; units of a kind are adjacent
    uint32_t                 n_tenants, n_kinds, n_units;
    uint32_t                 n_slots;         // concurrent requests, at most
    float                    bytes_ns;        // memory bandwidth, bytes per nanosecond
    float                    throttle_floor;  // share of its demand that a throttled layer keeps
    TimeNs                   period;          // T_s
    bool                     firm;    // firm deadlines: the engine drops a request at its deadline
    Rng                      rng;     // stream of random numbers for the policy
    const struct ChipFuture *future;  // clairvoyant policies only; else NULL
} ChipSetup;

// An unfinished request. A request that was dropped at its deadline while a layer of it ran stays
// until that layer ends.
typedef struct ChipTask {
    ChipRequest request;
    uint32_t    slot;   // constant and unique while it is alive, < n_slots: for policy state
    uint32_t    layer;  // running or next layer
    uint32_t    unit;   // CHIP_NONE: waiting
    TimeNs      since;  // start of its layer, or of its wait
    TimeNs      ran;    // time on units so far
} ChipTask;

typedef struct ChipUnit {
    uint32_t task;      // index into view->tasks; CHIP_NONE: free
    TimeNs   free_at;   // expected end at the current rate; now if free
    float    bytes_ns;  // demand of its layer; 0 if free
    float    cap;       // limit set by THROTTLE; INFINITY: none
} ChipUnit;

typedef struct ChipTenantStats {  // of finished requests, exponentially decayed
    float hit_rate;               // share in time; 1 if none finished
    float n;
} ChipTenantStats;

typedef struct ChipView {  // borrowed: valid during the call
    TimeNs           now;
    const ChipSetup *setup;
    const ChipTask  *tasks;    // [n_tasks]
    const uint32_t  *waiting;  // [n_waiting] task indices, by arrival
    const ChipUnit  *units;    // [setup->n_units]
    const uint32_t  *free;     // [n_free] unit indices, ascending
    uint32_t         n_tasks, n_waiting, n_free;
    float            demand;  // bytes per nanosecond of all running layers, limited by their caps
    const ChipTenantStats *tenant_stats;  // [n_tenants]
} ChipView;

typedef enum ChipVerb {
    CHIP_START,     // run the task's next layer on a free unit that supports it
    CHIP_DROP,      // reject a waiting task; it counts as missed
    CHIP_THROTTLE,  // limit the unit's layer to `cap` bytes per nanosecond, or to the floor
    CHIP_WAKE,      // call decide() at `at`, unless an event comes first
} ChipVerb;

typedef struct ChipAction {
    ChipVerb verb;
    uint32_t task;  // START, DROP: index into view->tasks
    uint32_t unit;  // START, THROTTLE
    float    cap;   // THROTTLE: > 0; INFINITY: no limit
    TimeNs   at;    // WAKE
} ChipAction;

typedef struct ChipPlanCost {  // work of a plan() call on the package's controller
    double macs;               // multiply-accumulates of a network
    double weight_bytes;       // weights read for them
    double ops;                // other operations: scores, comparisons, simulated steps
} ChipPlanCost;

// The future of a run, for clairvoyant policies.
typedef struct ChipFuture {
    const ChipRequest *requests;  // [n] the whole trace, by arrival
    uint32_t           n;
    struct ChipEngine *engine;
    // Simulates the whole trace from the start under another policy; returns the requests in time,
    // and marks them in in_time[n], unless NULL. The simulated policy gets no future.
    uint32_t (*simulate_with)(struct ChipEngine *engine, const struct ChipPolicy *p,
                              const void *settings, uint8_t *in_time);
    uint32_t skip;  // leading requests that do not count (warm-up)
} ChipFuture;

typedef struct ChipPolicy {
    const char    *name, *about;
    const char    *paper;        // published source; NULL: textbook or original
    bool           clairvoyant;  // sees the future: an upper bound, not a competitor
    bool           learned;
    const char    *of;    // the policy that it is a component of; NULL: independent
    const Setting *rows;  // its settings
    uint32_t       n_rows;
    size_t         settings_size;  // of the struct that the rows fill
    // Reads files named by settings (weights) once before runs; NULL: none. init gets the result as
    // `loaded`; it is immutable and shared between threads.
    Err (*load)(const ChipSetup *setup, const void *settings, Arena *a, const void **loaded);
    size_t (*state_size)(const ChipSetup *setup, const void *settings);  // NULL: none
    // The state is zeroed.
    void (*init)(void *state, const ChipSetup *setup, const void *settings, const void *loaded);
    void (*plan)(void *state, const ChipView *view, ChipPlanCost *cost);  // NULL: never
    void (*commit)(void *state);  // the last plan takes effect
    // Writes at most max actions and returns their number; allocates nothing. At most one START or
    // DROP per task and one START per unit; other tasks keep waiting or running.
    uint32_t (*decide)(void *state, const ChipView *view, ChipAction *out, uint32_t max);
} ChipPolicy;
