#include "cli/job_explanation.h"

#include <stdio.h>

#include "base/json.h"
#include "base/table.h"
#include "cli/commands.h"

enum { RIVALS = 8 };  // that people are shown

static double seconds(TimeNs ns) { return (double)ns / 1e9; }

static const Column reason_columns[] = {
    {.key = "reason", .head = "reason"},
    {.key = "s", .head = "for", .unit = "s", .decimals = 1},
    {.key = "share", .head = "share", .decimals = 3},
    {.key = "missing_first", .head = "missing when it came", .decimals = 1},
    {.key = "missing_least", .head = "at best", .decimals = 1},
    {.key = "of", .head = "of"},
    {.key = "about", .head = "what was the case"},
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
    bool told[WHY_REASONS] = {false};
    table_init(t, s->arena, reason_columns, sizeof reason_columns / sizeof *reason_columns);
    for (uint32_t k = 0; k < WHY_REASONS; k++) {
        WhyReason most = WHY_REASONS;
        for (uint32_t r = 0; r < WHY_REASONS; r++)
            if (!told[r] &&
                (most == WHY_REASONS || why_for(s->why, (WhyReason)r) > why_for(s->why, most)))
                most = (WhyReason)r;
        told[most] = true;
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

static const Column rival_columns[] = {
    {.key = "job", .head = "job"},
    {.key = "as", .head = "how"},
    {.key = "s", .head = "for", .unit = "s", .decimals = 1},
    {.key = "gpus", .head = "GPUs"},
    {.key = "came_s", .head = "came", .unit = "s later", .decimals = 1},
};

static uint32_t fill_rivals(const JobExplanation *s, uint32_t most, Table *t) {
    uint32_t          n;
    const WhyBlocker *all = why_blockers(s->why, &n);
    const Job        *own = &s->play.jobs.at[s->job];
    table_init(t, s->arena, rival_columns, sizeof rival_columns / sizeof *rival_columns);
    for (uint32_t i = 0; i < n && i < most; i++) {
        const Job *j = &s->play.jobs.at[all[i].job];
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
    {.key = "after_s", .head = "since it came", .unit = "s", .decimals = 1},
    {.key = "what", .head = "what"},
    {.key = "where", .head = "where"},
};

static const char *where(const JobExplanation *s, const JobEvent *e) {
    const char *text = "";
    for (uint32_t i = 0; i < e->n; i++) {
        const ClusterSlice *x = &e->slices[i];
        text = arena_printf(s->arena, "%s%s%s: %u GPU%s", text, i > 0 ? "; " : "",
                            s->play.servers.at[x->server].name, x->gpus, x->gpus == 1 ? "" : "s");
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
        table_real(t, seconds(e->at - s->play.jobs.at[s->job].submit));
        table_text(t, job_event_name(e->kind));
        table_text(t, where(s, e));
    }
}

static const Column change_columns[] = {
    {.key = "change", .head = "with"},
    {.key = "waited_s", .head = "it waits", .unit = "s", .decimals = 1},
    {.key = "start_s", .head = "starts after", .unit = "s", .decimals = 1},
    {.key = "finish_s", .head = "is done after", .unit = "s", .decimals = 1},
};

static void put_change(const JobExplanation *s, const char *text, const ClusterEnd *e, Table *t) {
    TimeNs came = s->play.jobs.at[s->job].submit;
    table_row(t);
    table_text(t, text);
    table_real(t, seconds(e->waited));
    table_real(t, seconds(e->start - came));
    table_real(t, seconds(e->finish - came));
}

static void fill_changes(const JobExplanation *s, Table *t) {
    table_init(t, s->arena, change_columns, sizeof change_columns / sizeof *change_columns);
    put_change(s, "things as they are", job_explanation_end(s), t);
    for (uint32_t i = 0; i < s->n_changes; i++)
        put_change(s, s->changes[i].text, &s->changes[i].end, t);
}

// The change that shortens the wait most.
static const WhatIf *best_change(const JobExplanation *s) {
    const WhatIf *best = NULL;
    for (uint32_t i = 0; i < s->n_changes; i++)
        if (s->changes[i].end.waited <
            (best != NULL ? best->end.waited : job_explanation_end(s)->waited))
            best = &s->changes[i];
    return best;
}

static void print_verdict(const JobExplanation *s) {
    const Job        *j = &s->play.jobs.at[s->job];
    const ClusterEnd *e = job_explanation_end(s);
    const WhatIf     *best = best_change(s);
    printf("job %s: %u GPU%s, %.1f s of work; it waited %.1f s", j->id, j->gpus,
           j->gpus == 1 ? "" : "s", seconds(j->work), seconds(e->waited));
    printf(" and was done %.1f s after it came (%s, %u servers with %llu GPUs, policy %s)\n",
           seconds(e->finish - j->submit), s->play.jobs.name, s->play.servers.n,
           (unsigned long long)s->play.servers.gpus, s->play.run.policy->name);
    if (why_waited(s->why) == 0) return;
    WhyReason most = why_most(s->why);
    printf("why it waited: %s (%.0f %% of the time)\n", why_about(most),
           100.0 * (double)why_for(s->why, most) / (double)why_waited(s->why));
    if (best != NULL)
        printf("what would help: with %s it would wait %.1f s\n", best->text,
               seconds(best->end.waited));
    else if (s->n_changes > 0)
        puts("what would help: nothing that was tried");
}

static void print_rest(const JobExplanation *s) {
    uint32_t          n, before = 0;
    const WhyBlocker *all = why_blockers(s->why, &n);
    for (uint32_t i = 0; i < n; i++) before += all[i].job < s->job;
    if (n > RIVALS) printf("and %u more; ", n - RIVALS);
    printf("%u of them came before it, %u after\n", before, n - before);
}

Err job_explanation_print(const JobExplanation *s) {
    Table    reasons, rivals, events, changes;
    uint32_t n = fill_rivals(s, RIVALS, &rivals);
    print_verdict(s);
    fill_events(s, &events);
    puts("");
    TRY(table_print(&events, stdout));
    if (why_waited(s->why) == 0) return ERR_OK;
    fill_reasons(s, &reasons);
    puts("");
    TRY(table_print(&reasons, stdout));
    if (n > 0) {
        puts("\nin its way");
        TRY(table_print(&rivals, stdout));
        print_rest(s);
    }
    if (s->n_changes == 0) return ERR_OK;
    fill_changes(s, &changes);
    puts("\nthe same run with one thing changed");
    return table_print(&changes, stdout);
}

Err job_explanation_json(const JobExplanation *s, int *code) {
    Table             reasons, rivals, events, changes;
    json_t           *lists[4] = {NULL};
    const Job        *j = &s->play.jobs.at[s->job];
    const ClusterEnd *e = job_explanation_end(s);
    bool              waited = why_waited(s->why) > 0;
    fill_reasons(s, &reasons);
    fill_rivals(s, UINT32_MAX, &rivals);
    fill_events(s, &events);
    fill_changes(s, &changes);
    TRY(table_json(&reasons, &lists[0]));
    TRY(table_json(&rivals, &lists[1]));
    TRY(table_json(&events, &lists[2]));
    TRY(table_json(&changes, &lists[3]));
    *code = command_json(json_pack(
        "{s:s,s:s,s:s,s:s,s:I,s:i,s:f,s:f,s:f,s:f,s:f,s:i,s:s?,s:s?,s:o,s:o,s:o,s:o}", "trace",
        s->play.jobs.name, "policy", s->play.run.policy->name, "like", s->play.like, "job", j->id,
        "gpus", (json_int_t)j->gpus, "servers", (int)s->play.servers.n, "work_s", seconds(j->work),
        "submit_s", seconds(j->submit), "start_s", seconds(e->start), "finish_s",
        seconds(e->finish), "waited_s", seconds(e->waited), "preemptions", (int)e->preemptions,
        "reason", waited ? why_name(why_most(s->why)) : NULL, "about",
        waited ? why_about(why_most(s->why)) : NULL, "reasons", lists[0], "in_its_way", lists[1],
        "timeline", lists[2], "changes", lists[3]));
    return ERR_OK;
}
