// NodeLive: tenants' programs on this machine's cores, block by block as a policy decides.
//
// Whoever ends a block or brings a request calls the policy, unless another thread is just at it.
#pragma once

#include "base/cgroup.h"
#include "compile/program.h"
#include "node/inbox.h"
#include "node/run.h"
#include "node/watch.h"

typedef struct NodeLive NodeLive;

typedef struct NodeLiveOptions {
    uint32_t           cores;     // workers; 0: as many as we may use
    bool               fixed;     // all of them, whatever we may use
    const CgroupRoots *roots;     // NULL: this machine's; the budget is read there every second
    uint32_t           tenants;   // at most; 0: 64
    uint32_t           requests;  // at once, those that wait included; 0: 4096
    uint32_t           places;    // a tenant's requests that have begun, as memory allows; 0: 8
    uint32_t           records;   // kept until they are read; 0: 65536
    TimeNs spin_ns;  // of idle workers before they sleep; 0: 0.2 ms, longer costs tails on a shared
                     // machine
    TimeNs budget_ns;  // between two looks at the budget; 0: 1 s
} NodeLiveOptions;

typedef struct LiveTenant {
    NodeTenant     tenant;
    const Program *program;  // a step is a layer of the model
    const Tensor  *inputs;   // for requests that bring none
} LiveTenant;

MUST_USE Err node_live_create(NodeLive **out, const NodeLiveOptions *o);
void         node_live_destroy(NodeLive *l);  // accepts NULL; when all requests are answered

uint32_t node_live_cores(const NodeLive *l);
// Status of the interference watch, for people. Valid as long as the engine.
const char *node_live_watch(const NodeLive *l);

// One more tenant, with places prepared; others go on meanwhile. It is served once node_live_use
// names it. From one thread, as node_live_use and node_live_run.
MUST_USE Err node_live_add(NodeLive *l, const LiveTenant *t);
// Decides from now on, for these tenants: the first so many that were added, with targets of their
// own. Everything given must outlive the engine.
MUST_USE Err node_live_use(NodeLive *l, const NodePolicy *p, const void *settings,
                           const NodeSetup *setup);

// From any thread. False: too many requests are on their way, nothing happened.
bool node_live_submit(NodeLive *l, const LiveAsk *ask);

// Whether what happens is recorded from now on; node_live_run sees to that itself.
void node_live_record(NodeLive *l, bool on);
// Records since the last time, by one thread.
MUST_USE Err node_live_records(NodeLive *l, Arena *scratch, RecordSink to);

// Plays a run's arrivals in real time, each at its moment whether or not others were answered;
// latencies count from that moment. Nothing else may be submitted meanwhile.
MUST_USE Err node_live_run(NodeLive *l, const NodeRun *run, Arena *a, NodeResult *out);
