#include "bench/tenants/contender_process.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/stats.h"

enum { WARM_RUNS = 3, ALONE_RUNS = 15, REASON_BYTES = 512, SCRATCH = 1 << 28 };

typedef enum Verb { LEAVE, ALONE, TRY_OUT } Verb;

typedef struct Ask {
    Verb     verb;
    uint32_t n_tenants;
    Trial    trial;
} Ask;

typedef struct Reply {  // followed by the latencies
    Err      err;
    char     reason[REASON_BYTES];
    TimeNs   alone[MIX_TENANTS];
    Tally    tally;
    uint32_t n_latencies;
} Reply;

static Err measure_alone(const Contender *c, void *state, uint32_t n, Arena *a, TimeNs *median) {
    for (uint32_t i = 0; i < n; i++) {
        double took[ALONE_RUNS], *sorted = NULL;
        TimeNs t = 0;
        for (uint32_t k = 0; k < WARM_RUNS; k++) TRY(c->alone(state, i, &t));
        for (uint32_t k = 0; k < ALONE_RUNS; k++) {
            TRY(c->alone(state, i, &t));
            took[k] = (double)t;
        }
        TRY(stats_sort(a, took, ALONE_RUNS, &sorted));
        median[i] = (TimeNs)stats_percentile(sorted, ALONE_RUNS, 50);
    }
    return ERR_OK;
}

static double cpu_seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static Err count(const Trial *trial, const RequestOutcome *s, uint32_t n, Arena *a, Tally *t,
                 double **ms) {
    double  *all = arena_new(a, double, n), sum = 0;
    uint32_t answered = 0;
    for (uint32_t i = trial->skip; i < n; i++) {
        TimeNs took = s[i].finish - s[i].arrival;
        bool   met = s[i].answered && took <= trial->qos_ns[s[i].tenant];
        t->n++;
        t->met += met;
        t->tenant_n[s[i].tenant]++;
        t->tenant_met[s[i].tenant] += met;
        if (!s[i].answered) continue;
        all[answered++] = (double)took / 1e6;
        sum += (double)took / 1e6;
    }
    *ms = all;
    if (answered == 0) return ERR_OK;
    double *sorted = NULL;
    TRY(stats_sort(a, all, answered, &sorted));
    t->mean_ms = sum / answered;
    t->p99_ms = stats_percentile(sorted, answered, 99);
    return ERR_OK;
}

static Err try_out(const Contender *c, void *state, const Ask *ask, Arena *a, Reply *r,
                   double **latencies) {
    const Trial *t = &ask->trial;
    double       share[MIX_TENANTS];
    Arrivals     arrivals = {0};
    for (uint32_t i = 0; i < ask->n_tenants; i++) share[i] = 1;
    TRY(arrivals_poisson(a, (Rng){t->seed}, t->rate, share, ask->n_tenants, t->n, &arrivals));
    RequestOutcome *served = arena_new(a, RequestOutcome, arrivals.n);
    double          cpu = cpu_seconds();
    TimeNs          start = clock_now(clock_monotonic());
    TRY(c->serve(state, t, &arrivals, a, served, &r->tally.conflict_rate));
    double span = (double)(clock_now(clock_monotonic()) - start) / 1e9;
    r->tally.core_use = (cpu_seconds() - cpu) / span / (double)sysconf(_SC_NPROCESSORS_ONLN);
    TRY(count(t, served, arrivals.n, a, &r->tally, latencies));
    for (uint32_t i = t->skip; i < arrivals.n; i++) r->n_latencies += served[i].answered;
    return ERR_OK;
}

static Err answer(const Contender *c, void *state, const Ask *ask, Arena *a, int out) {
    Reply   r = {0};
    double *latencies = NULL;
    arena_rewind(a, 0);
    r.err = ask->verb == ALONE ? measure_alone(c, state, ask->n_tenants, a, r.alone)
                               : try_out(c, state, ask, a, &r, &latencies);
    if (r.err != ERR_OK) {
        (void)snprintf(r.reason, sizeof r.reason, "%s", err_why());
        r.n_latencies = 0;
    }
    TRY(child_send(out, &r, sizeof r));
    return child_send(out, latencies, r.n_latencies * sizeof *latencies);
}

static Err serve(const Contender *c, const ContenderOptions *t, int in, int out) {
    Arena  a = {0}, scratch = {0};
    void  *state = NULL;
    Reply  hello = {0};
    TimeNs ignored;
    hello.err = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (hello.err == ERR_OK) hello.err = arena_init(&scratch, SCRATCH);
    if (hello.err == ERR_OK) hello.err = c->open(c, t, &a, &state);
    for (uint32_t i = 0; hello.err == ERR_OK && i < t->n * WARM_RUNS; i++)
        hello.err = c->alone(state, i % t->n, &ignored);
    if (hello.err != ERR_OK) (void)snprintf(hello.reason, sizeof hello.reason, "%s", err_why());
    TRY(child_send(out, &hello, sizeof hello));
    TRY(hello.err);
    for (Ask ask; child_take(in, &ask, sizeof ask) == ERR_OK && ask.verb != LEAVE;)
        TRY(answer(c, state, &ask, &scratch, out));
    return ERR_OK;
}

static Err take_reply(ContenderProcess *b, Reply *r) {
    TRY(child_take(b->child.from, r, sizeof *r));
    if (r->err != ERR_OK) return err_set(r->err, "%s", r->reason);
    return ERR_OK;
}

typedef struct Job {
    const Contender        *contender;
    const ContenderOptions *cfg;
} Job;

static Err do_job(const void *of, int in, int out) {
    const Job *j = of;
    return serve(j->contender, j->cfg, in, out);
}

Err contender_process_start(ContenderProcess *b, const Contender *c, const ContenderOptions *t) {
    Reply hello;
    *b = (ContenderProcess){.name = c->name};
    TRY(child_start(&b->child, do_job, &(Job){c, t}));
    Err e = take_reply(b, &hello);
    if (e == ERR_OK)
        child_hold(&b->child);
    else
        contender_process_end(b);
    return e == ERR_OK ? e : err_add(e, "%s", c->name);
}

static Err ask(ContenderProcess *b, const Ask *a, Reply *r) {
    child_wake(&b->child);
    Err e = child_send(b->child.to, a, sizeof *a);
    if (e == ERR_OK) e = take_reply(b, r);
    return e == ERR_OK ? e : err_add(e, "%s", b->name);
}

Err contender_process_alone(ContenderProcess *b, uint32_t n_tenants, TimeNs *median) {
    Reply r;
    TRY(ask(b, &(Ask){.verb = ALONE, .n_tenants = n_tenants}, &r));
    child_hold(&b->child);
    memcpy(median, r.alone, n_tenants * sizeof *median);
    return ERR_OK;
}

static uint32_t tenants_of(const Trial *t) {
    uint32_t n = 0;
    while (n < MIX_TENANTS && t->qos_ns[n] > 0) n++;
    return n;
}

Err contender_process_try(ContenderProcess *b, const Trial *trial, Tally *out, double *latencies_ms,
                          uint32_t *n_latencies) {
    Reply r;
    TRY(ask(b, &(Ask){TRY_OUT, tenants_of(trial), *trial}, &r));
    for (uint32_t i = 0; i < r.n_latencies; i++) {
        double one;
        TRY(child_take(b->child.from, latencies_ms != NULL ? &latencies_ms[i] : &one, sizeof one));
    }
    child_hold(&b->child);
    if (n_latencies != NULL) *n_latencies = r.n_latencies;
    *out = r.tally;
    return ERR_OK;
}

void contender_process_end(ContenderProcess *b) {
    const Ask leave = {.verb = LEAVE};
    child_end(&b->child, &leave, sizeof leave);
}
