#include "eval/job_explanation.h"

#include <string.h>

#include "base/text.h"

static Err more_servers(const TraceRun *p, uint32_t more, Arena *a, ServerList *out) {
    *out = p->servers;
    out->n += more;
    out->gpus += (uint64_t)more * p->servers.at[0].gpus;
    out->at = arena_try_new(a, ServerSpec, out->n);
    if (out->at == NULL) return err_set(ERR_LIMIT, "no memory for %u servers", out->n);
    memcpy(out->at, p->servers.at, p->servers.n * sizeof *out->at);
    for (uint32_t i = p->servers.n; i < out->n; i++) {
        out->at[i] = p->servers.at[0];
        out->at[i].name = arena_printf(a, "more%u", i - p->servers.n);
    }
    return ERR_OK;
}

// Cores or memory of a job: as the trace says, or else in proportion to its GPUs.
static uint32_t share(const TraceRun *p, const Job *j, bool memory) {
    const ServerSpec *s = &p->servers.at[0];
    uint64_t all = memory ? s->memory_mib : s->cores_milli, gpus = s->gpus > 0 ? s->gpus : 1;
    uint32_t said = memory ? j->memory_mib : j->cores_milli;
    return said > 0 ? said : (uint32_t)(all * j->gpus * j->gpu_milli / (gpus * CLUSTER_WHOLE_GPU));
}

static const char *change_job(const TraceRun *p, const WhatIf *w, Arena *a, Job *j) {
    uint32_t was = j->gpus;
    switch (w->kind) {
    case WHAT_GANG:
        j->gpus = (was + 1) / 2;
        j->work = j->work * was / j->gpus;
        j->iteration = j->iteration * was / j->gpus;
        j->cores_milli = (uint32_t)((uint64_t)j->cores_milli * j->gpus / was);
        j->memory_mib = (uint32_t)((uint64_t)j->memory_mib * j->gpus / was);
        return arena_printf(a, "%u of its %u GPUs, for longer", j->gpus, was);
    case WHAT_CORES:
        j->cores_milli = (share(p, j, false) + 1) / 2;
        return arena_printf(a, "%g cores for it instead of %g", j->cores_milli / 1e3,
                            2 * (j->cores_milli / 1e3));
    case WHAT_MEMORY:
        j->memory_mib = (share(p, j, true) + 1) / 2;
        return arena_printf(a, "%.0f GB of memory for it instead of %.0f", j->memory_mib / 1024.0,
                            j->memory_mib / 512.0);
    case WHAT_TYPE: j->gpu_types = 0; return "any type of GPU for it";
    case WHAT_SERVERS:
        return arena_printf(a, "%u more server%s (%u GPUs)", w->servers, w->servers > 1 ? "s" : "",
                            w->servers * p->servers.at[0].gpus);
    case WHAT_POLICY: return arena_printf(a, "policy %s", w->choice->label);
    }
    return "";
}

Err what_if_run(const TraceRun *p, uint32_t job, TimeNs until, Arena *a, WhatIf *w) {
    ClusterResult r;
    ServerList    servers;
    JobList       jobs = p->jobs;
    ClusterRun    run = p->run;
    while (jobs.n > job + 1 && jobs.at[jobs.n - 1].submit > until) jobs.n--;
    jobs.at = arena_try_new(a, Job, jobs.n);
    if (jobs.at == NULL) return err_set(ERR_LIMIT, "no memory for %u jobs", jobs.n);
    memcpy(jobs.at, p->jobs.at, jobs.n * sizeof *jobs.at);
    w->text = change_job(p, w, a, &jobs.at[job]);
    TRY(more_servers(p, w->kind == WHAT_SERVERS ? w->servers : 0, a, &servers));
    run.jobs = &jobs;
    run.servers = &servers;
    run.after = NULL;
    TRY(trace_run_choose(p, w->choice != NULL ? w->choice : &p->choice, a, &run));
    TRY(cluster_simulate(&run, a, &r));
    w->end = r.ends[job];
    return ERR_OK;
}

typedef struct Observers {
    JobEventLog *log;
    Why         *why;
    BeliefLog   *beliefs;
} Observers;

static void watch(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    Observers *w = self;
    job_event_log_note(w->log, v, plan, n);
    why_note(w->why, v, plan, n);
    if (w->beliefs != NULL) belief_log_note(w->beliefs, v, plan, n);
}

// By its name in the trace; NULL: the one that waited longest.
static Err find_job(const char *job, JobExplanation *s) {
    const JobList *l = &s->run.jobs;
    uint32_t       longest = 0;
    if (job == NULL) {
        for (uint32_t i = 1; i < l->n; i++)
            if (s->result.ends[i].waited > s->result.ends[longest].waited) longest = i;
        s->job = longest;
        return ERR_OK;
    }
    const char **ids = arena_new(s->arena, const char *, l->n);
    for (s->job = 0; s->job < l->n; s->job++) {
        ids[s->job] = l->at[s->job].id;
        if (strcmp(ids[s->job], job) == 0) return ERR_OK;
    }
    const char *near = text_nearest(job, ids, l->n);
    return err_set(ERR_ARG, "%s: no job %s%s%s%s; there are %s to %s", l->name, job,
                   near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "?)" : "", ids[0], ids[l->n - 1]);
}

// The first run finds when the job ends, which the second needs to attribute its waiting time.
Err job_explanation_observe(const TraceRunSpec *spec, const char *job, bool all_jobs,
                            JobExplanation *s) {
    ClusterRun    run;
    ClusterResult again;
    Observers     all = {&s->log, NULL, NULL};
    TRY(trace_run_open(spec, s->arena, &s->run));
    TRY(cluster_simulate(&s->run.run, s->arena, &s->result));
    TRY(find_job(job, s));
    run = s->run.run;
    job_event_log_open(&s->log, &s->run.run, all_jobs ? JOB_EVENT_ALL_JOBS : s->job, s->kept);
    TRY(why_open(&s->run.run, s->job, s->result.ends, s->kept, &s->why));
    all.why = s->why;
    if (!information_is_perfect(&run.info)) {
        all.beliefs = s->beliefs = arena_new(s->kept, BeliefLog, 1);
        s->beliefs->job = s->job;
        s->beliefs->own = s->kept;
    }
    run.after = watch;
    run.watcher = &all;
    TRY(cluster_simulate(&run, s->arena, &again));
    return job_event_log_close(&s->log, &s->result);
}

static Err try_change(JobExplanation *s, WhatIf w) {
    if (s->n_changes == JOB_CHANGES) return ERR_OK;
    size_t mark = s->arena->used;
    Err    e = what_if_run(&s->run, s->job, job_explanation_end(s)->finish, s->arena, &w);
    if (e == ERR_OK) {
        w.text = arena_str(s->kept, w.text);
        s->changes[s->n_changes++] = w;
    }
    arena_rewind(s->arena, mark);
    if (s->progress != NULL) progress_step(s->progress, 1);
    return e == ERR_LIMIT ? e : ERR_OK;  // a change that cannot be run is left out
}

// Twice as many each time, until the job waits less than a twentieth of the time.
static Err try_servers(JobExplanation *s) {
    for (uint32_t more = 1; more <= s->run.servers.n && more <= SERVERS_MAX / 4; more *= 2) {
        TRY(try_change(s, (WhatIf){.kind = WHAT_SERVERS, .servers = more}));
        if (s->n_changes == 0 ||
            s->changes[s->n_changes - 1].end.waited * 20 < job_explanation_end(s)->waited)
            break;
    }
    return ERR_OK;
}

static Err try_policies(const char *policies, JobExplanation *s) {
    PolicyChoices *c = arena_new(s->kept, PolicyChoices, 1);
    TRY(policy_choices_read(TIER_CLUSTER, policies, &(ArgList){0}, s->kept, c));
    for (uint32_t i = 0; i < c->n; i++)
        if (c->at[i].policy != s->run.run.policy)
            TRY(try_change(s, (WhatIf){.kind = WHAT_POLICY, .choice = &c->at[i]}));
    return ERR_OK;
}

Err job_explanation_try_changes(const char *policies, JobExplanation *s) {
    const Job *j = &s->run.jobs.at[s->job];
    if (why_waited(s->why) == 0) return ERR_OK;
    if (j->gpus > 1) TRY(try_change(s, (WhatIf){.kind = WHAT_GANG}));
    if (why_lack(s->why, WHY_CORES).least >= 0) TRY(try_change(s, (WhatIf){.kind = WHAT_CORES}));
    if (why_lack(s->why, WHY_MEMORY).least >= 0) TRY(try_change(s, (WhatIf){.kind = WHAT_MEMORY}));
    if (j->gpu_types != 0) TRY(try_change(s, (WhatIf){.kind = WHAT_TYPE}));
    TRY(try_servers(s));
    return try_policies(policies, s);
}
