// srsf: shortest remaining service first
//
// As srtf, by what is left times GPUs: a small job that is long may go before a large one that is
// short.
#include "policy/cluster/common/quota.h"
#include "policy/policies.h"

static SortKey rank(const void *of, const ClusterView *v, const ClusterTask *t) {
    (void)of;
    return (SortKey){(double)cluster_left(v, t) * (double)cluster_gpu_milli(&t->job), 0};
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

const ClusterPolicy cluster_policy_srsf = {
    .name = "srsf",
    .about = "least GPU time left first, and stops others for it",
    .knows = CLUSTER_ORACLE,
    .preempts = true,
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
