// las: least attained service
//
// Durations are unknown. The job with the least GPU time so far goes first. Jobs are preempted at
// whole periods only, so that jobs with equal service take turns.
#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/quota.h"
#include "policy/policies.h"

#define SETTINGS(X) X(period_s, int, 300, 1, 86400, "seconds between decisions that preempt jobs")

typedef struct LasSettings {
    SETTINGS(SETTING_FIELD)
} LasSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(LasSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

typedef struct Las {
    Quota  quota;
    TimeNs period;
} Las;

static void lay_out(Las *l, const ClusterSetup *s, Carve *from) { quota_carve(&l->quota, s, from); }

CLUSTER_POLICY_STATE(Las)

static SortKey by_service(const void *self, const ClusterView *v, const ClusterTask *t) {
    (void)self;
    return (SortKey){cluster_attained(v, t), (double)t->job.submit};
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Las *l = state_open(state, s);
    l->quota.key = by_service;
    l->period = ((const LasSettings *)settings)->period_s * CLUSTER_SECOND;
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Las     *l = state;
    uint32_t n;
    (void)max;
    n = v->now % l->period == 0 ? quota_decide(&l->quota, v, out) : quota_fill(&l->quota, v, out);
    if (v->n_waiting > 0)
        out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = period_after(v->now, l->period)};
    return n;
}

const ClusterPolicy cluster_policy_las = {
    .name = "las",
    .about = "least attained GPU time first, in turns",
    .knows = CLUSTER_BLIND,
    .preempts = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(LasSettings),
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
