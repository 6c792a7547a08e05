// KubeServer: the pages of the scheduler over HTTP/1.1: metrics, health, why a pod waits, progress
// reports; and, on a listener of its own, the extender.
//
//   GET  /metrics /healthz /readyz /why/NAMESPACE/POD
//   POST /progress
//   POST /filter /prioritize /bind /preempt, with any prefix of one word: the extender's
#pragma once

#include "kube/kube_extender.h"
#include "kube/kube_metrics.h"
#include "kube/kube_progress.h"
#include "kube/kube_why.h"
#include "net/listener.h"

typedef struct KubeBinding {  // a bind of the extender until done() is called, once
    void (*done)(struct KubeBinding *b, const char *fault);  // fault NULL: bound
} KubeBinding;

typedef struct KubeStanding {
    bool        synced;   // every collection was listed once
    const char *missing;  // name of one that was not; NULL
    bool        leader;   // or alone: no election
    const char *holder;   // of the lease; NULL or "": none
    bool        dry_run;
    bool        failed;  // the loop's work cannot go on
} KubeStanding;

typedef struct KubeSource {  // what the pages are made from; the functions get self
    KubeExtender extender;   // its state is set by state()
    KubeMetrics *metrics;
    KubeState *(*state)(void *self);  // NULL: it has none, it does not lead
    void (*standing)(void *self, KubeStanding *out);
    void (*gauges)(void *self, KubeGauges *out);
    void (*wait)(void *self, const KubePod *p, KubeWait *out);
    void (*report)(void *self, const KubeReport *r, TimeNs now);  // a checked one
    // Binds a pod for the extender; done() may be called at once or later.
    void (*bind)(void *self, KubePod *p, KubeNode *n, KubeBinding *b);
    void *self;
} KubeSource;

typedef struct KubeServerOptions {
    const char *address;   // "127.0.0.1:10260"
    bool        extender;  // it serves the extender instead of the other pages
} KubeServerOptions;

typedef struct KubeServer KubeServer;

MUST_USE Err kube_server_open(KubeServer **out, Loop *l, const KubeServerOptions *o,
                              const KubeSource *source);
const char  *kube_server_address(const KubeServer *s);
void         kube_server_close(KubeServer *s);  // accepts NULL; open binds are not answered
