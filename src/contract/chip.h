// Chip: what a policy sees of a package of unlike accelerators shared by tenants, and what it may
// answer.
//
// A request is a chain of layers; a layer runs on one unit and is never interrupted. Units share
// the memory's bandwidth. A policy has two parts. decide() is the dispatcher: the engine calls it
// at every event (an arrival, a layer's end, a thought adopted, a time asked for), and it is quick.
// plan(), if there is one, is called every period T_s and may take long, a network's forward pass
// or a search: it says what it cost, and what it found holds only once commit() is called, after
// the time that the package's controller needs for that. Times ahead are floats in nanoseconds.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/settings.h"
#include "base/clock.h"

enum {
    CHIP_KINDS = 8,    // of units in a package, at most
    CHIP_UNITS = 128,  // in a package, at most
    CHIP_TENANTS = 32,
    CHIP_LEVELS = 3,  // of service: high, medium, low
};
#define CHIP_NONE UINT32_MAX

// One layer on one kind of unit, alone, with all the bandwidth that it asks for.
typedef struct ChipCost {
    float ns;         // INFINITY: the unit cannot compute it
    float bytes_ns;   // of memory traffic while it runs: its demand b
    float energy_pj;  // with that of its traffic
} ChipCost;

// A network as costs; never changes while an engine runs.
typedef struct ChipModel {
    const char        *name;
    uint32_t           n_layers, n_kinds;
    const char *const *layers;   // [n_layers] names
    const ChipCost    *costs;    // see chip_cost
    const float       *rest_ns;  // [n_layers + 1] all layers from l on, each on its fastest kind
    const uint8_t     *fastest;  // [n_layers] kind
} ChipModel;

static inline const ChipCost *chip_cost(const ChipModel *m, uint32_t layer, uint32_t kind) {
    return &m->costs[(size_t)layer * m->n_kinds + kind];
}

typedef struct ChipTenant {
    const ChipModel *model;
    const char      *name;
    double           priority;  // 1 is usual, more is more important
    double           target;    // share of its requests that should be in time; 0: none
} ChipTenant;

typedef struct ChipKind {
    const char *name;
    uint32_t    n_units;
} ChipKind;

typedef struct ChipRequest {
    uint64_t id;  // in the order of arrival
    TimeNs   arrival, deadline;
    uint32_t tenant;  // by number
    uint32_t level;   // of service
} ChipRequest;

struct ChipFuture;
struct ChipEngine;
struct ChipPolicy;

// What stays the same through a run.
typedef struct ChipSetup {
    const ChipTenant        *tenants;
    const ChipKind          *kinds;
    const uint8_t           *kind_of;  // [n_units]; units of a kind are neighbours
    uint32_t                 n_tenants, n_kinds, n_units;
    uint32_t                 n_slots;   // of requests alive at once, at most
    float                    bytes_ns;  // bandwidth of the memory
    TimeNs                   period;    // T_s
    bool                     firm;      // the engine drops a request once its deadline has passed
    Rng                      rng;       // a policy's own stream
    const struct ChipFuture *future;    // for clairvoyant policies only; NULL for all others
} ChipSetup;

// A request that is neither finished nor dropped. One that the engine dropped at its deadline while
// a layer of it ran stays until that layer ends.
typedef struct ChipTask {
    ChipRequest request;
    uint32_t    slot;   // its own while it lives, below n_slots: for what a policy remembers
    uint32_t    layer;  // that runs or comes next
    uint32_t    unit;   // that it runs on; CHIP_NONE: it waits
    TimeNs      since;  // when its layer started, or when it began to wait
    TimeNs      ran;    // on units so far
} ChipTask;

typedef struct ChipUnit {
    uint32_t task;      // index into view->tasks; CHIP_NONE: free
    TimeNs   free_at;   // at the present speed; now when free
    float    bytes_ns;  // what its layer asks for; 0 when free
    float    cap;       // what a THROTTLE left it; INFINITY: all
} ChipUnit;

typedef struct ChipTenantStats {  // of a tenant's requests that ended, the recent weighing more
    float hit_rate;               // 1 when none has
    float n;
} ChipTenantStats;

typedef struct ChipView {  // borrowed: valid only while the call lasts
    TimeNs                 now;
    const ChipSetup       *setup;
    const ChipTask        *tasks;    // [n_tasks]
    const uint32_t        *waiting;  // [n_waiting] of them, by arrival
    const ChipUnit        *units;    // [setup->n_units]
    const uint32_t        *free;     // [n_free] units, ascending
    uint32_t               n_tasks, n_waiting, n_free;
    float                  demand;  // bytes_ns of all layers on units, throttled ones by their caps
    const ChipTenantStats *tenant_stats;  // [n_tenants]
} ChipView;

typedef enum ChipVerb {
    CHIP_START,     // the task's next layer on a free unit that can compute it
    CHIP_DROP,      // a waiting task, for good: it counts as missed
    CHIP_THROTTLE,  // the unit's layer may use `cap` bytes a nanosecond from now on
    CHIP_WAKE,      // decide again at a time, when nothing else happens before
} ChipVerb;

typedef struct ChipAction {
    ChipVerb verb;
    uint32_t task;  // START, DROP: index into view->tasks
    uint32_t unit;  // START, THROTTLE
    float    cap;   // THROTTLE: more than 0; INFINITY: all
    TimeNs   at;    // WAKE
} ChipAction;

typedef struct ChipPlanCost {  // what a thought took on the package's controller
    double macs;               // of a network
    double weight_bytes;       // read for them
    double ops;                // of rules and searches: one a score, a comparison, a simulated step
} ChipPlanCost;

// What an engine lends to a policy that may look ahead.
typedef struct ChipFuture {
    const ChipRequest *requests;  // [n] all there will be, by arrival
    uint32_t           n;
    struct ChipEngine *engine;
    // The whole trace under another policy, from the start: how many are in time. in_time[n], or
    // NULL, is told which. A policy that is rehearsed has no future itself.
    uint32_t (*simulate_with)(struct ChipEngine *engine, const struct ChipPolicy *p,
                              const void *settings, uint8_t *in_time);
    uint32_t skip;  // the first so many do not count
} ChipFuture;

typedef struct ChipPolicy {
    const char    *name, *about;
    const char    *paper;        // that it follows; NULL: a textbook, or our own idea
    bool           clairvoyant;  // sees the future: no contender, but a bound
    bool           learned;
    const char    *of;    // the policy of which it is a part, no rival of it; NULL: none
    const Setting *rows;  // its constants
    uint32_t       n_rows;
    size_t         settings_size;  // of the struct that the rows fill
    // What settings name on disk (weights) is read once, before runs; NULL: nothing is. The result
    // is handed to init as `loaded` and never changes, so that threads may share it.
    Err (*load)(const ChipSetup *setup, const void *settings, Arena *a, const void **loaded);
    size_t (*state_size)(const ChipSetup *setup, const void *settings);  // NULL: none
    // The state is zeroed.
    void (*init)(void *state, const ChipSetup *setup, const void *settings, const void *loaded);
    void (*plan)(void *state, const ChipView *view, ChipPlanCost *cost);  // NULL: never
    void (*commit)(void *state);  // what was last thought holds from now on
    // Writes at most max actions and returns how many. No memory is allocated. A START or DROP a
    // task, a START a unit; what is not named waits, or goes on.
    uint32_t (*decide)(void *state, const ChipView *view, ChipAction *out, uint32_t max);
} ChipPolicy;
