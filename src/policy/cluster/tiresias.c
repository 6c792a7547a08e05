// tiresias: least attained service, in two classes
//
// Nothing is known of durations. A job begins in the upper class; once it has had so much GPU time
// it falls into the lower one. Within a class the first to come is the first. Decisions are taken
// every whole period: GPUs are granted along the order, and who runs without a grant is stopped. In
// between GPUs that are free are filled, but not under the published rules, by which nobody starts
// then and the limit is another.
#include "policy/cluster/common/quota.h"
#include "policy/policies.h"

// 0: the usual value, or the published one with --like lucid.
#define SETTINGS(X)                                                                                \
    X(limit, double, 0.0, 0.0, 1e12,                                                               \
      "GPU seconds in the upper class; 0: 3600, as published 18000")                               \
    X(period_s, int, 0, 0, 86400, "between decisions that stop jobs; 0: 300, as published 60")

typedef struct TiresiasSettings {
#define X(...) SETTING_FIELD(__VA_ARGS__)
    SETTINGS(X)
#undef X
} TiresiasSettings;

static const Setting rows[] = {
#define X(...) SETTING_ROW(TiresiasSettings, __VA_ARGS__)
    SETTINGS(X)
#undef X
};

enum { USUAL_LIMIT = 3600, USUAL_PERIOD_S = 300 };
enum { PUBLISHED_LIMIT = 18000, PUBLISHED_PERIOD_S = 60 };

typedef struct Tiresias {
    Quota            quota;
    bool             published;  // rules of others, to the letter
    TiresiasSettings cfg;
    TimeNs           due;  // the next decision
} Tiresias;

static SortKey rank(const void *of, const ClusterView *v, const ClusterTask *t) {
    const Tiresias *s = of;
    return (SortKey){cluster_attained(v, t) > s->cfg.limit, (double)t->job.submit};
}

static size_t state_size(const ClusterSetup *s, const void *settings) {
    (void)settings;
    return quota_size(s, sizeof(Tiresias));
}

static void init(void *state, const ClusterSetup *s, const void *settings, const void *loaded) {
    (void)loaded;
    Tiresias *t = state;
    quota_init(&t->quota, s, state, sizeof *t);
    t->cfg = *(const TiresiasSettings *)settings;
    t->published = s->gpus_only;
    if (!(t->cfg.limit > 0)) t->cfg.limit = t->published ? PUBLISHED_LIMIT : USUAL_LIMIT;
    if (t->cfg.period_s == 0) t->cfg.period_s = t->published ? PUBLISHED_PERIOD_S : USUAL_PERIOD_S;
    t->quota.rank = rank;
    t->quota.of = t;
    t->due = INT64_MAX;
}

// The first whole period at or after a time.
static TimeNs period_at(const Tiresias *s, TimeNs t) {
    TimeNs period = s->cfg.period_s * CLUSTER_SECOND;
    return (t + period - 1) / period * period;
}

// When a task that runs from now on falls into the lower class.
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
    if ((v->reason & (CLUSTER_JOB_ARRIVED | CLUSTER_JOB_ENDED)) != 0) {
        TimeNs soon = period_at(s, v->now);
        if (soon < s->due) s->due = soon;
    }
    if (s->due < v->now) s->due = period_at(s, v->now);  // nobody was there when it came
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
    .about = "who has had little GPU time first, in two classes",
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
