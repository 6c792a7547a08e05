#include "eval/job_explanation.h"

#include <string.h>

#include "base/text.h"

typedef struct Observers {
    JobEventLog *log;
    Why         *why;
} Observers;

static void watch(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    Observers *w = self;
    job_event_log_note(w->log, v, plan, n);
    why_note(w->why, v, plan, n);
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
    Observers     both = {&s->log, NULL};
    TRY(trace_run_open(spec, s->arena, &s->run));
    TRY(cluster_simulate(&s->run.run, s->arena, &s->result));
    TRY(find_job(job, s));
    run = s->run.run;
    job_event_log_open(&s->log, &s->run.run, all_jobs ? JOB_EVENT_ALL_JOBS : s->job, s->kept);
    TRY(why_open(&s->run.run, s->job, s->result.ends, s->kept, &s->why));
    both.why = s->why;
    run.after = watch;
    run.watcher = &both;
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
