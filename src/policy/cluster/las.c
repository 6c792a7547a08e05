// las: least attained service
//
// Nothing is known of durations. Who has had the least GPU time goes first; jobs are stopped at
// whole periods only, so that those that have had the same take turns.
#include "policy/cluster/common/quota.h"
#include "policy/policies.h"

#define SETTINGS(X) X(period_s, int, 300, 1, 86400, "between decisions that stop jobs")

typedef struct LasSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
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

static SortKey rank(const void *of, const ClusterView *v, const ClusterTask *t) {
    (void)of;
    return (SortKey){cluster_attained(v, t), (double)t->job.submit};
}

static size_t state_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    return quota_size(s, sizeof(Las));
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Las *l = state;
    quota_init(&l->quota, s, state, sizeof *l);
    l->quota.rank = rank;
    l->period = ((const LasSettings *)settings)->period_s * CLUSTER_SECOND;
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Las     *l = state;
    uint32_t n;
    (void)max;
    n = v->now % l->period == 0 ? quota_decide(&l->quota, v, out) : quota_fill(&l->quota, v, out);
    if (v->n_waiting > 0)
        out[n++] =
            (ClusterAction){.verb = CLUSTER_WAKE, .at = (v->now / l->period + 1) * l->period};
    return n;
}

const ClusterPolicy cluster_policy_las = {
    .name = "las",
    .about = "who has had the least GPU time first, in turns",
    .knows = CLUSTER_BLIND,
    .preempts = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(LasSettings),
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
