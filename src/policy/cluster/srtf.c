// srtf: shortest remaining time first
//
// Along the order of what is left, jobs are granted GPUs until none are left; who runs without a
// grant is stopped. Nobody blocks: one too large for what is left is passed over.
#include "policy/cluster/common/quota.h"
#include "policy/policies.h"

static SortKey rank(const void *of, const ClusterView *v, const ClusterTask *t) {
    (void)of;
    return (SortKey){(double)cluster_left(v, t), 0};
}

static size_t state_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    return quota_size(s, sizeof(Quota));
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)settings;
    (void)loaded;
    Quota *q = state;
    quota_init(q, s, state, sizeof *q);
    q->rank = rank;
    q->waiting_first = true;
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    (void)max;
    return quota_decide(state, v, out);
}

const ClusterPolicy cluster_policy_srtf = {
    .name = "srtf",
    .about = "least time left first, and stops others for it",
    .knows = CLUSTER_ORACLE,
    .preempts = true,
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
