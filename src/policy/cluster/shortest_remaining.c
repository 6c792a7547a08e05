// srtf, srsf: shortest remaining time or service first, with preemption
//
// Along the order of what is left, jobs are granted GPUs until none are left; a job that runs
// without a grant is preempted. A job too large for what is left is passed over and blocks none.
//
// srtf  remaining work.
// srsf  remaining work x GPUs: a small long job may go before a large short one.
#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/quota.h"
#include "policy/cluster/common/anew.h"
#include "policy/policies.h"

typedef struct Shortest {
    Quota quota;
    Anew  anew;  // by Muri's rules
} Shortest;

static void lay_out(Shortest *x, const ClusterSetup *s, Carve *from) {
    quota_carve(&x->quota, s, from);
    if (s->anew) anew_carve(&x->anew, s, from);
}

CLUSTER_POLICY_STATE(Shortest)

static SortKey by_work(const void *self, const ClusterView *v, const ClusterTask *t) {
    (void)self;
    return (SortKey){(double)cluster_left(v, t), 0};
}

static SortKey by_service(const void *self, const ClusterView *v, const ClusterTask *t) {
    (void)self;
    return (SortKey){(double)cluster_left(v, t) * (double)cluster_gpu_milli(&t->job), 0};
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Shortest *x = state;
    (void)max;
    if (v->setup->anew) return anew_shortest(&x->anew, v, x->quota.key == by_service, out);
    return quota_decide(&x->quota, v, out);
}

#define SHORTEST_POLICY(id, key_, about_)                                                          \
    static void init_##id(void *state, const ClusterSetup *s, const void *settings,                \
                          const void *loaded) {                                                    \
        (void)settings;                                                                            \
        (void)loaded;                                                                              \
        Quota *q = &state_open(state, s)->quota;                                                   \
        q->key = key_;                                                                             \
        q->waiting_first = true;                                                                   \
    }                                                                                              \
    const ClusterPolicy cluster_policy_##id = {.name = #id,                                        \
                                               .about = about_,                                    \
                                               .knows = CLUSTER_ORACLE,                            \
                                               .preempts = true,                                   \
                                               .state_size = state_size,                           \
                                               .init = init_##id,                                  \
                                               .decide = decide};

SHORTEST_POLICY(srtf, by_work, "least time left first, with preemption")
SHORTEST_POLICY(srsf, by_service, "least GPU time left first, with preemption")
