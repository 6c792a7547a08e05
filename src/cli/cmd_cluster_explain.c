// cotenant cluster explain: why a job waited, which jobs were in its way, and what would have
// helped.
#include <stdio.h>

#include "base/cpu.h"
#include "base/json.h"
#include "base/table.h"
#include "cli/cluster_args.h"
#include "cli/commands.h"
#include "eval/job_explanation.h"
#include "eval/run_file.h"

// BLOCKERS: rows of the table of jobs in its way; BELIEFS: of the table of beliefs
enum { OWN_ROWS = 4, BLOCKERS = 8, BELIEFS = 24 };

typedef struct Options {
    ClusterSimArgs sim;
    const char    *job, *records, *against;
    bool           json, brief;
} Options;

static double seconds(TimeNs ns) { return (double)ns / 1e9; }

static const Column reason_columns[] = {
    {.key = "reason", .head = "reason"},
    {.key = "s", .head = "for", .unit = "s", .decimals = 1},
    {.key = "share", .head = "share", .decimals = 3},
    {.key = "missing_first", .head = "missing at submission", .decimals = 1},
    {.key = "missing_least", .head = "at least", .decimals = 1},
    {.key = "of", .head = "of"},
    {.key = "about", .head = "meaning"},
};

// In GPUs, cores or GB.
static void put_lack(Table *t, WhyReason r, int64_t lack) {
    if (lack < 0)
        table_missing(t);
    else
        table_real(t, (double)lack / (r == WHY_MEMORY ? 1024 : 1000));
}

static const char *lack_unit(WhyReason r, WhyLack lack) {
    if (lack.least < 0) return NULL;
    return r == WHY_MEMORY ? "GB" : r == WHY_CORES ? "cores" : "GPUs";
}

static void fill_reasons(const JobExplanation *s, Table *t) {
    bool listed[WHY_REASONS] = {false};
    table_init(t, s->arena, reason_columns, sizeof reason_columns / sizeof *reason_columns);
    for (uint32_t k = 0; k < WHY_REASONS; k++) {
        WhyReason most = WHY_REASONS;
        for (uint32_t r = 0; r < WHY_REASONS; r++)
            if (!listed[r] &&
                (most == WHY_REASONS || why_for(s->why, (WhyReason)r) > why_for(s->why, most)))
                most = (WhyReason)r;
        listed[most] = true;
        TimeNs ns = why_for(s->why, most);
        if (ns == 0) return;
        WhyLack lack = why_lack(s->why, most);
        table_row(t);
        table_text(t, why_name(most));
        table_real(t, seconds(ns));
        table_real(t, (double)ns / (double)why_waited(s->why));
        put_lack(t, most, lack.first);
        put_lack(t, most, lack.least);
        table_text(t, lack_unit(most, lack));
        table_text(t, why_about(most));
    }
}

static const Column blocker_columns[] = {
    {.key = "job", .head = "job"},
    {.key = "as", .head = "how"},
    {.key = "s", .head = "for", .unit = "s", .decimals = 1},
    {.key = "gpus", .head = "GPUs"},
    {.key = "came_s", .head = "submitted", .unit = "s after it", .decimals = 1},
};

static uint32_t fill_blockers(const JobExplanation *s, uint32_t most, Table *t) {
    uint32_t          n;
    const WhyBlocker *all = why_blockers(s->why, &n);
    const Job        *own = &s->run.jobs.at[s->job];
    table_init(t, s->arena, blocker_columns, sizeof blocker_columns / sizeof *blocker_columns);
    for (uint32_t i = 0; i < n && i < most; i++) {
        const Job *j = &s->run.jobs.at[all[i].job];
        table_row(t);
        table_text(t, j->id);
        table_text(t, why_name(all[i].as));
        table_real(t, seconds(all[i].ns));
        table_int(t, j->gpus);
        table_real(t, seconds(j->submit - own->submit));
    }
    return n;
}

static const Column event_columns[] = {
    {.key = "at_s", .head = "at", .unit = "s", .decimals = 1},
    {.key = "after_s", .head = "since submission", .unit = "s", .decimals = 1},
    {.key = "what", .head = "what"},
    {.key = "where", .head = "where"},
};

static const char *where(const JobExplanation *s, const JobEvent *e) {
    const char *text = "";
    for (uint32_t i = 0; i < e->n; i++) {
        const ClusterSlice *x = &e->slices[i];
        text = arena_printf(s->arena, "%s%s%s: %u GPU%s", text, i > 0 ? "; " : "",
                            s->run.servers.at[x->server].name, x->gpus, x->gpus == 1 ? "" : "s");
        if (x->gpu_milli < CLUSTER_WHOLE_GPU)
            text = arena_printf(s->arena, "%s at %g %%", text, x->gpu_milli / 10.0);
        if (x->cores_milli > 0)
            text = arena_printf(s->arena, "%s, %g cores, %.0f GB", text, x->cores_milli / 1e3,
                                x->memory_mib / 1024.0);
    }
    return text;
}

static void fill_events(const JobExplanation *s, Table *t) {
    table_init(t, s->arena, event_columns, sizeof event_columns / sizeof *event_columns);
    for (uint32_t i = 0; i < s->log.n; i++) {
        const JobEvent *e = &s->log.at[i];
        if (e->job != s->job) continue;
        table_row(t);
        table_real(t, seconds(e->at));
        table_real(t, seconds(e->at - s->run.jobs.at[s->job].submit));
        table_text(t, job_event_name(e->kind));
        table_text(t, where(s, e));
    }
}

static const Column belief_columns[] = {
    {.key = "at_s", .head = "time", .unit = "s", .decimals = 1},
    {.key = "class", .head = "believed class"},
    {.key = "left_s", .head = "believed work left", .unit = "s", .decimals = 1},
    {.key = "left_sd", .head = "+- log", .decimals = 2},
    {.key = "rate", .head = "rate", .decimals = 3},
    {.key = "rate_sd", .head = "+- log", .decimals = 2},
    {.key = "measured", .head = "measured", .decimals = 3},
    {.key = "probe", .head = "probe"},
};

static void put_known(Table *t, bool known, double x) {
    if (known)
        table_real(t, x);
    else
        table_missing(t);
}

static void fill_beliefs(const JobExplanation *s, uint32_t most, Table *t) {
    const BeliefLog *l = s->beliefs;
    table_init(t, s->arena, belief_columns, sizeof belief_columns / sizeof *belief_columns);
    for (uint32_t i = 0; l != NULL && i < l->n && i < most; i++) {
        const BeliefEntry *e = &l->at[i];
        table_row(t);
        table_real(t, seconds(e->at));
        table_text(t, e->class);
        put_known(t, e->left >= 0, seconds(e->left));
        put_known(t, e->left_sd > 0, e->left_sd);
        put_known(t, e->rate > 0, e->rate);
        put_known(t, e->rate_sd > 0, e->rate_sd);
        put_known(t, e->measured > 0, e->measured);
        table_text(t, e->probe ? "begins" : "");
    }
}

// What the truth was is known here: the simulator tells it after the run.
static Err print_beliefs(const JobExplanation *s) {
    const ClusterRun *r = &s->run.run;
    bool              classed = r->class_of != NULL && r->class_of[s->job] != CLUSTER_NONE;
    Table             t;
    if (s->beliefs == NULL) return ERR_OK;
    printf("\nwhat policies were told: %s\n", information_text(&r->info, s->arena));
    if (classed) printf("its true class: %s\n", r->profiles->at[r->class_of[s->job]].name);
    fill_beliefs(s, BELIEFS, &t);
    TRY(table_print(&t, stdout));
    if (s->beliefs->changes > BELIEFS)
        printf("and %llu more changes\n", (unsigned long long)(s->beliefs->changes - BELIEFS));
    return ERR_OK;
}

static const Column change_columns[] = {
    {.key = "change", .head = "with"},
    {.key = "waited_s", .head = "waits", .unit = "s", .decimals = 1},
    {.key = "start_s", .head = "starts after", .unit = "s", .decimals = 1},
    {.key = "finish_s", .head = "ends after", .unit = "s", .decimals = 1},
};

static void put_change(const JobExplanation *s, const char *text, const ClusterEnd *e, Table *t) {
    TimeNs submit = s->run.jobs.at[s->job].submit;
    table_row(t);
    table_text(t, text);
    table_real(t, seconds(e->waited));
    table_real(t, seconds(e->start - submit));
    table_real(t, seconds(e->finish - submit));
}

static void fill_changes(const JobExplanation *s, Table *t) {
    table_init(t, s->arena, change_columns, sizeof change_columns / sizeof *change_columns);
    put_change(s, "nothing changed", job_explanation_end(s), t);
    for (uint32_t i = 0; i < s->n_changes; i++)
        put_change(s, s->changes[i].text, &s->changes[i].end, t);
}

// The change with the shortest wait, if shorter than without.
static const WhatIf *best_change(const JobExplanation *s) {
    const WhatIf *best = NULL;
    for (uint32_t i = 0; i < s->n_changes; i++)
        if (s->changes[i].end.waited <
            (best != NULL ? best->end.waited : job_explanation_end(s)->waited))
            best = &s->changes[i];
    return best;
}

static void print_reason(const JobExplanation *s) {
    const Job        *j = &s->run.jobs.at[s->job];
    const ClusterEnd *e = job_explanation_end(s);
    const WhatIf     *best = best_change(s);
    printf("job %s: %u GPU%s, %.1f s of work; it waited %.1f s", j->id, j->gpus,
           j->gpus == 1 ? "" : "s", seconds(j->work), seconds(e->waited));
    printf(" and ended %.1f s after its submission (%s, %u servers with %llu GPUs, policy %s)\n",
           seconds(e->finish - j->submit), s->run.jobs.name, s->run.servers.n,
           (unsigned long long)s->run.servers.gpus, s->run.run.policy->name);
    if (why_waited(s->why) == 0) return;
    WhyReason most = why_most(s->why);
    printf("why it waited: %s (%.0f %% of the time)\n", why_about(most),
           100.0 * (double)why_for(s->why, most) / (double)why_waited(s->why));
    if (best != NULL)
        printf("what would help: with %s it would wait %.1f s\n", best->text,
               seconds(best->end.waited));
    else if (s->n_changes > 0)
        puts("what would help: none of the changes tried");
}

static void print_order(const JobExplanation *s) {
    uint32_t          n, before = 0;
    const WhyBlocker *all = why_blockers(s->why, &n);
    for (uint32_t i = 0; i < n; i++) before += all[i].job < s->job;
    if (n > BLOCKERS) printf("and %u more; ", n - BLOCKERS);
    printf("%u of them were submitted before it, %u after\n", before, n - before);
}

static Err print_explanation(const JobExplanation *s) {
    Table    reasons, blockers, events, changes;
    uint32_t n = fill_blockers(s, BLOCKERS, &blockers);
    print_reason(s);
    fill_events(s, &events);
    puts("");
    TRY(table_print(&events, stdout));
    TRY(print_beliefs(s));
    if (why_waited(s->why) == 0) return ERR_OK;
    fill_reasons(s, &reasons);
    puts("");
    TRY(table_print(&reasons, stdout));
    if (n > 0) {
        puts("\njobs in its way");
        TRY(table_print(&blockers, stdout));
        print_order(s);
    }
    if (s->n_changes == 0) return ERR_OK;
    fill_changes(s, &changes);
    puts("\nthe same run with one thing changed");
    return table_print(&changes, stdout);
}

// With perfect information there is nothing to tell.
static Err add_beliefs(const JobExplanation *s, json_t *to) {
    Table   t;
    json_t *list = NULL;
    if (s->beliefs == NULL) return ERR_OK;
    fill_beliefs(s, UINT32_MAX, &t);
    TRY(table_json(&t, &list));
    json_object_set_new(to, "beliefs", list);
    return ERR_OK;
}

static Err print_json(const JobExplanation *s, int *code) {
    Table             reasons, blockers, events, changes;
    json_t           *lists[4] = {NULL};
    const Job        *j = &s->run.jobs.at[s->job];
    const ClusterEnd *e = job_explanation_end(s);
    bool              waited = why_waited(s->why) > 0;
    fill_reasons(s, &reasons);
    fill_blockers(s, UINT32_MAX, &blockers);
    fill_events(s, &events);
    fill_changes(s, &changes);
    TRY(table_json(&reasons, &lists[0]));
    TRY(table_json(&blockers, &lists[1]));
    TRY(table_json(&events, &lists[2]));
    TRY(table_json(&changes, &lists[3]));
    json_t *all = json_pack(
        "{s:s,s:s,s:s,s:s,s:I,s:i,s:f,s:f,s:f,s:f,s:f,s:i,s:s?,s:s?,s:o,s:o,s:o,s:o}", "trace",
        s->run.jobs.name, "policy", s->run.run.policy->name, "like", s->run.like, "job", j->id,
        "gpus", (json_int_t)j->gpus, "servers", (int)s->run.servers.n, "work_s", seconds(j->work),
        "submit_s", seconds(j->submit), "start_s", seconds(e->start), "finish_s",
        seconds(e->finish), "waited_s", seconds(e->waited), "preemptions", (int)e->preemptions,
        "reason", waited ? why_name(why_most(s->why)) : NULL, "about",
        waited ? why_about(why_most(s->why)) : NULL, "reasons", lists[0], "in_its_way", lists[1],
        "timeline", lists[2], "changes", lists[3]);
    TRY(add_beliefs(s, all));
    *code = command_json(all);
    return ERR_OK;
}

static Err try_changes(const Options *o, JobExplanation *s) {
    Progress bar;
    if (o->brief) return ERR_OK;
    if (term_is_tty(stderr)) {
        progress_begin(&bar, stderr, clock_monotonic(), "trying changes", JOB_CHANGES_EXPECTED);
        // cppcheck-suppress autoVariables ; taken back below
        s->progress = &bar;
    }
    Err e = job_explanation_try_changes(o->against, s);
    if (s->progress != NULL) progress_end(&bar);
    s->progress = NULL;
    return e;
}

static Err check_records(const Options *o, const JobExplanation *s) {
    json_t *options = cluster_sim_args_json(&o->sim);
    Err     e = cluster_run_file_check(o->records, options, &s->log, s->arena);
    json_decref(options);
    return e;
}

static Err explain(Options *o, Arena *a, Arena *kept, int *code) {
    JobExplanation s = {.arena = a, .kept = kept};
    TraceRunSpec   spec;
    if (o->records != NULL) TRY(cluster_sim_args_read(o->records, kept, &o->sim));
    TRY(cluster_sim_args_spec(&o->sim, a, &spec));
    TRY(job_explanation_observe(&spec, o->job, o->records != NULL, &s));
    if (o->records != NULL) TRY(check_records(o, &s));
    TRY(try_changes(o, &s));
    *code = 0;
    return o->json ? print_json(&s, code) : print_explanation(&s);
}

int cmd_cluster_explain(const Command *c, int argc, char **argv) {
    Options     o = {.against = "fifo,srtf,tiresias,synergy_tune"};
    const char *rest[1] = {NULL};
    uint32_t    n = 0;
    ArgRow      rows[OWN_ROWS + CLUSTER_SIM_ARG_ROWS] = {
             {"records", ARG_TEXT, &o.records, "FILE",
              "run file of cluster simulate --records, instead of --trace and its options", 0, 0},
             {"against", ARG_TEXT, &o.against, "LIST",
              "policies to try instead (default fifo,srtf,tiresias,synergy_tune)", 0, 0},
             {"brief", ARG_FLAG, &o.brief, NULL, "do not try changes", 0, 0},
             {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
    };
    cluster_sim_args_rows(&o.sim, rows + OWN_ROWS);
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, rest, 0, 1, &n);
    if (code >= 0) return code;
    o.job = n > 0 ? rest[0] : NULL;
    if ((o.sim.trace == NULL) == (o.records == NULL))
        return args_fail(EXIT_USAGE, "cluster explain: give --trace FILE, or --records FILE");
    Arena a = {0}, kept = {0};
    Err   e = arena_init_growing(&a, 1 << 20, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = arena_init_growing(&kept, 1 << 20, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = explain(&o, &a, &kept, &code);
    if (e != ERR_OK) code = command_failed(e);
    arena_finish(&a);
    arena_finish(&kept);
    return code;
}
