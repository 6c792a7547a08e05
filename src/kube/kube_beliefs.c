#include "kube/kube_beliefs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cluster/profile/profiles.h"
#include "contract/rate.h"

// As in the simulator: estimates of running jobs are renewed when their work grew by this factor,
// from this much on; those of waiting ones when so many jobs ended, some at each update.
static const double renew_factor = 1.25, renew_least_s = 30;

enum { RENEW_ENDED = 8, RENEW_WAITING = 16 };

static const AllocLevelParams whole_gpus = {0.9, 0.05, 2};  // no level shares a GPU

Err kube_beliefs_init(KubeBeliefs *b, const KubeBeliefOptions *o, Arena *a) {
    const EstimatorParams params = ESTIMATOR_PARAMS;
    *b = (KubeBeliefs){.kind = o->kind, .knows = o->knows, .experience = o->experience};
    if (o->kind > ESTIMATOR_SHARED)
        return err_set(ERR_ARG, "--estimator: a live cluster has off, own and shared");
    TRY(profile_load(o->profiles, a, &b->library));
    TRY(information_hypotheses(&b->library, a, &b->profiles, &b->table));
    ClusterProfiles *p = &b->profiles;
    TRY(profile_set_share(p, p->share_cores, p->share_gb, &whole_gpus));
    if (o->kind != ESTIMATOR_OFF) {
        TRY(estimator_init(&b->estimator, &b->table, &params, a));
        if (o->experience != NULL) TRY(estimator_load(&b->estimator, o->experience));
    }
    memset(p->pair, 0, sizeof *p->pair * PROFILE_CLASSES * PROFILE_CLASSES);
    return ERR_OK;
}

void kube_beliefs_finish(KubeBeliefs *b) { free(b->running); }

Err kube_beliefs_save(const KubeBeliefs *b) {
    if (b->kind == ESTIMATOR_OFF || b->experience == NULL) return ERR_OK;
    return estimator_save(&b->estimator, b->experience);
}

static bool shares(const KubeBeliefs *b) { return b->kind >= ESTIMATOR_SHARED; }

static bool estimates(const KubeBeliefs *b) {
    return b->kind != ESTIMATOR_OFF && b->knows == CLUSTER_PREDICTED;
}

static const char *model_of(const KubeJob *j) {
    for (uint32_t i = 0; i < j->n; i++) {
        const char *m = kube_pod_info(j->members[i].pod)->model;
        if (m != NULL && m[0] != '\0') return m;
    }
    return "";
}

static PosteriorQuery query_of(const KubeJob *j) {
    uint32_t class = j->named != CLUSTER_NONE ? j->named : PROFILE_NONE;
    return (PosteriorQuery){j->traits, class, &j->posterior};
}

// The class that policies are told.
static uint32_t class_of(const KubeBeliefs *b, const KubeJob *j, const ClusterJob *as,
                         double *log_sd) {
    if (!j->fungible || as->gpus == 0) return CLUSTER_NONE;
    if (b->kind == ESTIMATOR_OFF)
        return j->named != CLUSTER_NONE ? j->named : b->table.n_classes - 1;
    PosteriorQuery q = query_of(j);
    return profile_posterior_class(&b->estimator.profiles, &q, log_sd);
}

static void estimate_left(KubeBeliefs *b, KubeJob *j, ClusterTask *t, uint32_t self) {
    DurationQuery    q = {.traits = j->traits,
                          .done_s = j->work_s,
                          .running = b->running,
                          .n_running = b->n_running,
                          .self = self};
    DurationEstimate e = duration_history_left(&b->estimator.durations, &q);
    j->estimated_s = j->work_s;
    j->estimated_after = b->estimator.durations.total + 1;
    t->spread.index = e.index;
    t->spread.mean_s = e.mean_s;
    t->spread.left_sd = e.log_sd;
    t->left = t->owed + (TimeNs)(fmin(e.left_s, 1e9) * 1e9) + 1;
}

static void first_belief(KubeBeliefs *b, KubeJobs *x, KubeJob *j, ClusterTask *t) {
    const char *model = model_of(j);
    uint32_t    known = model[0] != '\0' ? profile_known(&b->library, model) : PROFILE_NONE;
    j->named = known == PROFILE_NONE ? CLUSTER_NONE : known;
    j->traits = (JobTraits){.gpus = t->job.gpus};
    if (shares(b)) {
        if (t->job.tenant != CLUSTER_NONE)
            j->traits.tenant = estimator_name(x->tenants[t->job.tenant]);
        j->traits.name = estimator_name(model);
    }
    t->job.class = class_of(b, j, &t->job, &t->spread.rate_sd);
    j->believed = true;
    if (estimates(b)) estimate_left(b, j, t, UINT32_MAX);
}

// Records of running jobs, for the estimates of this update.
static void find_running(KubeBeliefs *b, const KubeJobs *x) {
    b->n_running = 0;
    if (!shares(b)) return;
    if (b->running_room < x->n_running) {
        DurationRecord *more = realloc(b->running, x->n_running * sizeof *more);
        if (more == NULL) return;  // estimates without them are still estimates
        b->running = more;
        b->running_room = x->n_running;
    }
    for (uint32_t i = 0; i < x->n_running; i++) {
        const KubeJob *j = x->at[x->running[i]];
        b->running[b->n_running++] = duration_record(&j->traits, j->work_s);
    }
}

static KubeUnitRate *unit_rate(KubeBeliefs *b, const KubeJob *j, const ClusterTask *t) {
    uint64_t key = hash_fnv_add(hash_fnv_add(HASH_FNV_START, j->traits.name), t->job.gpus) | 1;
    if (j->traits.name == 0) return NULL;
    for (uint32_t i = 0; i < KUBE_UNIT_RATES; i++) {
        KubeUnitRate *r = &b->rates[(key + i) % KUBE_UNIT_RATES];
        if (r->key == key) return r;
        if (r->key != 0) continue;
        r->key = key;
        return r;
    }
    return NULL;
}

typedef struct ProgressReport {
    double rate;  // iterations per second of the whole gang
    TimeNs at;
    double progress;
} ProgressReport;

// The newest report of the job's pods: a gang reports by any of them.
static ProgressReport report_of(const KubeJob *j, TimeNs now) {
    ProgressReport r = {.at = 0};
    for (uint32_t i = 0; i < j->n; i++) {
        const KubePodInfo *p = kube_pod_info(j->members[i].pod);
        if (!(p->progress_rate > 0)) continue;
        TimeNs at = p->progress_at;
        if (at == 0 && p->progress != j->reported) at = now;  // a report without its time is new
        if (at > r.at) r = (ProgressReport){p->progress_rate, at, p->progress};
    }
    return r;
}

// All jobs of a name share their measurements, so one class holds for all of them.
static void spread_class(KubeBeliefs *b, KubeJobs *x, const KubeJob *from, uint32_t class,
                         double log_sd) {
    for (uint32_t i = 0; i < x->n_slots; i++) {
        KubeJob     *j = x->at[i];
        ClusterTask *t = &x->tasks[i];
        if (j == NULL || !j->believed || t->job.class == CLUSTER_NONE) continue;
        bool named = from->traits.name != 0 && j->traits.name == from->traits.name;
        if (j != from && !named) continue;
        t->spread.rate_sd = log_sd;
        if (t->job.class == class) continue;
        t->job.class = class;
        x->reason |= CLUSTER_BELIEF;
    }
    (void)b;
}

static void learn_rate(KubeBeliefs *b, KubeJobs *x, KubeJob *j, const ClusterSetup *s) {
    const ClusterTask *t = &x->tasks[j->slot];
    RateMeasurement    m = {.setup = s,
                            .job = &t->job,
                            .slices = t->slices,
                            .n_slices = t->n_slices,
                            .rate = t->measured};
    if (b->kind == ESTIMATOR_OFF || t->job.class == CLUSTER_NONE || t->job.gpus == 0) return;
    PosteriorQuery q = query_of(j);
    double         log_sd = 0;
    if (!profile_posterior_measured(&b->estimator.profiles, &q, &m, &j->posterior)) return;
    uint32_t class = class_of(b, j, &t->job, &log_sd);
    spread_class(b, x, j, class, log_sd);
}

// A report newer than the last change of its amounts. The first one says what rate 1 is.
static void read_report(KubeBeliefs *b, KubeJobs *x, KubeJob *j, const ClusterSetup *s) {
    ClusterTask   *t = &x->tasks[j->slot];
    ProgressReport r = report_of(j, x->now);
    TimeNs         since = t->since > j->resized_at ? t->since : j->resized_at;
    if (r.at <= j->reported_at || r.at < since) return;
    KubeUnitRate *shared = unit_rate(b, j, t);
    bool          first = j->unit_rate <= 0;
    j->reported_at = r.at;
    j->reported = r.progress;
    b->reports++;
    if (first && shared != NULL && shared->per_s > 0) j->unit_rate = shared->per_s;
    if (j->unit_rate <= 0) j->unit_rate = r.rate / (t->rate > 0 ? t->rate : 1);
    if (shared != NULL && shared->per_s <= 0) shared->per_s = j->unit_rate;
    t->measured = r.rate / j->unit_rate;
    t->measured_at = r.at;
    t->rate = t->measured;
    learn_rate(b, x, j, s);
}

static void update_running(KubeBeliefs *b, KubeJobs *x, const ClusterSetup *s) {
    for (uint32_t i = 0; i < x->n_running; i++) {
        KubeJob     *j = x->at[x->running[i]];
        ClusterTask *t = &x->tasks[x->running[i]];
        if (!j->believed) first_belief(b, x, j, t);
        if (!(t->measured > 0)) t->rate = rate_alone(s, &t->job, t->slices, t->n_slices);
        read_report(b, x, j, s);
        if (!estimates(b)) continue;
        bool grown = j->work_s >= renew_factor * j->estimated_s + renew_least_s;
        if (grown || t->left <= t->owed) estimate_left(b, j, t, b->n_running > i ? i : UINT32_MAX);
    }
}

static void update_waiting(KubeBeliefs *b, KubeJobs *x) {
    for (uint32_t i = 0; i < x->n_waiting; i++)
        if (!x->at[x->waiting[i]]->believed)
            first_belief(b, x, x->at[x->waiting[i]], &x->tasks[x->waiting[i]]);
    if (!estimates(b)) return;
    uint64_t ended = b->estimator.durations.total;
    for (uint32_t i = 0; i < RENEW_WAITING && i < x->n_waiting; i++) {
        b->renew_next = b->renew_next + 1 < x->n_waiting ? b->renew_next + 1 : 0;
        KubeJob *j = x->at[x->waiting[b->renew_next]];
        if (ended + 1 < j->estimated_after + RENEW_ENDED) continue;
        estimate_left(b, j, &x->tasks[j->slot], UINT32_MAX);
    }
}

void kube_beliefs_update(KubeBeliefs *b, KubeJobs *x, const ClusterSetup *s) {
    find_running(b, x);
    update_running(b, x, s);
    update_waiting(b, x);
}

void kube_beliefs_ended(KubeBeliefs *b, const KubeJob *j) {
    if (b->kind == ESTIMATOR_OFF || !shares(b) || j->succeeded == 0 || !(j->work_s > 0)) return;
    PosteriorQuery q = query_of(j);
    duration_history_end(&b->estimator.durations, &j->traits, j->work_s);
    profile_posterior_ended(&b->estimator.profiles, &q);
    b->ended++;
}
