// Why a job waited: what kept it, for how long, who was in its way, and what would have helped.
#include <stdio.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/cpu.h"
#include "base/term.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/job_explanation.h"

enum { OWN_ROWS = 4, TRIES = 8 };

typedef struct Options {
    ClusterSimArgs play;
    const char    *job, *records, *against;
    bool           json, brief;
} Options;

typedef struct Watchers {
    JobEventLog *log;
    Why         *why;
} Watchers;

static void watch(void *self, const ClusterView *v, const ClusterAction *plan, uint32_t n) {
    Watchers *w = self;
    job_event_log_note(w->log, v, plan, n);
    why_note(w->why, v, plan, n);
}

// By its name in the trace; nobody named: the one that waited longest.
static Err find_job(const Options *o, JobExplanation *s) {
    const JobList *l = &s->play.jobs;
    uint32_t       longest = 0;
    if (o->job == NULL) {
        for (uint32_t i = 1; i < l->n; i++)
            if (s->result.ends[i].waited > s->result.ends[longest].waited) longest = i;
        s->job = longest;
        return ERR_OK;
    }
    const char **ids = arena_new(s->arena, const char *, l->n);
    for (s->job = 0; s->job < l->n; s->job++) {
        ids[s->job] = l->at[s->job].id;
        if (strcmp(ids[s->job], o->job) == 0) return ERR_OK;
    }
    const char *near = text_nearest(o->job, ids, l->n);
    return err_set(ERR_ARG, "%s: no job %s%s%s%s; there are %s to %s", l->name, o->job,
                   near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "?)" : "", ids[0], ids[l->n - 1]);
}

// Once to know how it goes, once more to watch it.
static Err look(const Options *o, JobExplanation *s) {
    ClusterRun    run;
    ClusterResult again;
    Watchers      both = {&s->log, NULL};
    TRY(trace_run_open(&o->play, s->arena, &s->play));
    TRY(cluster_simulate(&s->play.run, s->arena, &s->result));
    TRY(find_job(o, s));
    run = s->play.run;
    job_event_log_open(&s->log, &s->play.run, o->records != NULL ? JOB_EVENT_ALL_JOBS : s->job,
                       s->kept);
    TRY(why_open(&s->play.run, s->job, s->result.ends, s->kept, &s->why));
    both.why = s->why;
    run.after = watch;
    run.watcher = &both;
    TRY(cluster_simulate(&run, s->arena, &again));
    TRY(job_event_log_close(&s->log, &s->result));
    if (o->records == NULL) return ERR_OK;
    return trace_run_compare(&o->play, &s->log, o->records, s->arena);
}

static Err try_change(JobExplanation *s, WhatIf w) {
    if (s->n_changes == JOB_CHANGES) return ERR_OK;
    size_t mark = s->arena->used;
    Err    e = what_if_run(&s->play, s->job, job_explanation_end(s)->finish, s->arena, &w);
    if (e == ERR_OK) {
        w.text = arena_str(s->kept, w.text);
        s->changes[s->n_changes++] = w;
    }
    arena_rewind(s->arena, mark);
    if (s->shown) progress_step(&s->progress, 1);
    return e == ERR_LIMIT ? e : ERR_OK;  // what cannot be run is no way out
}

// Twice as many each time, until it hardly waits.
static Err try_servers(JobExplanation *s) {
    for (uint32_t more = 1; more <= s->play.servers.n && more <= SERVERS_MAX / 4; more *= 2) {
        TRY(try_change(s, (WhatIf){.kind = WHAT_SERVERS, .servers = more}));
        if (s->n_changes == 0 ||
            s->changes[s->n_changes - 1].end.waited * 20 < job_explanation_end(s)->waited)
            break;
    }
    return ERR_OK;
}

static Err try_policies(const Options *o, JobExplanation *s) {
    ClusterChoices *c = arena_new(s->kept, ClusterChoices, 1);
    TRY(cluster_choice_read(o->against, &(ArgList){0}, s->kept, c));
    for (uint32_t i = 0; i < c->n; i++)
        if (c->at[i].policy != s->play.run.policy)
            TRY(try_change(s, (WhatIf){.kind = WHAT_POLICY, .choice = &c->at[i]}));
    return ERR_OK;
}

static Err try_all(const Options *o, JobExplanation *s) {
    const Job *j = &s->play.jobs.at[s->job];
    if (o->brief || why_waited(s->why) == 0) return ERR_OK;
    if (j->gpus > 1) TRY(try_change(s, (WhatIf){.kind = WHAT_GANG}));
    if (why_lack(s->why, WHY_CORES).least >= 0) TRY(try_change(s, (WhatIf){.kind = WHAT_CORES}));
    if (why_lack(s->why, WHY_MEMORY).least >= 0) TRY(try_change(s, (WhatIf){.kind = WHAT_MEMORY}));
    if (j->gpu_types != 0) TRY(try_change(s, (WhatIf){.kind = WHAT_TYPE}));
    TRY(try_servers(s));
    return try_policies(o, s);
}

static Err try_shown(const Options *o, JobExplanation *s) {
    s->shown = term_is_tty(stderr);
    if (s->shown)
        progress_begin(&s->progress, stderr, clock_monotonic(), "trying what would help", TRIES);
    Err e = try_all(o, s);
    if (s->shown) progress_end(&s->progress);
    return e;
}

static Err explain(Options *o, Arena *a, Arena *kept, int *code) {
    JobExplanation s = {.arena = a, .kept = kept};
    if (o->records != NULL) TRY(trace_run_recorded(o->records, kept, &o->play));
    TRY(look(o, &s));
    TRY(try_shown(o, &s));
    *code = 0;
    return o->json ? job_explanation_json(&s, code) : job_explanation_print(&s);
}

int cmd_cluster_explain(const Command *c, int argc, char **argv) {
    Options     o = {.against = "fifo,srtf,tiresias,synergy_tune"};
    const char *rest[1] = {NULL};
    uint32_t    n = 0;
    ArgRow      rows[OWN_ROWS + CLUSTER_SIM_ARG_ROWS] = {
             {"records", ARG_TEXT, &o.records, "FILE",
              "the run that cluster simulate --records kept, instead of --trace and the rest", 0, 0},
             {"against", ARG_TEXT, &o.against, "LIST",
              "policies to try instead (default fifo,srtf,tiresias,synergy_tune)", 0, 0},
             {"brief", ARG_FLAG, &o.brief, NULL, "do not try what would have helped", 0, 0},
             {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
    };
    trace_run_rows(&o.play, rows + OWN_ROWS);
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, rest, 0, 1, &n);
    if (code >= 0) return code;
    o.job = n > 0 ? rest[0] : NULL;
    if ((o.play.trace == NULL) == (o.records == NULL))
        return args_fail(EXIT_USAGE, "cluster explain: give --trace FILE, or --records FILE");
    Arena a = {0}, kept = {0};
    Err   e = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = arena_init(&kept, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = explain(&o, &a, &kept, &code);
    if (e != ERR_OK) code = command_failed(e);
    arena_finish(&a);
    arena_finish(&kept);
    return code;
}
