// NodeLive: tenants' programs on this machine's cores, block by block as a policy decides.
//
// Whoever ends a block or brings a request calls the policy, unless another thread is just at it.
#pragma once

#include "base/cgroup.h"
#include "compile/program.h"
#include "node/live/inbox.h"
#include "node/node_run.h"
#include "node/live/interference.h"

typedef struct NodeLive NodeLive;

enum { LIVE_TENANTS = 4096 };  // at once, at most

typedef struct NodeLiveOptions {
    uint32_t           cores;     // workers; 0: as many as we may use
    bool               fixed;     // all of them, whatever we may use
    const CgroupRoots *roots;     // NULL: this machine's; the budget is read there every second
    uint32_t           tenants;   // at most; 0: 64
    uint32_t           requests;  // at once, those that wait included; 0: 4096
    uint32_t           contexts;  // a tenant's requests that have begun, as memory allows; 0: 8
    uint32_t           records;   // kept until they are read; 0: 65536
    TimeNs spin_ns;      // of idle workers before they sleep; 0: 0.2 ms, or not at all on one core
    TimeNs budget_ns;    // between two looks at the budget; 0: 1 s
    TimeNs watchdog_ns;  // a block that takes longer is stopped at its next layer; 0: 10 s
    TimeNs starve_ns;    // who may be late gets a core after so long at the latest, whatever the
                         // policy says; all of them together a 16th of one; 0: 5 s
    bool admit;          // what is beyond a tenant's share is refused when it comes: see Admission
} NodeLiveOptions;

typedef struct LiveTenant {
    NodeTenant     tenant;
    const Program *program;               // a step is a layer of the model
    const Tensor  *inputs;                // for requests that bring none
    uint32_t       queue;                 // most that wait; 0: no limit of its own
    uint32_t       contexts;              // computed at once; 0: as the engine's options say
    uint32_t       min_cores, max_cores;  // kept for it; all it gets (0: no limit)
} LiveTenant;

MUST_USE Err node_live_create(NodeLive **out, const NodeLiveOptions *o);
void         node_live_destroy(NodeLive *l);  // accepts NULL; when all requests are answered

uint32_t node_live_cores(const NodeLive *l);
// Status of the interference watch, for people. Valid as long as the engine.
const char *node_live_watch(const NodeLive *l);

// One more tenant, with contexts prepared; others go on meanwhile. It is served once node_live_use
// names it. From one thread, as node_live_use and node_live_run.
MUST_USE Err node_live_add(NodeLive *l, const LiveTenant *t);
// Decides from now on, for these tenants: the first so many that were added, with targets of their
// own. Everything given must outlive the engine.
MUST_USE Err node_live_use(NodeLive *l, const NodePolicy *p, const void *settings,
                           const NodeSetup *setup);

// From any thread. False: too many requests are on their way, nothing happened.
bool node_live_submit(NodeLive *l, const EngineRequest *ask);

// What a server does, beside runs: tenants come and go while others are served. One thread at a
// time calls these; they neither stop nor slow those that run.
MUST_USE Err node_live_join(NodeLive *l, const LiveTenant *t, uint32_t *number);
// Nothing of it is on its way any more, and nothing comes. Its memory goes back to the system.
void node_live_leave(NodeLive *l, uint32_t number);
// Decides from now on for all that have joined; to be called again when tenants came or left.
// policy, settings and machine outlive the engine.
MUST_USE Err node_live_set_policy(NodeLive *l, const NodePolicy *p, const void *settings,
                                  const NodeMachine *m);
void node_live_cancel(NodeLive *l);  // somebody set a request's `cancelled`; from any thread

typedef struct LiveTenantStatus {
    uint32_t waiting, running, cores;  // now
    uint64_t blocks, preemptions, conflicts;
    double   core_ns;
    uint64_t memory_bytes;  // of its contexts
} LiveTenantStatus;

typedef struct LiveStatus {
    uint32_t cores, budget, busy, level;  // cores we have, may use now, and that are in blocks
    uint32_t waiting, running;
    uint64_t decisions, refused;  // plans that were not carried out
    double   decide_ns;
    bool     throttled;         // the system gives us less than it promises
    LiveTenantStatus *tenants;  // [n_tenants] by number
    uint32_t          n_tenants;
} LiveStatus;

MUST_USE Err node_live_status(NodeLive *l, Arena *a, LiveStatus *out);  // from any one thread

// Whether what happens is recorded from now on; node_live_run sees to that itself.
void node_live_record(NodeLive *l, bool on);
// Records since the last time, by one thread.
MUST_USE Err node_live_records(NodeLive *l, Arena *scratch, RecordSink to);
uint64_t     node_live_lost(const NodeLive *l);  // records that found no room, ever

// Plays a run's arrivals in real time, each at its moment whether or not others were answered;
// latencies count from that moment. Nothing else may be submitted meanwhile.
MUST_USE Err node_live_run(NodeLive *l, const NodeRun *run, Arena *a, NodeResult *out);
