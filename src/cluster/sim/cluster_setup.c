// ClusterSetup of a run, and the rules of published simulators.
#include <string.h>

#include "cluster/profile/profiles.h"
#include "cluster/sim/cluster_run.h"

enum { MIN_RUN_S = 300, MAX_STOPS = 4 };  // of our own rules

static bool is_plain(const Job *j) {
    return j->gpus > 0 && j->gpu_milli == CLUSTER_WHOLE_GPU && j->gpu_types == 0 &&
           j->servers == NULL && j->gpus_max == 0 && j->cores_milli == 0 && j->memory_mib == 0 &&
           j->submit % CLUSTER_SECOND == 0 && j->work % CLUSTER_SECOND == 0;
}

const char *cluster_like(const JobList *jobs, const ClusterPolicy *p, bool profiles) {
    if (profiles) {
        bool own_trace =
            strcmp(jobs->format, "synergy") == 0 && strncmp(p->name, "synergy", 7) == 0;
        return own_trace ? "synergy" : "own";
    }
    for (uint32_t i = 0; i < jobs->n; i++)
        if (!is_plain(&jobs->at[i])) return "own";
    return "lucid";
}

static Err muri_params(const ClusterPolicy *p, ClusterSimParams *out) {
    static const char *const names[] = {"srtf", "srsf", "tiresias"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(p->name, names[i]) == 0) {
            *out = (ClusterSimParams){.gpus_only = true, .anew = true};
            return ERR_OK;
        }
    return err_set(ERR_ARG,
                   "--like muri: %s has no rules there; choose srtf (its shortest), srsf "
                   "(shortest-gpu) or tiresias (dlas-gpu)",
                   p->name);
}

Err cluster_sim_params(const char *like, const ClusterPolicy *p, ClusterSimParams *out) {
    const TimeNs s = CLUSTER_SECOND;
    if (strcmp(like, "own") == 0) {
        *out = (ClusterSimParams){.restart = 40 * s,
                                  .restart_wide = 60 * s,
                                  .restart_by_class = true,
                                  .stops = {MIN_RUN_S * s, MAX_STOPS}};
    } else if (strcmp(like, "lucid") == 0) {
        *out = (ClusterSimParams){.clock = s,
                                  .linger = p->preempts ? s : 0,
                                  .restart = 40 * s,
                                  .restart_wide = 60 * s,
                                  .gpus_only = true};
    } else if (strcmp(like, "synergy") == 0) {
        *out = (ClusterSimParams){.round = 300 * s, .in_rounds = true};
    } else if (strcmp(like, "muri") == 0) {
        return muri_params(p, out);
    } else {
        return err_set(ERR_ARG, "--like %.40s: choose auto, own, lucid, synergy or muri", like);
    }
    return ERR_OK;
}

void cluster_stop_options(const StopOptions *o, ClusterSimParams *to) {
    if (o != NULL && o->min_run_s >= 0) to->stops.min_run = o->min_run_s * CLUSTER_SECOND;
    if (o != NULL && o->max_stops >= 0) to->stops.max_stops = (uint32_t)o->max_stops;
}

static uint32_t type_of(const JobList *l, const char *name, const char **types, uint32_t *n) {
    for (uint32_t t = 0; t < l->n_gpu_types; t++)
        if (strcmp(l->gpu_types[t], name) == 0) return t;
    for (uint32_t t = l->n_gpu_types; t < *n; t++)
        if (strcmp(types[t], name) == 0) return t;
    if (*n < JOB_TYPES) types[(*n)++] = name;
    return *n - 1;
}

// GPU types named by jobs keep the jobs' numbers; types that only servers name follow.
static Err set_servers(const ClusterRun *run, ClusterServer *to, const char **types,
                       ClusterSetup *s) {
    s->n_types = run->jobs->n_gpu_types;
    for (uint32_t i = 0; i < s->n_servers; i++) {
        const ServerSpec *x = &run->servers->at[i];
        if (x->gpus > CLUSTER_GPUS)
            return err_set(ERR_LIMIT, "server %s: %u GPUs; the limit is %d", x->name, x->gpus,
                           CLUSTER_GPUS);
        to[i] = (ClusterServer){.name = x->name,
                                .gpus = x->gpus,
                                .cores_milli = x->cores_milli,
                                .memory_mib = x->memory_mib,
                                .rack = x->rack,
                                .type = type_of(run->jobs, x->gpu_type, types, &s->n_types)};
        s->gpus += x->gpus;
        s->cores_milli += x->cores_milli;
        s->memory_mib += x->memory_mib;
        if (x->gpus > s->most_gpus) s->most_gpus = x->gpus;
    }
    s->servers = to;
    return ERR_OK;
}

static void set_types(const ClusterRun *run, const char **types, uint32_t *to, ClusterSetup *s) {
    for (uint32_t t = 0; t < s->n_types; t++) {
        const char *name = t < run->jobs->n_gpu_types ? run->jobs->gpu_types[t] : types[t];
        to[t] =
            s->profiles != NULL && name[0] != '\0' ? profile_type(s->profiles, name) : PROFILE_NONE;
    }
    s->profile_type = to;
}

static bool fractions(const JobList *l) {
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].gpus > 0 && l->at[i].gpu_milli < CLUSTER_WHOLE_GPU) return true;
    return false;
}

static bool no_gpus(const JobList *l) {
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].gpus == 0) return true;
    return false;
}

static bool elastic(const JobList *l) {
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].gpus_max > 0) return true;
    return false;
}

// Synergy's rounds begin at 1 s if all jobs have arrived by then.
static TimeNs first_round(const ClusterRun *run) {
    TimeNs last = run->jobs->n > 0 ? run->jobs->at[run->jobs->n - 1].submit : 0;
    return run->params.in_rounds && last <= CLUSTER_SECOND ? CLUSTER_SECOND : 0;
}

Err cluster_setup(const ClusterRun *run, Arena *a, ClusterSetup *out) {
    ClusterSetup   s = {.n_servers = run->servers->n,
                        .n_racks = run->servers->racks,
                        .n_tenants = run->jobs->n_tenants,
                        .n_slots = run->jobs->n,
                        .profiles = run->beliefs != NULL ? run->beliefs->profiles : run->profiles,
                        .round = run->params.round,
                        .round_first = first_round(run),
                        .in_rounds = run->params.in_rounds,
                        .anew = run->params.anew,
                        .restart = run->params.restart,
                        .restart_wide = run->params.restart_wide,
                        .restart_by_class = run->params.restart_by_class,
                        .stops = run->params.stops,
                        .gpus_only = run->params.gpus_only,
                        .fractions = fractions(run->jobs),
                        .no_gpus = no_gpus(run->jobs),
                        .elastic = elastic(run->jobs)};
    const char    *types[JOB_TYPES];
    ClusterServer *servers = arena_try_new(a, ClusterServer, s.n_servers);
    ClusterTenant *tenants = arena_try_new(a, ClusterTenant, s.n_tenants);
    uint32_t      *known = arena_try_new(a, uint32_t, JOB_TYPES);
    s.shares = s.fractions || (s.profiles != NULL && !s.in_rounds);
    if (servers == NULL || tenants == NULL || known == NULL)
        return err_set(ERR_LIMIT, "no memory for %u servers and %u tenants", s.n_servers,
                       s.n_tenants);
    TRY(set_servers(run, servers, types, &s));
    set_types(run, types, known, &s);
    if (s.gpus == 0) return err_set(ERR_ARG, "the cluster has no GPUs; give it some");
    for (uint32_t i = 0; i < s.n_tenants; i++)
        tenants[i] = (ClusterTenant){.name = run->jobs->tenants[i], .weight = 1};
    TRY(tenant_shares_apply(run->tenants, s.gpus, tenants, s.n_tenants, &s.quotas));
    s.tenants = tenants;
    *out = s;
    return ERR_OK;
}
