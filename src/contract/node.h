// Node contract: the view and the actions of a scheduling policy for a CPU server shared by
// tenants.
//
// An engine, live or simulated, calls decide() when a request arrives, when a block ends and at a
// requested wake-up. A block is a run of consecutive layers of a request; a policy cannot preempt
// it, so a request releases cores only at the end of a block. The live engine ends a block earlier
// in two cases: before or after layers that only one core can compute for long (see
// node_solo_end), which get a block on one core, and when a block has run for some time while other
// tenants wait; then the request waits again, possibly within a layer. Durations are floats in
// nanoseconds, points in time are TimeNs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/settings.h"

enum {
    NODE_LEVELS = 10,   // interference levels; 0: no co-runners
    NODE_VERSIONS = 5,  // of a layer, at most
    NODE_COUNTS = 24,   // core counts with known times, at most
};

// Use of shared resources by one version of a layer on counts[k] cores.
typedef struct NodeVersion {
    uint32_t tasks;                    // parallel tasks; more cores stay idle
    float    l3_bytes;                 // working set in the shared cache
    float    dram_bytes[NODE_COUNTS];  // memory traffic without contention for the cache
} NodeVersion;

struct NodeDemand;

typedef struct NodeLayer {
    const char *name;
    uint32_t    n_versions;  // version 0 is the fastest without interference
    NodeVersion versions[NODE_VERSIONS];
} NodeLayer;

// A compiled model and its measured times; constant during a run.
typedef struct NodeModel {
    const char              *name;
    uint32_t                 n_layers, n_counts;
    uint16_t                 counts[NODE_COUNTS];  // ascending, the first is 1
    const NodeLayer         *layers;               // [n_layers]
    const float             *times;                // see node_time
    const float             *rest_best;            // see node_rest; with node_best_versions
    const float             *rest_solo;            // see node_rest; with version 0
    const uint8_t           *picks;                // see node_best_versions
    const struct NodeDemand *demand;               // for the simulator; not for policies
} NodeModel;

// Time of layer l with version v on counts[k] cores at an interference level.
static inline float node_time(const NodeModel *m, uint32_t l, uint32_t v, uint32_t k,
                              uint32_t level) {
    return m->times[((l * NODE_VERSIONS + v) * m->n_counts + k) * NODE_LEVELS + level];
}

// Time of all layers from l on, on counts[k] cores; table is rest_best or rest_solo.
static inline float node_rest(const NodeModel *m, const float *table, uint32_t l, uint32_t k,
                              uint32_t level) {
    return table[(l * m->n_counts + k) * NODE_LEVELS + level];
}

// [n_layers] the fastest version of each layer on counts[k] cores at a level.
static inline const uint8_t *node_best_versions(const NodeModel *m, uint32_t k, uint32_t level) {
    return m->picks + (size_t)(level * m->n_counts + k) * m->n_layers;
}

// The largest k with counts[k] <= cores; cores > 0.
static inline uint32_t node_count_index(const NodeModel *m, uint32_t cores) {
    uint32_t k = m->n_counts - 1;
    while (k > 0 && m->counts[k] > cores) k--;
    return k;
}

// Share of memory bandwidth left at a level: 2^(-level / 2).
static inline double node_bandwidth(uint32_t level) {
    double left = level % 2 == 0 ? 1.0 : 0.70710678118654752;
    return left / (double)(1U << level / 2);
}

// Layers with one task that take longer than this together are a block of their own on one core.
#define NODE_SOLO_NS 100000

// The end of such layers from l on; l: layer l may use several cores.
static inline uint32_t node_solo_end(const NodeModel *m, uint32_t l) {
    uint32_t end = l;
    double   ns = 0;
    for (; end < m->n_layers && m->layers[end].versions[0].tasks == 1; end++)
        ns += (double)node_time(m, end, 0, 0, 0);
    return ns > NODE_SOLO_NS ? end : l;
}

typedef struct NodeTenant {
    const NodeModel *model;
    const char      *name;
    TimeNs           qos_ns;    // latency target, from arrival to response
    double           priority;  // weight; 1 is the default
} NodeTenant;

typedef struct NodeMachine {
    uint32_t       n_cores, n_slices;  // slices of the shared (L3) cache, of adjacent cores each
    const uint8_t *slice_of;           // [n_cores]
    float          slice_bytes;        // cache per slice
    float          dram_bytes_ns;      // memory bandwidth of all cores, bytes per nanosecond
    float          dispatch_ns;        // delay from a decision to the first layer of a block
} NodeMachine;

// Constant during a run.
typedef struct NodeSetup {
    const NodeMachine *machine;
    const NodeTenant  *tenants;
    uint32_t           n_tenants;
} NodeSetup;

typedef enum NodeState { NODE_WAITING, NODE_RUNNING } NodeState;

typedef struct NodeRequest {
    uint64_t  id;      // ascending by arrival
    uint32_t  tenant;  // index
    NodeState state;
    TimeNs    arrival, deadline;
    uint32_t  next;       // first layer not in a block yet, or computed in part
    float     done;       // share of layer `next` that is computed
    uint32_t  conflicts;  // blocks started with fewer cores than wanted
    TimeNs    computed;   // core nanoseconds spent so far
    // Of the running block; of the last one while waiting:
    Cores          cores;
    uint32_t       first;   // its first layer
    uint32_t       layer;   // current layer, as far as the engine knows
    uint32_t       wanted;  // cores the policy wanted
    TimeNs         since;   // start of the block, or its end
    const uint8_t *versions;
} NodeRequest;

typedef struct NodeView {  // borrowed: valid during decide()
    TimeNs             now;
    const NodeSetup   *setup;
    const NodeRequest *requests;  // [n_requests] neither finished nor rejected
    const uint32_t    *waiting;   // [n_waiting] indices, by arrival
    const uint32_t    *running;   // [n_running]
    uint32_t           n_requests, n_waiting, n_running;
    Cores              free;
    uint32_t           n_free;
    uint32_t           level;     // current interference level, with hysteresis
    float              pressure;  // the level before rounding, 0 to NODE_LEVELS - 1
} NodeView;

typedef enum NodeVerb {
#define X(id, name) NODE_##id,
#include "contract/node_verb.def"
#undef X
    NODE_VERBS
} NodeVerb;

typedef enum NodeReason {  // for a rejection
#define X(id, name) NODE_##id,
#include "contract/node_reason.def"
#undef X
    NODE_REASONS
} NodeReason;

typedef struct NodeAction {
    NodeVerb       verb;
    uint32_t       request;   // index into view->requests
    uint32_t       n_layers;  // START: layers of the block, from `next` on
    uint32_t       wanted;    // START: more than `cores` holds counts as a conflict
    Cores          cores;     // START: free cores to use. GROW: cores to add at the next layer
    const uint8_t *versions;  // START: [n_layers of the model], valid until the end of the run
    NodeReason     reason;    // REJECT
    TimeNs         at;        // WAKE: call decide() then, unless an event comes first
} NodeAction;

typedef struct NodePolicy {
    const char    *name, *about;
    const Setting *rows;  // its settings
    uint32_t       n_rows;
    size_t         settings_size;  // of the struct that the rows fill
    size_t (*state_size)(const NodeSetup *setup, const void *settings);       // NULL: none
    void (*init)(void *state, const NodeSetup *setup, const void *settings);  // NULL: zeroed state
    // Writes at most max actions, one per request, and returns their number; allocates nothing.
    // Other requests keep waiting or running.
    uint32_t (*decide)(void *state, const NodeView *view, NodeAction *out, uint32_t max);
} NodePolicy;
