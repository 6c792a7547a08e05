// qssf: quasi-shortest service first
//
// Least GPU time first, of equals the smaller gang. Those that come when nobody waits start by
// their size alone: that is how it was published, and it costs nothing where there is room for all.
#include "policy/cluster/common/strict_queue.h"
#include "policy/policies.h"

static SortKey rank(const ClusterView *v, const ClusterTask *t, bool fresh) {
    double gpus = (double)cluster_gpu_milli(&t->job) / CLUSTER_WHOLE_GPU;
    if (fresh) return (SortKey){gpus, 0};
    return (SortKey){(double)cluster_left(v, t) * gpus, gpus};
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)settings;
    (void)loaded;
    StrictQueue *q = state;
    strict_queue_init(q, s);
    q->rank = rank;
    q->by_freshness = true;
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    (void)max;
    return strict_queue_decide(state, v, out);
}

const ClusterPolicy cluster_policy_qssf = {
    .name = "qssf",
    .about = "least GPU time first; who finds no place blocks the rest",
    .paper = "Helios (SC 2021)",
    .knows = CLUSTER_ORACLE,
    .state_size = strict_queue_size,
    .init = init,
    .decide = decide,
};
