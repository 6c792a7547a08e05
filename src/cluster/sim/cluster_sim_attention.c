// Beliefs by attention in a run. With both, the work left is the mean with that by hand, and
// classes are those by hand, which predict speeds better.
#include <math.h>

#include "base/err.h"
#include "cluster/sim/cluster_sim_int.h"
#include "contract/rate.h"

static const double LEAST = 1e-3;  // of speeds, for logarithms

static double speed_at(const ClusterProfiles *s, uint32_t class, const BeliefAmounts *l) {
    const ClusterProfile *p = &s->at[class];
    double                cores = l->cores * s->share_cores, gb = l->memory * s->share_gb;
    double                usual = profile_speed(p, s->share_cores, s->share_gb);
    return (usual > 0 ? profile_speed(p, cores, gb) / usual : 1) *
           rate_shortfall(cores, fmin(p->speed.row[0], s->share_cores)) *
           rate_shortfall(gb, fmin(p->speed.column[0], s->share_gb));
}

static double log_beside(const ClusterProfiles *s, uint32_t class, uint32_t n) {
    double sum = 0, fits = 0;
    for (uint32_t k = 0; k < n; k++) {
        double speed = profile_pair(s, class, k);
        if (speed > 0) sum += log(fmax(speed, LEAST));
        fits += speed > 0;
    }
    return fits > 0 ? sum / fits : log(0.5);
}

static void set_speeds(const ClusterProfiles *s, uint32_t class, uint32_t n,
                       float to[BELIEF_SPEEDS]) {
    for (uint32_t l = 0; l < BELIEF_LEVELS; l++)
        to[l] = (float)log(fmax(speed_at(s, class, &belief_levels[l]), LEAST));
    to[BELIEF_LEVELS] = (float)log_beside(s, class, n);
}

Err cluster_sim_attention_open(ClusterSim *w) {
    const Information *info = &w->run->info;
    uint32_t           n = w->setup->n_slots;
    if (info->estimator < ESTIMATOR_ATTENTION) return ERR_OK;
    CHECK(info->beliefs != NULL);
    w->beliefs = arena_try_new(w->arena, BeliefContext, 1);
    if (w->beliefs == NULL) return err_set(ERR_LIMIT, "no memory for beliefs about %u jobs", n);
    TRY(belief_context_init(w->beliefs, info->beliefs, n, w->arena));
    if (!w->estimator->has_profiles) return ERR_OK;
    const HypothesisTable *t = &w->estimator->profiles.table;
    w->class_speeds = arena_try(w->arena, t->n_classes, sizeof *w->class_speeds, 16);
    if (w->class_speeds == NULL) return err_set(ERR_LIMIT, "no memory for beliefs about profiles");
    for (uint32_t k = 0; k < t->n_classes; k++)
        set_speeds(t->profiles, k, t->n, w->class_speeds[k]);
    return ERR_OK;
}

void cluster_sim_attention_arrival(ClusterSim *w, uint32_t slot) {
    const TaskState *l = &w->states[slot];
    if (w->beliefs == NULL) return;
    belief_context_arrive(w->beliefs, slot, &l->traits, (double)w->tasks[slot].job.submit / 1e9);
}

static double geometric(double a, double b) { return sqrt(fmax(a, 1) * fmax(b, 1)); }

static DurationEstimate mean_of(const DurationEstimate *a, const DurationEstimate *b) {
    return (DurationEstimate){.left_s = geometric(a->left_s, b->left_s),
                              .mean_s = geometric(a->mean_s, b->mean_s),
                              .index = sqrt(a->index * b->index),
                              .log_sd = (a->log_sd + b->log_sd) / 2,
                              .low_s = geometric(a->low_s, b->low_s),
                              .high_s = geometric(a->high_s, b->high_s)};
}

static void note_work(ClusterSim *w, uint32_t slot) {
    if (w->states[slot].seen > 0)
        belief_context_work(w->beliefs, slot, (double)w->states[slot].seen / 1e9);
}

DurationEstimate cluster_sim_attention_left(ClusterSim *w, uint32_t slot, const DurationQuery *q,
                                            DurationEstimate by_hand) {
    BeliefOutput x;
    if (w->beliefs == NULL) return by_hand;
    for (uint32_t i = 0; i < w->running.n; i++) note_work(w, w->running.at[w->running.first + i]);
    note_work(w, slot);
    belief_context_ask(w->beliefs, slot, NULL, &x);
    DurationEstimate e = belief_left(&x, q->done_s, q->told_s, q->told_sd);
    return w->run->info.estimator == ESTIMATOR_BOTH ? mean_of(&e, &by_hand) : e;
}

// Jobs that span servers tell of their network, too: they are left out.
void cluster_sim_attention_rate(ClusterSim *w, uint32_t slot, const RateMeasurement *m) {
    if (w->beliefs == NULL || m->n_slices != 1 || !(m->rate > 0)) return;
    const ClusterSlice *s = &m->slices[0];
    const ClusterJob   *j = m->job;
    double              type = rate_gpu_type(m->setup, j, s->server);
    if (s->gpus != j->gpus || j->cores_milli == 0 || j->memory_mib == 0 || !(type > 0)) return;
    double       cores = (double)s->cores_milli / j->cores_milli;
    double       memory = (double)s->memory_mib / j->memory_mib;
    BeliefRecord r = {(float)fmax(cores, LEAST), (float)fmax(memory, LEAST), (float)m->n_corunners,
                      (float)fmax(m->rate / type, LEAST)};
    belief_context_record(w->beliefs, slot, &r);
}

// The class nearest to the believed speeds.
static uint32_t nearest(const ClusterSim *w, const float speeds[BELIEF_SPEEDS]) {
    float    least = INFINITY;
    uint32_t best = 0;
    for (uint32_t k = 0; k < w->estimator->profiles.table.n_classes; k++) {
        float sum = 0;
        for (uint32_t l = 0; l < BELIEF_SPEEDS; l++) {
            float d = w->class_speeds[k][l] - speeds[l];
            sum += d * d;
        }
        if (sum >= least) continue;
        least = sum;
        best = k;
    }
    return best;
}

uint32_t cluster_sim_attention_class(ClusterSim *w, uint32_t slot, const PosteriorQuery *q,
                                     double *log_sd) {
    BeliefOutput x;
    if (w->beliefs == NULL || w->run->info.estimator == ESTIMATOR_BOTH)
        return profile_posterior_class(&w->estimator->profiles, q, log_sd);
    belief_context_ask(w->beliefs, slot,
                       q->class != CLUSTER_NONE ? w->class_speeds[q->class] : NULL, &x);
    *log_sd = 0;
    for (uint32_t l = 0; l < BELIEF_SPEEDS; l++) *log_sd += (double)x.scale[l] / BELIEF_SPEEDS;
    return nearest(w, x.speed);
}

void cluster_sim_attention_end(ClusterSim *w, uint32_t slot) {
    if (w->beliefs == NULL) return;
    belief_context_end(w->beliefs, slot, (double)w->states[slot].seen / 1e9);
}
