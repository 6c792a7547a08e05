// fifo: first in, first out
//
// Jobs start in the order in which they came. One that finds no place blocks all behind it, however
// small they are.
#include "policy/cluster/common/strict_queue.h"
#include "policy/policies.h"

static SortKey rank(const ClusterView *v, const ClusterTask *t, bool fresh) {
    (void)v;
    (void)fresh;
    return (SortKey){(double)t->job.submit, 0};
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)settings;
    (void)loaded;
    StrictQueue *q = state;
    strict_queue_init(q, s);
    q->rank = rank;
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    (void)max;
    return strict_queue_decide(state, v, out);
}

const ClusterPolicy cluster_policy_fifo = {
    .name = "fifo",
    .about = "in order of submission; who finds no place blocks the rest",
    .knows = CLUSTER_BLIND,
    .state_size = strict_queue_size,
    .init = init,
    .decide = decide,
};
