// NodeRun: one run of tenants' requests under a policy, live or in virtual time: what goes in and
// what comes out.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "contract/node.h"
#include "sim/arrivals.h"
#include "sim/record.h"

typedef struct NodeRun {
    NodeSetup         setup;
    const NodePolicy *policy;
    const void       *settings;  // of the policy
    Arrivals          arrivals;
    uint64_t          seed;  // of whatever chance there is in the machine
    RecordSink        records;
    uint32_t          skip;     // the first so many requests are not counted: the queues fill
    bool              admit;    // what is beyond a tenant's share is refused: see Admission
    double            give_up;  // ends once more than this part is missed for sure; 0: never
} NodeRun;

typedef struct NodeAnswer {
    TimeNs   arrival, finish;  // finish of a refused request: when that was said
    uint32_t tenant;
    Outcome  outcome;
} NodeAnswer;

typedef struct NodeResult {
    NodeAnswer *answers;  // [n] in order of arrival
    uint32_t    n;
    uint64_t    blocks, conflicts, grown, decisions;
    double      busy_core_ns;  // cores in blocks, summed
    TimeNs      span;          // from the first arrival to the last answer
    double      decide_ns;     // spent in the policy, live; 0 in virtual time
    bool        gave_up;       // what was not answered by then counts as late
    double      engine_ns;     // around it: queues, starting blocks, waking; 0 in virtual time
    uint64_t    refused;       // actions of the policy that the engine did not carry out
    uint64_t    preempted;     // blocks that lost their cores to others for a while, live
} NodeResult;

// What a table shows of a result.
typedef struct NodeSummary {
    uint32_t n, met, late, rejected;
    double   hit_rate, mean_ms, p50_ms, p99_ms;  // latencies of answered requests
    double   conflict_rate;                      // of blocks
    double   core_use;                           // busy share of all cores
    double   rate;                               // requests a second that came
} NodeSummary;

// tenant: one of them, or NODE_ALL.
#define NODE_ALL UINT32_MAX
MUST_USE Err node_summary(const NodeRun *run, const NodeResult *r, uint32_t tenant, Arena *scratch,
                          NodeSummary *out);
