#include "policy/cluster/maifs/task_utility.h"

#include <math.h>

#include "contract/rate.h"
#include "learn/activation.h"

// Fractions of the cluster's cores and memory, which makes them addable.
static double cost(const ClusterSetup *s, const UtilityLevel *from, const UtilityLevel *to) {
    double cores = (double)to->cores_milli - (double)from->cores_milli;
    double mib = (double)to->memory_mib - (double)from->memory_mib;
    return cores / (double)(s->cores_milli + 1) + mib / (double)(s->memory_mib + 1) + 1e-12;
}

static double slope(const ClusterSetup *s, const UtilityLevel *from, const UtilityLevel *to) {
    return (to->rate - from->rate) / cost(s, from, to);
}

// Upper convex hull: a level with more gain per cost than the one below replaces it.
static void push(TaskUtility *w, const ClusterSetup *s, UtilityLevel r) {
    while (w->n_levels > 1 &&
           slope(s, &w->levels[w->n_levels - 1], &r) >=
               slope(s, &w->levels[w->n_levels - 2], &w->levels[w->n_levels - 1]))
        w->n_levels--;
    w->levels[w->n_levels++] = r;
}

static UtilityLevel default_level_of(const ClusterJob *j) {
    uint32_t n = j->gpus > 0 ? j->gpus : 1;
    return (UtilityLevel){j->cores_milli / n, j->memory_mib / n, 1};
}

// The allocation levels of its class, scaled to the job's default demand.
static void add_levels(TaskUtility *w, const ClusterSetup *s, const ClusterJob *j) {
    const ClusterProfile *p = &s->profiles->at[j->class];
    double                cores = 1000 * rate_cores_scale(s->profiles, j);
    double                memory = 1024 * rate_memory_scale(s->profiles, j);
    for (uint32_t i = 0; i < p->levels.n; i++) {
        const AllocLevel *x = &p->levels.at[i];
        UtilityLevel      r = {(uint32_t)(x->cores * cores), (uint32_t)(x->gb * memory), 1};
        if (i == p->levels.usual) r = default_level_of(j);
        if (x->share < 1) continue;
        r.rate = (float)rate_resources(s->profiles, j, j->gpus, j->gpus * r.cores_milli,
                                       j->gpus * r.memory_mib);
        push(w, s, r);
    }
}

static bool is_wide(const ClusterSetup *s, const ClusterJob *j) {
    return j->gpus > (j->gpus > 1 ? cluster_largest(s, j) : s->most_gpus);
}

static uint32_t nearest_to_default(const TaskUtility *w) {
    uint32_t at = 0;
    for (uint32_t i = 1; i < w->n_levels; i++)
        if (fabsf(w->levels[i].rate - 1) < fabsf(w->levels[at].rate - 1)) at = i;
    return at;
}

void task_utility_init(TaskUtility *w, const ClusterSetup *s, const ClusterJob *j,
                       const UtilityParams *r) {
    bool classed = s->profiles != NULL && j->class != CLUSTER_NONE && j->gpus > 0;
    *w = (TaskUtility){.job = j->id + 1,
                       .gpus = j->gpus,
                       .milli = j->gpu_milli,
                       .class = classed ? j->class : CLUSTER_NONE,
                       .believed = j->class,
                       .types = j->gpus > 0 ? j->gpu_types : 0,
                       .servers = j->servers,
                       .scaling = 1,
                       .wide = is_wide(s, j)};
    w->restart_s = (float)((double)cluster_restart(s, j) / 1e9);
    if (classed && !r->fixed) add_levels(w, s, j);
    if (w->n_levels == 0) w->levels[w->n_levels++] = default_level_of(j);
    w->default_level = nearest_to_default(w);
}

float task_utility_effective_left(const TaskUtility *w, double drain, const UtilityParams *r) {
    float left = w->left_s, gpus = w->gpus > 0 ? (float)w->gpus : 1;
    float line = (float)drain * r->margin;
    if (!(left > line) || !(line > 0)) return left;
    float power = r->critical_boost * w->certainty + r->uncertain_boost * (1 - w->certainty);
    float boost = repro_exp(power * repro_log(left / line)) - 1;
    return left / (1 + boost * repro_exp(r->critical_gang_power * repro_log(gpus)));
}

// The Gittins index in place of the reciprocal of the work left; the gain of critical jobs stays.
static void value_by_index(TaskUtility *w, const ClusterTask *t, float weight) {
    double owed = (double)t->owed / 1e9;
    float  critical = w->value * w->left_s / weight;
    w->value = weight * critical / (float)(1 / t->spread.index + owed);
}

// The stops that are left are spread over the work left.
static void limit_stops(TaskUtility *w, const ClusterView *v, const ClusterTask *t,
                        const UtilityParams *r) {
    uint32_t most = v->setup->stops.max_stops, stops = t->preemptions;
    bool     runs = t->state == CLUSTER_RUNNING, limited = most > 0 && !t->lent;
    float    ran = (float)((double)(v->now - t->since) / 1e9);
    w->settled = limited && r->last_alone && stops >= most;
    w->settles = limited && r->last_alone && stops + runs >= most;
    w->paced = limited && runs && stops > 0 && stops < most &&
               ran * (float)(most - stops + 1) < r->pace * w->left_s;
}

void task_utility_update(TaskUtility *w, const ClusterView *v, const ClusterTask *t, double drain_s,
                         const UtilityParams *r) {
    TimeNs left = cluster_left(v, t);
    double weight = 1;
    if (t->job.tenant != CLUSTER_NONE) weight = v->setup->tenants[t->job.tenant].weight;
    double s =
        left >= 0 ? (double)left / 1e9 : r->unknown_left_s + (double)cluster_held(v, t) / 1e9;
    if (r->spread && t->spread.mean_s > 0) s = t->spread.mean_s + (double)t->owed / 1e9;
    w->left_s = (float)(s > 1 ? s : 1);
    limit_stops(w, v, t, r);
    w->certainty = r->spread ? (float)(1 / (1 + t->spread.left_sd * t->spread.left_sd)) : 1;
    w->value = w->scaling * (float)weight / task_utility_effective_left(w, drain_s, r);
    if (r->spread && t->spread.index > 0) value_by_index(w, t, (float)weight);
}
