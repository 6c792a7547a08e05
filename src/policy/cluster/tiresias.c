// tiresias: least attained service, in two queues
//
// Durations are unknown. A job begins in the upper queue and falls into the lower one once it has
// used a limit of GPU time; within a queue the order is that of submission. At whole periods GPUs
// are granted along this order, and jobs that run without a grant are preempted. In between, free
// GPUs are filled; not so with the published rules, which also have another limit.
#include "policy/cluster/common/anew.h"
#include "policy/cluster/common/cluster_policy.h"
#include "policy/cluster/common/quota.h"
#include "policy/policies.h"

// 0: our default, or with --like lucid the published value.
#define SETTINGS(X)                                                                                \
    X(limit, double, 0.0, 0.0, 1e12,                                                               \
      "GPU seconds in the upper queue; 0: 3600, or 18000 as published")                            \
    X(period_s, int, 0, 0, 86400,                                                                  \
      "seconds between decisions that preempt jobs; 0: 300, or 60 as published")

typedef struct TiresiasSettings {
    SETTINGS(SETTING_FIELD)
} TiresiasSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(TiresiasSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

enum { DEFAULT_LIMIT = 3600, DEFAULT_PERIOD_S = 300 };
enum { PUBLISHED_LIMIT = 18000, PUBLISHED_PERIOD_S = 60 };

typedef struct Tiresias {
    Quota            quota;
    bool             published;  // the published simulator's rules
    TiresiasSettings cfg;
    TimeNs           due;   // the next decision
    Anew             anew;  // by Muri's rules: three queues
} Tiresias;

static void lay_out(Tiresias *t, const ClusterSetup *s, Carve *from) {
    quota_carve(&t->quota, s, from);
    if (s->anew) anew_carve(&t->anew, s, from);
}

CLUSTER_POLICY_STATE(Tiresias)

static SortKey by_queue(const void *self, const ClusterView *v, const ClusterTask *t) {
    const Tiresias *s = self;
    return (SortKey){cluster_attained(v, t) > s->cfg.limit, (double)t->job.submit};
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Tiresias *t = state_open(state, s);
    t->cfg = *(const TiresiasSettings *)settings;
    t->published = s->gpus_only;
    if (!(t->cfg.limit > 0)) t->cfg.limit = t->published ? PUBLISHED_LIMIT : DEFAULT_LIMIT;
    if (t->cfg.period_s == 0)
        t->cfg.period_s = t->published ? PUBLISHED_PERIOD_S : DEFAULT_PERIOD_S;
    t->quota.key = by_queue;
    t->quota.self = t;
    t->due = INT64_MAX;
}

// The first whole period at or after a time.
static TimeNs period_at(const Tiresias *s, TimeNs t) {
    TimeNs period = s->cfg.period_s * CLUSTER_SECOND;
    return (t + period - 1) / period * period;
}

// When a task that runs from now on falls into the lower queue, rounded up to a period.
static TimeNs falls_at(const Tiresias *s, const ClusterView *v, const ClusterTask *t) {
    double milli = (double)cluster_gpu_milli(&t->job), had = cluster_attained(v, t);
    double left_ns = (s->cfg.limit - had) * 1e12 / milli;
    if (had > s->cfg.limit || !(left_ns < 4e18)) return INT64_MAX;
    return period_at(s, v->now + (TimeNs)left_ns + 1);
}

static void plan_next(Tiresias *s, const ClusterView *v, const ClusterAction *out, uint32_t n) {
    s->due = INT64_MAX;
    if (v->n_waiting == 0) return;
    for (uint32_t i = 0; i < v->n_running + n; i++) {
        if (i >= v->n_running && out[i - v->n_running].verb != CLUSTER_START) continue;
        uint32_t slot = i < v->n_running ? v->running[i] : out[i - v->n_running].task;
        TimeNs   at = falls_at(s, v, &v->tasks[slot]);
        if (at < s->due) s->due = at;
    }
}

static uint32_t decide(void *state, const ClusterView *v, ClusterAction *out, uint32_t max) {
    Tiresias *s = state;
    uint32_t  n = 0;
    (void)max;
    if (v->setup->anew) return anew_queues(&s->anew, v, out);
    if ((v->reason & (CLUSTER_JOB_ARRIVED | CLUSTER_JOB_ENDED)) != 0) {
        TimeNs soon = period_at(s, v->now);
        if (soon < s->due) s->due = soon;
    }
    if (s->due < v->now) s->due = period_at(s, v->now);  // the cluster was empty then
    if (v->now >= s->due) {
        n = quota_decide(&s->quota, v, out);
        plan_next(s, v, out, n);
    } else if (!s->published) {
        n = quota_fill(&s->quota, v, out);
    }
    if (s->due < INT64_MAX) out[n++] = (ClusterAction){.verb = CLUSTER_WAKE, .at = s->due};
    return n;
}

const ClusterPolicy cluster_policy_tiresias = {
    .name = "tiresias",
    .about = "least attained GPU time first, in two queues",
    .paper = "Tiresias (NSDI 2019)",
    .knows = CLUSTER_BLIND,
    .preempts = true,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .settings_size = sizeof(TiresiasSettings),
    .state_size = state_size,
    .init = init,
    .decide = decide,
};
