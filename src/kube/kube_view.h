// KubeView: ClusterSetup and ClusterView of a live cluster, from a KubePicture: everything that a
// decision depends on, so that a recorded picture gives the same view again.
//
// A change of servers, tenants, slots or of the sets of servers makes a new setup; what a policy
// keeps belongs to one setup.
#pragma once

#include "cluster/tenant_shares.h"
#include "kube/kube_beliefs.h"
#include "kube/kube_jobs.h"

typedef struct KubeServer {
    const char *name, *type, *rack;             // "" without
    uint32_t    gpus, cores_milli, memory_mib;  // without what others hold
} KubeServer;

typedef struct KubePicture {
    TimeNs                 now;
    const KubeServer      *servers;            // [n_servers]
    const char *const     *tenants;            // [n_tenants]
    const ClusterTask     *tasks;              // [n_slots]
    const uint32_t        *waiting, *running;  // slots by entry
    const ClusterProfiles *profiles;
    uint32_t               n_servers, n_tenants, n_slots, n_waiting, n_running;
    uint32_t               reason;
    uint64_t               generation;  // of the sets of servers
    bool                   fractions, no_gpus;
} KubePicture;

typedef struct KubeRules {  // of every view
    ClusterStopLimits   stops;
    TimeNs              restart, restart_wide;
    const TenantShares *shares;  // NULL: equal weights, no quotas
    uint64_t            seed;
} KubeRules;

typedef struct KubeView {
    Arena        arena;  // of the setup
    bool         open;
    ClusterSetup setup;
    ClusterView  view;
    ServerState *servers;
    uint16_t    *parts;  // [all GPUs]
    uint32_t    *residents, residents_room;
    uint64_t     generation;
    uint64_t     setups;  // made so far
    TimeNs       first;   // of the counts of time
} KubeView;

void kube_view_init(KubeView *v);
void kube_view_finish(KubeView *v);

// *anew: the setup is a new one. The view is valid until the next call.
MUST_USE Err kube_view_build(KubeView *v, const KubePicture *p, const KubeRules *r, bool *anew);

// A server that others hold more of than it has got (a device plugin restarts, a node shrank) has
// at least what our own pods hold.
MUST_USE Err kube_view_servers(const KubeState *s, const KubeJobs *x, Arena *a, KubeServer **out,
                               uint32_t *n);
