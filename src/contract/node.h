// Node: what a policy sees of a server shared by tenants, and what it may answer.
//
// An engine, live or simulated, calls decide() when a request arrives, when a block ends and when
// the time that the policy asked for has come. Blocks are runs of consecutive layers of a request;
// they are never interrupted, so a request loses its cores only at the end of a block. Times ahead
// are floats in nanoseconds, points in time are TimeNs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cores.h"
#include "base/settings.h"
#include "base/clock.h"

enum {
    NODE_LEVELS = 10,   // of interference: 0 is a quiet machine
    NODE_VERSIONS = 5,  // of a layer, at most
    NODE_COUNTS = 24,   // numbers of cores that times are known for, at most
};

// What one version of a layer asks of what cores share, on counts[k] cores.
typedef struct NodeVersion {
    uint32_t tasks;                    // more cores than that are idle
    float    l3_bytes;                 // kept hot in shared cache
    float    dram_bytes[NODE_COUNTS];  // moved from memory while the shared cache is quiet
} NodeVersion;

struct NodeDemand;

typedef struct NodeLayer {
    const char *name;
    uint32_t    n_versions;  // version 0 is the one that is fastest alone
    NodeVersion versions[NODE_VERSIONS];
} NodeLayer;

// A compiled model with what is known of its times; never changes while an engine runs.
typedef struct NodeModel {
    const char              *name;
    uint32_t                 n_layers, n_counts;
    uint16_t                 counts[NODE_COUNTS];  // ascending, the first is 1
    const NodeLayer         *layers;               // [n_layers]
    const float             *times;                // see node_time
    const float             *rest_best;  // see node_rest; with node_best_versions's versions
    const float             *rest_solo;  // the same with version 0 of each layer
    const uint8_t           *picks;      // see node_best_versions
    const struct NodeDemand *demand;     // what an engine in virtual time knows; not for policies
} NodeModel;

// Layer l computed by version v on counts[k] cores at a level of interference.
static inline float node_time(const NodeModel *m, uint32_t l, uint32_t v, uint32_t k,
                              uint32_t level) {
    return m->times[((l * NODE_VERSIONS + v) * m->n_counts + k) * NODE_LEVELS + level];
}

// All layers from l on, one after the other on counts[k] cores; table is rest_best or rest_solo.
static inline float node_rest(const NodeModel *m, const float *table, uint32_t l, uint32_t k,
                              uint32_t level) {
    return table[(l * m->n_counts + k) * NODE_LEVELS + level];
}

// [n_layers] the version of each layer that is fastest on counts[k] cores at a level.
static inline const uint8_t *node_best_versions(const NodeModel *m, uint32_t k, uint32_t level) {
    return m->picks + (size_t)(level * m->n_counts + k) * m->n_layers;
}

// The largest k with counts[k] <= cores; cores > 0.
static inline uint32_t node_count_index(const NodeModel *m, uint32_t cores) {
    uint32_t k = m->n_counts - 1;
    while (k > 0 && m->counts[k] > cores) k--;
    return k;
}

// What a level leaves of the memory's bandwidth: every second one halves it.
static inline double node_bandwidth(uint32_t level) {
    double left = level % 2 == 0 ? 1.0 : 0.70710678118654752;
    return left / (double)(1U << level / 2);
}

typedef struct NodeTenant {
    const NodeModel *model;
    const char      *name;
    TimeNs           qos_ns;    // from arrival to the answer
    double           priority;  // 1 is usual, more is more important
} NodeTenant;

typedef struct NodeMachine {
    uint32_t       n_cores, n_slices;  // a slice of shared cache serves neighbouring cores
    const uint8_t *slice_of;           // [n_cores]
    float          slice_bytes;        // of cache
    float          dram_bytes_ns;      // bandwidth of the memory, all cores together
    float          dispatch_ns;        // from a decision to the first layer of a block
} NodeMachine;

// What stays the same through a run.
typedef struct NodeSetup {
    const NodeMachine *machine;
    const NodeTenant  *tenants;
    uint32_t           n_tenants;
} NodeSetup;

typedef enum NodeState { NODE_WAITING, NODE_RUNNING } NodeState;

typedef struct NodeRequest {
    uint64_t  id;      // in the order of arrival
    uint32_t  tenant;  // by number
    NodeState state;
    TimeNs    arrival, deadline;
    uint32_t  next;       // the first layer that no block has taken yet
    uint32_t  conflicts;  // blocks that started with fewer cores than wanted
    TimeNs    computed;   // core nanoseconds spent so far
    // of the running block; the last one's when it waits
    Cores          cores;
    uint32_t       first;   // its first layer
    uint32_t       layer;   // the one it is at, as far as the engine knows
    uint32_t       wanted;  // cores that the policy said it would have liked
    TimeNs         since;   // when the block started, or when it ended
    const uint8_t *versions;
} NodeRequest;

typedef struct NodeView {  // borrowed: valid only while decide() runs
    TimeNs             now;
    const NodeSetup   *setup;
    const NodeRequest *requests;  // [n_requests] all that are neither finished nor refused
    const uint32_t    *waiting;   // [n_waiting] of them, in order of arrival
    const uint32_t    *running;   // [n_running]
    uint32_t           n_requests, n_waiting, n_running;
    Cores              free;
    uint32_t           n_free;
    uint32_t           level;     // of interference now, with hysteresis
    float              pressure;  // the same before it is rounded, 0 to NODE_LEVELS - 1
} NodeView;

typedef enum NodeVerb {
#define X(id, name) NODE_##id,
#include "contract/node_verb.def"
#undef X
    NODE_VERBS
} NodeVerb;

typedef enum NodeReason {  // of a refusal
#define X(id, name) NODE_##id,
#include "contract/node_reason.def"
#undef X
    NODE_REASONS
} NodeReason;

typedef struct NodeAction {
    NodeVerb       verb;
    uint32_t       request;   // index into view->requests
    uint32_t       n_layers;  // START: length of the block, from the request's `next` on
    uint32_t       wanted;    // START: more than cores has is a conflict
    Cores          cores;     // START: all of them free. GROW: added at the next layer
    const uint8_t *versions;  // START: [all layers of the model], valid until the run's end
    NodeReason     reason;    // REJECT
    TimeNs         at;        // WAKE: decide again then, when nothing else happens before
} NodeAction;

typedef struct NodePolicy {
    const char    *name, *about;
    const Setting *rows;  // its constants
    uint32_t       n_rows;
    size_t         settings_size;  // of the struct that the rows fill
    size_t (*state_size)(const NodeSetup *setup, const void *settings);       // NULL: none
    void (*init)(void *state, const NodeSetup *setup, const void *settings);  // NULL: zeroes do
    // Writes at most max actions and returns how many; one for a request. No memory is allocated.
    // What is not named waits, or goes on.
    uint32_t (*decide)(void *state, const NodeView *view, NodeAction *out, uint32_t max);
} NodePolicy;
