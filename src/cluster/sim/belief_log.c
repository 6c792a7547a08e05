#include "cluster/sim/belief_log.h"

#include <string.h>

static const ClusterTask *find(const BeliefLog *l, const ClusterView *v) {
    const uint32_t *queues[] = {v->waiting, v->running};
    const uint32_t  n[] = {v->n_waiting, v->n_running};
    for (uint32_t q = 0; q < 2; q++)
        for (uint32_t i = 0; i < n[q]; i++)
            if (v->tasks[queues[q][i]].job.id == l->job) return &v->tasks[queues[q][i]];
    return NULL;
}

static const char *class_name(const ClusterView *v, const ClusterTask *t) {
    const ClusterProfiles *p = v->setup->profiles;
    return p != NULL && t->job.class < p->n ? p->at[t->job.class].name : "";
}

static bool differs(const BeliefEntry *a, const BeliefEntry *b) {
    return strcmp(a->class, b->class) != 0 || a->rate != b->rate || a->measured != b->measured;
}

static bool is_probed(const ClusterView *v, const ClusterTask *t, const ClusterAction *plan,
                      uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (plan[i].verb == CLUSTER_RESIZE && plan[i].probe && &v->tasks[plan[i].task] == t)
            return true;
    return false;
}

void belief_log_note(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    BeliefLog         *l = self;
    const ClusterTask *t = find(l, v);
    if (t == NULL) return;
    bool        runs = t->state == CLUSTER_RUNNING;
    BeliefEntry e = {.at = v->now,
                     .class = class_name(v, t),
                     .left = cluster_left(v, t),
                     .left_sd = t->spread.left_sd,
                     .rate_sd = t->spread.rate_sd,
                     .rate = runs ? t->rate : 0,
                     .measured = runs ? t->measured : 0,
                     .probe = is_probed(v, t, plan, n)};
    if (l->n > 0 && !e.probe && !differs(&e, &l->at[l->n - 1])) return;
    l->changes++;
    if (l->n == BELIEF_LOG_ENTRIES) return;
    e.class = arena_str(l->own, e.class);
    l->at[l->n++] = e;
}
