#include "cluster/cluster_scenario.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "cluster/profile/class_assignment.h"

static const char synth_mark[] = "synth:";

enum {
    USUAL_SERVERS = 8,
    USUAL_GPUS = 8,
    ASKED_CORES_MILLI = 12000,
    ASKED_MIB = 96 * 1024,
    CLUSTER_SCENARIO_MOST = 20000
};

static void set_racks(ServerList *l) {
    for (uint32_t i = 0; i < l->n; i++) l->at[i].rack = i / CLUSTER_SCENARIO_RACK;
    l->racks = (l->n + CLUSTER_SCENARIO_RACK - 1) / CLUSTER_SCENARIO_RACK;
}

// Traces with stated demands get servers like Alibaba's, others like Synergy's.
static Err open_servers(const ClusterScenarioSpec *spec, bool has_demands, Arena *a,
                        ClusterScenario *s) {
    ServerSpec  like = spec->like;
    int64_t     n = USUAL_SERVERS;
    const char *what = spec->servers;
    if (like.gpus == 0) like.gpus = USUAL_GPUS;
    if (has_demands && like.cores_milli == 0) like.cores_milli = like.gpus * ASKED_CORES_MILLI;
    if (has_demands && like.memory_mib == 0) like.memory_mib = like.gpus * ASKED_MIB;
    if (what == NULL || what[strspn(what, "0123456789")] == '\0') {
        if (what != NULL && decimal_read(what, 1, SERVERS_MAX, &n) != DECIMAL_OK)
            return err_set(ERR_ARG, "'%.40s' servers; give 1 to %d, or a file", what, SERVERS_MAX);
        TRY(server_list_equal((uint32_t)n, &like, a, &s->servers));
        set_racks(&s->servers);
    } else {
        TRY(server_list_read(what, a, &s->servers));
    }
    for (uint32_t i = 0; i < s->servers.n; i++) {
        const ServerSpec *x = &s->servers.at[i];
        s->cores_milli += x->cores_milli;
        s->memory_mib += x->memory_mib;
        s->typed = s->typed || x->gpu_type[0] != '\0';
    }
    if (s->servers.gpus == 0) return err_set(ERR_ARG, "the cluster has no GPUs; give it some");
    return ERR_OK;
}

static Err set_share(ClusterProfiles *p, const ServerList *l) {
    double cores = 0, gb = 0, gpus = l->gpus > 0 ? (double)l->gpus : 1;
    for (uint32_t i = 0; i < l->n; i++) {
        cores += l->at[i].cores_milli / 1000.0;
        gb += l->at[i].memory_mib / 1024.0;
    }
    return profile_set_share(p, cores / gpus, gb / gpus, &ALLOC_LEVEL_PARAMS);
}

Err cluster_scenario_profiles(const char *files, bool alone, const ServerList *l, Arena *a,
                              ClusterProfiles **out) {
    const ProfileOptions o = {.fold = !alone};
    *out = NULL;
    if (files != NULL && strcmp(files, "none") == 0) return ERR_OK;
    ClusterProfiles *p = arena_new(a, ClusterProfiles, 1);
    TRY(alone ? profile_empty(a, p) : profile_load(NULL, a, p));
    for (size_t n = 0; files != NULL && *files != '\0'; files += n + (files[n] == ',')) {
        n = strcspn(files, ",");
        const char *path = arena_printf(a, "%.*s", (int)n, files);
        if (n > 0 && strcmp(path, "default") != 0) TRY(profile_add(p, path, &o, a));
    }
    TRY(set_share(p, l));
    *out = p;
    return ERR_OK;
}

typedef struct Gang {  // a job's demand as the simulator counts it
    uint32_t gpus, types;
    uint64_t cores_milli, memory_mib;
} Gang;

static Gang gang_of(const ClusterScenario *s, const Job *j) {
    uint64_t milli = (uint64_t)j->gpus * j->gpu_milli, all = s->servers.gpus * 1000;
    Gang     g = {j->gpus, s->typed ? j->gpu_types : 0, j->cores_milli, j->memory_mib};
    if (g.cores_milli == 0) g.cores_milli = s->cores_milli * milli / all;
    if (g.memory_mib == 0) g.memory_mib = s->memory_mib * milli / all;
    return g;
}

static bool suits(const JobList *l, const Gang *g, const ServerSpec *x) {
    if (g->types == 0 || g->gpus == 0) return true;
    for (uint32_t t = 0; t < l->n_gpu_types; t++)
        if ((g->types >> t & 1) != 0 && strcmp(l->gpu_types[t], x->gpu_type) == 0) return true;
    return false;
}

static bool holds(const ServerSpec *x, const Gang *g, uint32_t gpus) {
    uint64_t all = g->gpus > 0 ? g->gpus : 1, here = g->gpus > 0 ? gpus : 1;
    return x->cores_milli >= g->cores_milli * here / all &&
           x->memory_mib >= g->memory_mib * here / all;
}

// On empty servers: on one if any is large enough, else on whole ones.
static bool fits(const ClusterScenario *s, const JobList *l, const Job *j) {
    Gang     g = gang_of(s, j);
    uint64_t wide = 0;
    uint32_t most = 0;
    bool     one = false;
    for (uint32_t i = 0; i < s->servers.n && !one; i++) {
        const ServerSpec *x = &s->servers.at[i];
        if (!suits(l, &g, x)) continue;
        if (x->gpus > most) most = x->gpus;
        uint32_t here = x->gpus < g.gpus ? x->gpus : g.gpus;
        if (!holds(x, &g, here)) continue;
        one = x->gpus >= g.gpus;
        wide += here;
    }
    return one || (g.gpus > most && wide >= g.gpus);
}

// Drops jobs that do not fit the scenario; without typed servers GPU types are ignored.
static void drop_unfit(const ClusterScenario *s, JobList *l, uint32_t *long_ones,
                       uint32_t *too_large) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        Job *j = &l->at[i];
        bool longer =
            s->max_s > 0 && j->work / JOB_SECOND >= s->max_s && j->work > s->max_s * JOB_SECOND;
        uint32_t limit = tenant_shares_limit(s->tenants, job_tenant(l, j));
        bool     room = longer || (fits(s, l, j) && (limit == 0 || j->gpus <= limit));
        *long_ones += longer;
        *too_large += !room;
        if (j->work < 1 || longer || !room) continue;
        if (!s->typed) j->gpu_types = 0;
        l->at[n++] = *j;
    }
    l->n = n;
}

static Err none_left(const char *trace, uint32_t longer, uint32_t large) {
    return err_set(ERR_ARG, "%s: no job is left: %u are too long, %u too large for these servers%s",
                   trace, longer, large,
                   longer + large > 0 ? "; give more servers or a longer --max-duration"
                                      : ", and no other has a duration; --rates may tell it");
}

static uint32_t split_at(const JobList *l) {
    TimeNs   first = l->at[0].submit, last = l->at[l->n - 1].submit;
    TimeNs   at = first + (last - first) / 5 * 3;
    uint32_t i = 0;
    if (first == last) return l->n / 5 * 3;
    while (i < l->n && l->at[i].submit < at) i++;
    return i;
}

static bool any_demand(const JobList *l) {
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].cores_milli > 0) return true;
    return false;
}

static Err read_trace(const ClusterScenarioSpec *spec, Arena *a, ClusterScenario *s,
                      bool *has_demands) {
    if (strncmp(spec->trace, synth_mark, strlen(synth_mark)) == 0) {
        s->made = true;
        TRY(synth_load(spec->trace + strlen(synth_mark), a, &s->synth));
        *has_demands = s->synth.asks > 0;
        return ERR_OK;
    }
    const char *format = spec->format != NULL ? spec->format : "auto";
    TRY(trace_read(spec->trace, format, &spec->options, a, &s->jobs));
    *has_demands = any_demand(&s->jobs);
    return ERR_OK;
}

static Err fit_trace(ClusterScenario *s) {
    if (s->made) {
        if (s->n_jobs > 0) s->synth.jobs = s->n_jobs;
        if (s->load > 0) s->synth.load = s->load;
        s->synth.gpus = s->servers.gpus < INT32_MAX ? (int)s->servers.gpus : INT32_MAX;
        return ERR_OK;
    }
    drop_unfit(s, &s->jobs, &s->long_ones, &s->too_large);
    if (s->jobs.n == 0) return none_left(s->trace, s->long_ones, s->too_large);
    s->split = split_at(&s->jobs);
    return ERR_OK;
}

Err cluster_scenario_open(const ClusterScenarioSpec *spec, Arena *a, ClusterScenario *out) {
    ClusterScenario s = {.trace = arena_str(a, spec->trace),
                         .mix = spec->mix != NULL ? arena_str(a, spec->mix) : NULL,
                         .n_jobs = spec->jobs,
                         .load = spec->load,
                         .max_s = spec->max_s,
                         .information = spec->information,
                         .stops = spec->stops,
                         .elastic = spec->options.elastic,
                         .tenants = spec->tenants};
    bool            has_demands = false;
    TRY(read_trace(spec, a, &s, &has_demands));
    TRY(open_servers(spec, has_demands, a, &s));
    if (s.n_jobs == CLUSTER_SCENARIO_JOBS)
        s.n_jobs = s.servers.n < CLUSTER_SCENARIO_MOST / CLUSTER_SCENARIO_JOBS_PER_SERVER
                       ? s.servers.n * CLUSTER_SCENARIO_JOBS_PER_SERVER
                       : CLUSTER_SCENARIO_MOST;
    TRY(cluster_scenario_profiles(spec->profiles, false, &s.servers, a, &s.profiles));
    TRY(fit_trace(&s));
    *out = s;
    return ERR_OK;
}

// In a short part a window is half of it, so that seeds still differ.
static void window(const ClusterScenario *s, uint64_t seed, Rng rng, uint32_t *first, uint32_t *n) {
    bool     measure = seed >= CLUSTER_SCENARIO_MEASURE && seed < CLUSTER_SCENARIO_TRAIN;
    uint32_t from = measure ? s->split : 0, to = measure ? s->jobs.n : s->split;
    *first = 0;
    *n = s->jobs.n;
    if (s->n_jobs == 0 || from == to) return;
    *n = s->n_jobs <= (to - from) / 2 ? s->n_jobs : (to - from + 1) / 2;
    *first = from + (uint32_t)rng_below(&rng, (uint64_t)(to - from - *n) + 1);
}

static Err cut(const ClusterScenario *s, uint64_t seed, Rng rng, Arena *a, ClusterScenarioDraw *d) {
    uint32_t first, n;
    window(s, seed, rng, &first, &n);
    d->jobs = s->jobs;
    d->jobs.n = n;
    d->jobs.at = arena_try_new(a, Job, n);
    if (d->jobs.at == NULL) return err_set(ERR_LIMIT, "%s: no memory for %u jobs", s->trace, n);
    memcpy(d->jobs.at, s->jobs.at + first, n * sizeof *d->jobs.at);
    d->long_ones = s->long_ones;
    d->too_large = s->too_large;
    return ERR_OK;
}

static Err make(const ClusterScenario *s, Rng rng, Arena *a, ClusterScenarioDraw *d) {
    TRY(synth_make(&s->synth, rng, a, &d->jobs));
    d->jobs.name = s->trace;
    job_list_make_elastic(&d->jobs, &s->elastic);
    drop_unfit(s, &d->jobs, &d->long_ones, &d->too_large);
    if (d->jobs.n == 0) return none_left(s->trace, d->long_ones, d->too_large);
    return ERR_OK;
}

double cluster_scenario_load(const JobList *l, uint64_t gpus) {
    double asked = 0, span = 0;
    for (uint32_t i = 0; i < l->n; i++) asked += job_gpu_seconds(&l->at[i]);
    if (l->n > 0) span = (double)(l->at[l->n - 1].submit - l->at[0].submit) / (double)JOB_SECOND;
    return span > 0 && gpus > 0 ? asked / (span * (double)gpus) : 0;
}

// Scales submission times to the load, in whole milliseconds; the order stays.
static void scale_times(const ClusterScenario *s, JobList *l) {
    const TimeNs ms = JOB_SECOND / 1000;
    double       has = cluster_scenario_load(l, s->servers.gpus);
    double       by = s->load > 0 && has > 0 ? has / s->load : 1;
    TimeNs       first = l->at[0].submit;
    l->origin = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        TimeNs since = l->at[i].submit - first;
        double later = fmin((double)since * by, (double)JOB_TIME_MAX);
        l->at[i].submit = by == 1 ? since : (TimeNs)round(later / (double)ms) * ms;
    }
}

Err cluster_scenario_beliefs(const Information *x, const ClusterProfiles *library,
                             const uint32_t *class_of, uint32_t n_jobs, uint64_t seed, Arena *a,
                             const ClusterProfiles **truth, const InformationBeliefs **beliefs) {
    *truth = library;
    *beliefs = NULL;
    if (x->profiles == PROFILES_EXACT) return ERR_OK;
    ClusterProfiles    *drawn = arena_try_new(a, ClusterProfiles, 1);
    InformationBeliefs *b = arena_try_new(a, InformationBeliefs, 1);
    if (drawn == NULL || b == NULL) return err_set(ERR_LIMIT, "no memory for profiles");
    TRY(information_truth(x, library, rng_fork((Rng){seed}, 3), a, drawn));
    TRY(information_beliefs(x, library, class_of, n_jobs, a, b));
    *truth = drawn;
    *beliefs = b;
    return ERR_OK;
}

Err cluster_scenario_draw(const ClusterScenario *s, uint64_t seed, Arena *a,
                          ClusterScenarioDraw *out) {
    ClusterScenarioDraw d = {0};
    Rng                 rng = {seed};
    if (s->made)
        TRY(make(s, rng_fork(rng, 1), a, &d));
    else
        TRY(cut(s, seed, rng_fork(rng, 1), a, &d));
    scale_times(s, &d.jobs);
    if (s->profiles != NULL) {
        ClassAssignment x;
        TRY(class_assignment_draw(s->profiles, &d.jobs, s->mix, rng_fork(rng, 2), a, &x));
        d.class_of = x.class_of;
        TRY(cluster_scenario_beliefs(&s->information, s->profiles, d.class_of, d.jobs.n, seed, a,
                                     &d.truth, &d.beliefs));
    }
    *out = d;
    return ERR_OK;
}
