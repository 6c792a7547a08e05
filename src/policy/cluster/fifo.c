// fifo: first in, first out
//
// Jobs start in the order in which they came. One that finds no place blocks all behind it, however
// small they are.
#include "policy/cluster/turn.h"
#include "policy/policies.h"

static Rank rank(const ClusterView *v, const ClusterTask *t, bool fresh) {
    (void)v;
    (void)fresh;
    return (Rank){(double)t->job.submit, 0};
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)settings;
    (void)loaded;
    Turn *q = state;
    turn_init(q, s);
    q->rank = rank;
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    (void)max;
    return turn_decide(state, v, out);
}

const ClusterPolicy cluster_policy_fifo = {
    .name = "fifo",
    .about = "in order of submission; who finds no place blocks the rest",
    .knows = CLUSTER_BLIND,
    .state_size = turn_size,
    .init = init,
    .decide = decide,
};
