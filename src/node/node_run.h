// NodeRun: inputs and results of one run of tenants' requests under a policy, live or in
// virtual time.
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/tensor.h"
#include "contract/node.h"
#include "sim/arrivals.h"
#include "sim/record.h"

// A live request with input shapes of its own: see EngineRequest. Members are NULL: the tenant's.
typedef struct NodeInput {
    const struct Program *program;
    const Tensor         *inputs;
} NodeInput;

typedef struct NodeRun {
    NodeSetup         setup;
    const NodePolicy *policy;
    const void       *settings;  // of the policy
    Arrivals          arrivals;
    const NodeInput  *inputs;  // [arrivals.n], live; NULL: all are the tenants'
    uint64_t          seed;    // of the machine's jitter
    RecordSink        records;
    uint32_t          skip;     // warm-up: the first requests are not counted
    bool              admit;    // requests beyond a tenant's share are rejected: see Admission
    double            give_up;  // stops once more than this share has certainly missed; 0: never
} NodeRun;

typedef struct NodeAnswer {
    TimeNs   arrival, finish;  // finish of a rejected request: when it was rejected
    uint32_t tenant;
    Outcome  outcome;
} NodeAnswer;

typedef struct NodeResult {
    NodeAnswer *answers;  // [n] in order of arrival
    uint32_t    n;
    uint64_t    blocks, conflicts, grown, decisions;
    double      busy_core_ns;  // cores in blocks, summed
    TimeNs      span;          // from the first arrival to the last result
    double      decide_ns;     // spent in the policy, live; 0 in virtual time
    bool        gave_up;       // stopped early: unanswered requests count as late
    double      engine_ns;  // engine overhead: queues, starting blocks, waking; 0 in virtual time
    uint64_t    refused;    // illegal actions of the policy
    uint64_t    preempted;  // blocks preempted by other processes, live
} NodeResult;

// Summary of a result for tables.
typedef struct NodeSummary {
    uint32_t n, met, late, rejected;
    double   hit_rate, mean_ms, p50_ms, p99_ms;  // latencies of answered requests
    double   conflict_rate;                      // of blocks
    double   core_use;                           // busy share of all cores
    double   rate;                               // arrivals per second
} NodeSummary;

// tenant: one of them, or NODE_ALL.
#define NODE_ALL UINT32_MAX
MUST_USE Err node_summary(const NodeRun *run, const NodeResult *r, uint32_t tenant, Arena *scratch,
                          NodeSummary *out);
