// Replays the last 40 % of a trace as if nothing waited: at a submission, and after 10 min and 2 h
// of running. Jobs longer than a day are left out, as in scenarios.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/beliefs/beliefs.h"
#include "cluster/cluster_scenario.h"
#include "eval/trace_run.h"

enum { MOMENTS = 3, EACH = 16, KEPT = 20000 };  // EACH: every 16th job is asked for

static const char *const moments[] = {"at submission", "ran 10 min", "ran 2 h"};
static const double      after_s[] = {0, 600, 7200};

enum { START, QUESTION, END = QUESTION + MOMENTS };
enum { PRIOR, ALIKE, BY_HAND, ROWS_BY_HAND };

typedef struct Event {
    double   at_s;
    int      kind;  // START, END, QUESTION + moment
    uint32_t job;
} Event;

typedef struct Replay {
    const JobList  *jobs;
    DurationHistory histories[ROWS_BY_HAND];
    BeliefContext  *contexts;  // [n]
    uint32_t        n;
    DurationRecord *running;
    uint32_t       *slots, *slot_of, n_running;
    Errors (*errors)[BELIEFS_MODELS + ROWS_BY_HAND];  // [MOMENTS]
    double now_s;
} Replay;

static int by_time(const void *a, const void *b) {
    const Event *x = a, *y = b;
    if (x->at_s != y->at_s) return x->at_s < y->at_s ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

static double submit_s(const Job *j) { return (double)j->submit / 1e9; }
static double work_s(const Job *j) { return (double)j->work / 1e9; }

static JobTraits traits(const Job *j) {
    return (JobTraits){j->tenant == JOB_NONE ? 0 : j->tenant + 1,
                       j->model == JOB_NONE ? 0 : j->model + 1, j->gpus};
}

static void start(Replay *r, uint32_t job) {
    JobTraits t = traits(&r->jobs->at[job]);
    r->slot_of[job] = r->n_running;
    r->slots[r->n_running++] = job;
    for (uint32_t i = 0; i < r->n; i++)
        belief_context_arrive(&r->contexts[i], job, &t, submit_s(&r->jobs->at[job]));
}

static void end(Replay *r, uint32_t job) {
    const Job *j = &r->jobs->at[job];
    JobTraits  t = traits(j);
    uint32_t   at = r->slot_of[job], last = r->slots[--r->n_running];
    r->slots[at] = last;
    r->slot_of[last] = at;
    for (uint32_t i = ALIKE; i < ROWS_BY_HAND; i++)
        duration_history_end(&r->histories[i], &t, work_s(j));
    for (uint32_t i = 0; i < r->n; i++) belief_context_end(&r->contexts[i], job, work_s(j));
}

static void add(Replay *r, int moment, uint32_t row, const DurationEstimate *e, double truth) {
    errors_add(&r->errors[moment][row], log(fmax(e->left_s, 1)), e->log_sd, truth);
}

static DurationEstimate mean_of(const DurationEstimate *a, const DurationEstimate *b) {
    return (DurationEstimate){.left_s = sqrt(fmax(a->left_s, 1) * fmax(b->left_s, 1)),
                              .log_sd = (a->log_sd + b->log_sd) / 2};
}

static void by_hand(Replay *r, int moment, uint32_t job, double done, DurationEstimate *e) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_running; i++) {
        const Job *o = &r->jobs->at[r->slots[i]];
        JobTraits  t = traits(o);
        if (r->slots[i] != job) r->running[n++] = duration_record(&t, r->now_s - submit_s(o));
    }
    DurationQuery q = {.traits = traits(&r->jobs->at[job]), .done_s = done, .self = UINT32_MAX};
    double        truth = log(fmax(work_s(&r->jobs->at[job]) - done, 1));
    for (uint32_t i = 0; i < ROWS_BY_HAND; i++) {
        q.running = r->running;
        q.n_running = i == PRIOR ? 0 : n;
        *e = duration_history_left(&r->histories[i], &q);
        add(r, moment, i, e, truth);
    }
}

static void ask(Replay *r, int moment, uint32_t job) {
    DurationEstimate hand, e;
    BeliefOutput     x;
    const Job       *j = &r->jobs->at[job];
    double           done = after_s[moment];
    double           truth = log(fmax(work_s(j) - done, 1));
    by_hand(r, moment, job, done, &hand);
    for (uint32_t i = 0; i < r->n; i++) {
        BeliefContext *c = &r->contexts[i];
        for (uint32_t k = 0; k < r->n_running; k++)
            belief_context_work(c, r->slots[k], r->now_s - submit_s(&r->jobs->at[r->slots[k]]));
        belief_context_ask(c, job, NULL, &x);
        e = belief_left(&x, done, 0, 0);
        add(r, moment, ROWS_BY_HAND + 2 * i, &e, truth);
        e = mean_of(&e, &hand);
        add(r, moment, ROWS_BY_HAND + 2 * i + 1, &e, truth);
    }
}

static uint32_t events(const JobList *l, Event *to) {
    uint32_t n = 0, first = l->n / 2, measure = l->n * 6 / 10;
    for (uint32_t i = first; i < l->n; i++) {
        double s = submit_s(&l->at[i]), w = work_s(&l->at[i]);
        bool   asked = i >= measure && i % EACH == 0;
        to[n++] = (Event){s, START, i};
        to[n++] = (Event){s + w, END, i};
        for (int m = 0; m < MOMENTS; m++)
            if (asked && w > after_s[m]) to[n++] = (Event){s + after_s[m], QUESTION + m, i};
    }
    qsort(to, n, sizeof *to, by_time);
    return n;
}

static Err open_replay(Replay *r, const JobList *l, const Weights *w, uint32_t n, Arena *a) {
    DurationParams all = DURATION_PARAMS, same = {1, 1, 1, 0, 3, 400, 1200, 2, 1};
    *r = (Replay){.jobs = l, .n = n, .contexts = arena_new(a, BeliefContext, n)};
    TRY(duration_history_init(&r->histories[PRIOR], &all, a));
    TRY(duration_history_init(&r->histories[ALIKE], &same, a));
    TRY(duration_history_init(&r->histories[BY_HAND], &all, a));
    for (uint32_t i = 0; i < n; i++) TRY(belief_context_init(&r->contexts[i], w[i].w, l->n, a));
    r->running = arena_new(a, DurationRecord, l->n);
    r->slots = arena_new(a, uint32_t, l->n);
    r->slot_of = arena_new(a, uint32_t, l->n);
    r->errors = arena_alloc(a, MOMENTS, sizeof *r->errors, 16);
    for (uint32_t m = 0; m < MOMENTS; m++)
        for (uint32_t i = 0; i < ROWS_BY_HAND + 2 * n; i++) errors_open(&r->errors[m][i], KEPT, a);
    return ERR_OK;
}

static void print_row(const Replay *r, uint32_t row, const char *name, Arena *a) {
    printf("%-34s", name);
    for (uint32_t m = 0; m < MOMENTS; m++) {
        ErrorSummary s = errors_summary(&r->errors[m][row], a);
        printf("  %4.2f/%4.2f/%4.2f/%4.2f", s.rmse, s.spearman, s.nll, s.cover);
    }
    printf("\n");
}

Err durations_table(const char *trace, const Weights *w, uint32_t n, Arena *a) {
    static const char *const hand[] = {"prior", "global: all jobs alike", "by hand"};
    JobList                  l;
    Replay                   r;
    JobTraceOptions          o = {0};
    TRY(trace_run_jobs(trace, "auto", &o, a, &l));
    uint32_t short_ones = 0;
    for (uint32_t i = 0; i < l.n; i++)
        if (l.at[i].work <= CLUSTER_SCENARIO_MAX_S * JOB_SECOND) l.at[short_ones++] = l.at[i];
    l.n = short_ones;
    TRY(open_replay(&r, &l, w, n, a));
    Event   *all = arena_new(a, Event, (size_t)l.n * 6);
    uint32_t n_events = events(&l, all);
    for (uint32_t i = 0; i < n_events; i++) {
        r.now_s = all[i].at_s;
        if (all[i].kind == START)
            start(&r, all[i].job);
        else if (all[i].kind == END)
            end(&r, all[i].job);
        else
            ask(&r, all[i].kind - QUESTION, all[i].job);
    }
    printf("%s, last 40 %%: RMSE of log / Spearman / NLL / coverage of 90 %%\n%-34s", trace, "");
    for (uint32_t m = 0; m < MOMENTS; m++) printf("  %s (%u)", moments[m], r.errors[m][0].n);
    printf("\n");
    for (uint32_t i = 0; i < ROWS_BY_HAND; i++) print_row(&r, i, hand[i], a);
    for (uint32_t i = 0; i < n; i++) {
        print_row(&r, ROWS_BY_HAND + 2 * i, arena_printf(a, "attention, %s", w[i].name), a);
        print_row(&r, ROWS_BY_HAND + 2 * i + 1, arena_printf(a, "both, %s", w[i].name), a);
    }
    return ERR_OK;
}
