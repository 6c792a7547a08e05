#include "eval/trace_run.h"

#include <string.h>

#include "cluster/cluster_scenario.h"
#include "cluster/profile/class_assignment.h"

Err trace_run_jobs(const char *path, const char *format, const JobTraceOptions *o, Arena *a,
                   JobList *out) {
    TRY(trace_read(path, format, o, a, out));
    if (out->n == 0)
        return err_set(ERR_ARG, "%s: no job is left; widen --from, --to and the limits", path);
    return ERR_OK;
}

static Err read_servers(const TraceRunSpec *s, Arena *a, ServerList *out) {
    const char *what = s->servers;
    if (what != NULL && what[strspn(what, "0123456789")] == '\0')
        return err_set(ERR_ARG, "--servers %s: it names a file; --nodes says how many", what);
    if (what != NULL) return server_list_read(what, a, out);
    return server_list_equal(s->n_servers, &s->server, a, out);
}

static void set_policy(ClusterRun *run, const PolicyChoice *c) {
    run->policy = c->policy;
    run->settings = c->settings;
    run->knows = information_knows(&run->info, run->policy->knows);
    if (run->error > 0 && run->knows == CLUSTER_ORACLE) run->knows = CLUSTER_PREDICTED;
}

static Err choose(const TraceRunSpec *s, Arena *a, TraceRun *x) {
    TRY(policy_choice_read(TIER_CLUSTER, s->policy, s->sets, a, &x->choice));
    set_policy(&x->run, &x->choice);
    bool found = strcmp(s->like, "auto") == 0;
    x->like = found ? cluster_like(&x->jobs, x->run.policy, s->profiles != NULL) : s->like;
    TRY(cluster_sim_params(x->like, x->run.policy, &x->run.params));
    cluster_stop_options(x->stops, &x->run.params);
    return ERR_OK;
}

// Lucid's simulator starts time with the first job.
static void rebase(TraceRun *x) {
    TimeNs first = x->jobs.at[0].submit;
    if (strcmp(x->like, "lucid") != 0) return;
    for (uint32_t i = 0; i < x->jobs.n; i++) x->jobs.at[i].submit -= first;
}

// Synergy's simulator knows ten models; jobs of any other run as alexnet.
static void as_synergy(const ClusterProfiles *p, JobList *l, uint32_t *class_of) {
    static const char *const unknown[] = {"bert", "vae"};
    uint32_t                 stand_in = profile_find(p, "alexnet");
    for (uint32_t i = 0; i < l->n && stand_in != PROFILE_NONE; i++) {
        Job        *j = &l->at[i];
        const char *name = job_model(l, j);
        double      one = p->at[stand_in].iteration_s[0];
        bool        known = profile_find(p, name) != PROFILE_NONE;
        for (int k = 0; k < 2; k++) known = known && strcmp(name, unknown[k]) != 0;
        if (known) continue;
        class_of[i] = stand_in;
        if (!(one > 0) || j->iterations < 1) continue;
        j->iteration = (TimeNs)(one * (double)JOB_SECOND + 0.5);
        if (j->iterations <= JOB_TIME_MAX / j->iteration) j->work = j->iteration * j->iterations;
    }
}

static Err as_muri(const TraceRunSpec *s, Arena *a, TraceRun *x) {
    if (strcmp(x->like, "muri") != 0) return ERR_OK;
    if (s->profiles != NULL)
        return err_set(ERR_ARG, "--like muri: every rate is 1 there; leave out --profiles");
    return muri_rules_apply(&x->jobs, a, &x->run.overheads);
}

static Err classify(const TraceRunSpec *s, Arena *a, TraceRun *x) {
    bool             synergy = strcmp(x->like, "synergy") == 0;
    bool             shipped = s->profiles != NULL && strcmp(s->profiles, "default") == 0;
    ClusterProfiles *p = NULL;
    ClassAssignment  classes;
    if (s->profiles == NULL && s->mix != NULL)
        return err_set(ERR_ARG, "--mix: classes come from --profiles; give default, or files");
    if (s->profiles == NULL) return ERR_OK;
    TRY(cluster_scenario_profiles(s->profiles, synergy && !shipped, &x->servers, a, &p));
    if (p == NULL) return ERR_OK;
    TRY(class_assignment_draw(p, &x->jobs, s->mix, rng_fork((Rng){s->seed}, 2), a, &classes));
    if (synergy) as_synergy(p, &x->jobs, classes.class_of);
    x->run.class_of = classes.class_of;
    return cluster_scenario_beliefs(&s->information, p, classes.class_of, x->jobs.n, s->seed, a,
                                    &x->run.profiles, &x->run.beliefs);
}

Err trace_run_choose(const TraceRun *p, const PolicyChoice *c, Arena *a, ClusterRun *run) {
    ClusterSetup setup;
    set_policy(run, c);
    TRY(cluster_sim_params(p->like, run->policy, &run->params));
    cluster_stop_options(p->stops, &run->params);
    TRY(cluster_setup(run, a, &setup));
    return cluster_choice_load(c, &setup, a, &run->loaded);
}

Err trace_run_open(const TraceRunSpec *spec, Arena *a, TraceRun *x) {
    *x = (TraceRun){.stops = spec->stops};
    TRY(trace_run_jobs(spec->trace, spec->format, &spec->options, a, &x->jobs));
    TRY(read_servers(spec, a, &x->servers));
    x->run = (ClusterRun){.jobs = &x->jobs,
                          .servers = &x->servers,
                          .seed = spec->seed,
                          .info = spec->information,
                          .tenants = spec->tenants,
                          .error = spec->error > 0 ? spec->error : spec->information.error};
    TRY(choose(spec, a, x));
    TRY(as_muri(spec, a, x));
    TRY(classify(spec, a, x));
    rebase(x);
    return trace_run_choose(x, &x->choice, a, &x->run);
}
