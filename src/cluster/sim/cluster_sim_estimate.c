// The estimator in a run: it is told what a live scheduler would observe (measured rates, the end
// of jobs, the progress of running ones), and its estimates become what policies see.
#include <math.h>

#include "base/err.h"
#include "cluster/sim/cluster_sim_int.h"

// Estimates of running tasks are renewed when the work they have done grew by this factor, from
// this much on: durations are spread over orders of magnitude.
static const double renew_factor = 1.25;
static const TimeNs renew_least = 30 * CLUSTER_SECOND;

// Those of waiting tasks, when this many jobs ended; at most so many tasks at a decision.
static const uint64_t renew_ended = 8;
enum { RENEW_WAITING = 16 };

static bool has_profiles(const ClusterSim *w) {
    return w->estimator != NULL && w->estimator->has_profiles;
}

Err cluster_sim_estimate_open(ClusterSim *w) {
    const ClusterRun      *run = w->run;
    const EstimatorParams  params = ESTIMATOR_PARAMS;
    const HypothesisTable *table = run->beliefs != NULL ? run->beliefs->hypotheses : NULL;
    if (run->info.estimator == ESTIMATOR_OFF) return ERR_OK;
    uint32_t n = w->setup->n_slots;
    w->estimator = arena_try_new(w->arena, Estimator, 1);
    w->posteriors = arena_try_new(w->arena, PosteriorRecord, n);
    w->records = arena_try_new(w->arena, DurationRecord, n);
    w->record_of = arena_try_new(w->arena, uint32_t, n);
    w->records_at = -1;
    if (w->estimator == NULL || w->posteriors == NULL || w->records == NULL || w->record_of == NULL)
        return err_set(ERR_LIMIT, "no memory to estimate %u jobs", n);
    TRY(estimator_init(w->estimator, table, &params, w->arena));
    TRY(cluster_sim_attention_open(w));
    return run->experience != NULL ? estimator_load(w->estimator, run->experience) : ERR_OK;
}

Err cluster_sim_estimate_close(const ClusterSim *w) {
    if (w->estimator == NULL || w->run->experience == NULL) return ERR_OK;
    return estimator_save(w->estimator, w->run->experience);
}

static bool shares(const ClusterSim *w) { return w->run->info.estimator >= ESTIMATOR_SHARED; }

static uint32_t named_class(const ClusterSim *w, uint32_t slot) {
    bool known = w->run->info.profiles != PROFILES_UNKNOWN && w->run->class_of != NULL;
    return known ? w->run->class_of[w->states[slot].job] : CLUSTER_NONE;
}

static JobTraits traits_of(const ClusterSim *w, uint32_t slot) {
    const ClusterJob *j = &w->tasks[slot].job;
    uint32_t class = named_class(w, slot);
    JobTraits t = {.gpus = j->gpus};
    if (!shares(w)) return t;
    if (j->tenant != CLUSTER_NONE) t.tenant = estimator_name(w->setup->tenants[j->tenant].name);
    if (class != CLUSTER_NONE) t.name = estimator_name(w->run->profiles->at[class].name);
    return t;
}

static PosteriorQuery query_of(const ClusterSim *w, uint32_t slot) {
    return (PosteriorQuery){w->states[slot].traits, named_class(w, slot), &w->posteriors[slot]};
}

// Records of running tasks, made once per instant and set of them.
static void find_running(ClusterSim *w) {
    if (w->records_at == w->now && w->records_entry == w->entries) return;
    w->records_at = w->now;
    w->records_entry = w->entries;
    w->n_records = shares(w) ? w->running.n : 0;
    for (uint32_t i = 0; i < w->n_records; i++) {
        const TaskState *l = &w->states[w->running.at[w->running.first + i]];
        w->records[i] = duration_record(&l->traits, (double)l->seen / 1e9);
        w->record_of[w->running.at[w->running.first + i]] = i;
    }
}

static void calibration_add(Calibration *c, double miss, double half) {
    c->n++;
    c->square += miss * miss;
    c->covered += fabs(miss) <= half;
}

// What is believed of an arriving job against its true work.
static void note_arrival(ClusterSim *w, const TaskState *l, const DurationEstimate *e) {
    Calibration *c = &w->result->durations;
    double       work_s = (double)l->left / 1e9, miss = log(work_s / e->left_s);
    c->n++;
    c->square += miss * miss;
    c->covered += work_s >= e->low_s && work_s <= e->high_s;
}

TimeNs cluster_sim_estimate_left(ClusterSim *w, uint32_t slot) {
    TaskState   *l = &w->states[slot];
    ClusterTask *t = &w->tasks[slot];
    find_running(w);
    DurationQuery q = {.traits = l->traits,
                       .done_s = (double)l->seen / 1e9,
                       .running = w->records,
                       .n_running = w->n_records,
                       .self = t->state == CLUSTER_RUNNING ? w->record_of[slot] : UINT32_MAX};
    if (w->run->info.durations == DURATIONS_ESTIMATED) {
        q.told_s = (double)l->guess / 1e9;
        q.told_sd = fmax(w->run->error, 1e-3);
    }
    DurationEstimate e = duration_history_left(&w->estimator->durations, &q);
    e = cluster_sim_attention_left(w, slot, &q, e);
    if (t->state == CLUSTER_WAITING && l->estimated_after == 0) note_arrival(w, l, &e);
    l->estimated = l->seen;
    l->estimated_after = w->estimator->durations.total + 1;
    t->spread.index = e.index;
    t->spread.mean_s = e.mean_s;
    t->spread.left_sd = e.log_sd;
    return (TimeNs)(fmin(e.left_s, 1e9) * 1e9) + 1;
}

// Waiting tasks learn from those that ended since: a few at every decision, in turn.
static void estimate_waiting(ClusterSim *w) {
    uint64_t ended = w->estimator->durations.total;
    for (uint32_t i = 0; i < RENEW_WAITING && i < w->waiting.n; i++) {
        w->renew_next = w->renew_next + 1 < w->waiting.n ? w->renew_next + 1 : 0;
        uint32_t slot = w->waiting.at[w->waiting.first + w->renew_next];
        if (ended + 1 < w->states[slot].estimated_after + renew_ended) continue;
        w->tasks[slot].left = w->tasks[slot].owed + cluster_sim_estimate_left(w, slot);
    }
}

void cluster_sim_estimate_running(ClusterSim *w) {
    if (!cluster_sim_estimates_durations(w)) return;
    estimate_waiting(w);
    for (uint32_t i = 0; i < w->running.n; i++) {
        uint32_t         slot = w->running.at[w->running.first + i];
        ClusterTask     *t = &w->tasks[slot];
        const TaskState *l = &w->states[slot];
        TimeNs           did = cluster_progress(t, w->now - t->mark);
        double           seen = (double)(l->seen + (did > t->owed ? did - t->owed : 0));
        if (seen < renew_factor * (double)l->estimated + (double)renew_least) continue;
        cluster_sim_book_view(w, slot);
        if (l->estimated < l->seen) t->left = t->owed + cluster_sim_estimate_left(w, slot);
    }
}

void cluster_sim_estimate_arrival(ClusterSim *w, uint32_t slot) {
    ClusterTask *t = &w->tasks[slot];
    if (w->estimator == NULL) return;
    w->posteriors[slot] = (PosteriorRecord){.n = 0};
    w->states[slot].traits = traits_of(w, slot);
    cluster_sim_attention_arrival(w, slot);
    if (has_profiles(w) && t->job.class != CLUSTER_NONE) {
        PosteriorQuery q = query_of(w, slot);
        t->job.class = cluster_sim_attention_class(w, slot, &q, &t->spread.rate_sd);
    }
    if (cluster_sim_estimates_durations(w)) t->left = cluster_sim_estimate_left(w, slot);
}

bool cluster_sim_estimates_durations(const ClusterSim *w) {
    return w->estimator != NULL && w->run->knows == CLUSTER_PREDICTED;
}

static bool on_gpu(const ClusterTask *t, uint32_t server, uint64_t gpu) {
    for (uint32_t k = 0; k < t->n_slices; k++)
        if (t->slices[k].server == server) return (t->slices[k].mask & gpu) != 0;
    return false;
}

static uint32_t classes_beside(const ClusterSim *w, uint32_t slot, uint32_t server, uint64_t gpu,
                               uint32_t *out) {
    const ServerState *v = &w->servers[server];
    uint32_t           n = 0;
    for (uint32_t i = 0; i < v->n_residents && n < CLUSTER_GPUS; i++) {
        const ClusterTask *t = &w->tasks[v->residents[i]];
        if (v->residents[i] == slot || t->job.class == CLUSTER_NONE) continue;
        if (on_gpu(t, server, gpu)) out[n++] = t->job.class;
    }
    return n;
}

// Believed classes on the most crowded of its GPUs.
static uint32_t corunners(const ClusterSim *w, uint32_t slot, uint32_t *out) {
    const ClusterTask *t = &w->tasks[slot];
    uint32_t           most = 0, here[CLUSTER_GPUS];
    for (uint32_t i = 0; i < t->n_slices; i++)
        for (uint64_t m = t->slices[i].mask; m != 0; m &= m - 1) {
            uint32_t n = classes_beside(w, slot, t->slices[i].server, m & -m, here);
            for (uint32_t k = 0; n > most && k < n; k++) out[k] = here[k];
            if (n > most) most = n;
        }
    return most;
}

// All jobs of a name share their measurements, so one class holds for all of them.
static bool spread_belief(ClusterSim *w, uint32_t slot, uint32_t class, double log_sd) {
    const SlotQueue *queues[] = {&w->waiting, &w->running};
    const JobTraits *like = &w->states[slot].traits;
    bool             changed = false;
    for (uint32_t l = 0; l < 2; l++)
        for (uint32_t i = 0; i < queues[l]->n; i++) {
            uint32_t     other = queues[l]->at[queues[l]->first + i];
            ClusterTask *t = &w->tasks[other];
            bool         named = like->name != 0 && w->states[other].traits.name == like->name;
            if ((other != slot && !named) || w->states[other].guarded) continue;
            t->spread.rate_sd = log_sd;
            if (t->job.class == CLUSTER_NONE || t->job.class == class) continue;
            t->job.class = class;
            changed = true;
        }
    return changed;
}

bool cluster_sim_estimate_rate(ClusterSim *w, uint32_t slot) {
    const ClusterTask *t = &w->tasks[slot];
    uint32_t           beside[CLUSTER_GPUS];
    if (!has_profiles(w) || t->job.class == CLUSTER_NONE || t->job.gpus == 0) return false;
    RateMeasurement m = {.setup = w->setup,
                         .job = &t->job,
                         .slices = t->slices,
                         .n_slices = t->n_slices,
                         .corunners = beside,
                         .rate = t->measured};
    m.n_corunners = corunners(w, slot, beside);
    PosteriorQuery q = query_of(w, slot);
    RateBelief     before = profile_posterior_rate(&w->estimator->profiles, &q, &m);
    calibration_add(&w->result->rates, log(m.rate / before.rate), 1.645 * before.log_sd);
    if (!profile_posterior_measured(&w->estimator->profiles, &q, &m, &w->posteriors[slot]))
        return false;
    double log_sd = 0;
    cluster_sim_attention_rate(w, slot, &m);
    uint32_t class = cluster_sim_attention_class(w, slot, &q, &log_sd);
    return spread_belief(w, slot, class, log_sd);
}

void cluster_sim_estimate_end(ClusterSim *w, uint32_t slot) {
    if (w->estimator == NULL) return;
    const TaskState *l = &w->states[slot];
    cluster_sim_book_view(w, slot);
    w->records_at = -1;
    if (!shares(w)) return;
    duration_history_end(&w->estimator->durations, &l->traits, (double)l->seen / 1e9);
    cluster_sim_attention_end(w, slot);
    if (!has_profiles(w)) return;
    PosteriorQuery q = query_of(w, slot);
    profile_posterior_ended(&w->estimator->profiles, &q);
}
