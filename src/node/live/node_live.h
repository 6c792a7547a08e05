// NodeLive: the live engine: runs tenants' compiled programs on this machine's cores, block by
// block as a policy decides.
//
// The thread that ends a block or submits a request calls the policy, unless another thread is
// doing so.
#pragma once

#include "base/cgroup.h"
#include "compile/program.h"
#include "node/live/inbox.h"
#include "node/node_run.h"
#include "node/live/interference.h"

typedef struct NodeLive NodeLive;

enum { LIVE_TENANTS = 4096 };  // maximum

typedef struct NodeLiveOptions {
    uint32_t           cores;    // workers; 0: as many as the process may use
    bool               fixed;    // use all of them, whatever the cgroup allows
    const CgroupRoots *roots;    // NULL: this machine's; the core budget is read there every second
    uint32_t           tenants;  // at most; 0: 64
    uint32_t           requests;  // maximum in flight, queued included; 0: 4096
    uint32_t contexts;     // per-tenant execution contexts (concurrency), as memory allows; 0: 8
    uint32_t records;      // capacity of the journal; 0: 65536
    TimeNs   spin_ns;      // spinning of idle workers before sleep; 0: 0.2 ms, or none on one core
    TimeNs   budget_ns;    // interval of reading the core budget; 0: 1 s
    TimeNs   watchdog_ns;  // a block that takes longer is stopped at its next layer; 0: 10 s
    TimeNs   starve_ns;    // a request that may be late gets a core after this long at the latest,
                       // whatever the policy says; all of them together 1/16 of one core; 0: 5 s
    bool admit;  // requests beyond a tenant's share are rejected on arrival: see Admission
} NodeLiveOptions;

typedef struct LiveTenant {
    NodeTenant     tenant;
    const Program *program;               // a step is a layer of the model
    const Tensor  *inputs;                // for requests without inputs
    uint32_t       queue;                 // queue limit; 0: none
    uint32_t       contexts;              // concurrency; 0: the engine's default
    uint32_t       min_cores, max_cores;  // cores reserved for it; upper limit (0: none)
    bool           haste;                 // a request waits: pages of contexts are touched on use
} LiveTenant;

MUST_USE Err node_live_create(NodeLive **out, const NodeLiveOptions *o);
void         node_live_destroy(NodeLive *l);  // accepts NULL; when all requests are answered

uint32_t node_live_cores(const NodeLive *l);
uint32_t node_live_idle(const NodeLive *l);  // cores without a block; from any thread
// Status of the interference monitor, as text. Valid as long as the engine.
const char *node_live_watch(const NodeLive *l);

// Adds a tenant with its contexts; others run on meanwhile. It is scheduled once node_live_use
// includes it. From one thread, as node_live_use and node_live_run.
MUST_USE Err node_live_add(NodeLive *l, const LiveTenant *t);
// Sets the policy for the tenants in setup: the first n that were added, with their
// targets. All arguments must outlive the engine.
MUST_USE Err node_live_use(NodeLive *l, const NodePolicy *p, const void *settings,
                           const NodeSetup *setup);

// From any thread. False: the engine is at its request limit, nothing happened.
bool node_live_submit(NodeLive *l, const EngineRequest *ask);

// For a server: tenants join and leave while others are served. One thread at a
// time calls these; running tenants are not paused.
MUST_USE Err node_live_join(NodeLive *l, const LiveTenant *t, uint32_t *number);
// Joins a tenant of jobs (node/job_program.h): `job` is set, inputs are
// job_input(). Of t only name, target and priority count.
MUST_USE Err node_live_join_jobs(NodeLive *l, const NodeTenant *t, uint32_t *number);
// The tenant has no request in flight and gets none. Its memory returns to the system.
void node_live_leave(NodeLive *l, uint32_t number);
// Sets the policy for all tenants that joined; to be called again after joins and leaves.
// policy, settings and machine outlive the engine.
MUST_USE Err node_live_set_policy(NodeLive *l, const NodePolicy *p, const void *settings,
                                  const NodeMachine *m);
// Calls change(self) while the scheduler reads no table of a model. The tenant of that
// table has no request in flight, and policies see the new times after node_live_set_policy.
void node_live_change_table(NodeLive *l, void (*change)(void *self), void *self);
void node_live_cancel(NodeLive *l);  // after a request's `cancelled` was set; from any thread

typedef struct LiveTenantStatus {
    uint32_t waiting, running, cores;  // now
    uint64_t blocks, preemptions, conflicts;
    uint64_t yields;     // blocks that ended early because other tenants waited
    uint64_t demotions;  // blocks that lost their cores because other tenants waited
    double   core_ns;
    uint64_t memory_bytes;  // of its contexts
} LiveTenantStatus;

typedef struct LiveStatus {
    uint32_t cores, budget, busy, level;  // cores: all, allowed now, in blocks; interference level
    uint32_t waiting, running;
    uint32_t demoted;             // running without cores: paused, or on idle cores
    uint64_t decisions, refused;  // refused: illegal actions of the policy
    double   decide_ns;
    bool     throttled;         // the cgroup quota throttles the process
    LiveTenantStatus *tenants;  // [n_tenants] by number
    uint32_t          n_tenants;
} LiveStatus;

MUST_USE Err node_live_status(NodeLive *l, Arena *a, LiveStatus *out);  // from one thread at a time

// Switches recording on or off; node_live_run does so itself.
void node_live_record(NodeLive *l, bool on);
// Delivers the records since the last call; one thread at a time.
MUST_USE Err node_live_records(NodeLive *l, Arena *scratch, RecordSink to);
uint64_t     node_live_lost(const NodeLive *l);  // records dropped so far

// Replays a run's arrivals in real time (open loop);
// latencies count from the arrival times. Nothing else may be submitted meanwhile.
MUST_USE Err node_live_run(NodeLive *l, const NodeRun *run, Arena *a, NodeResult *out);
