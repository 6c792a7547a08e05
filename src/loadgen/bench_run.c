// One run: requests are sent at their arrival times whether or not earlier ones were answered, so
// that a slow server does not slow the generator; latency counts from the arrival time.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "loadgen/bench_int.h"
#include "base/stop_signal.h"

enum { IN_FLIGHT_MAX = 1 << 16, BATCH = 32, TICK_NS = 50 * 1000 * 1000, KEEP = 1024 };

typedef struct RunState RunState;

typedef struct Call {
    ClientCall   call;
    RunState    *state;
    struct Call *next_free;
    TimeNs       due;
    uint32_t     model;
} Call;

struct RunState {
    const Bench    *bench;
    const BenchRun *run;
    BenchResult    *result;
    Client   *clients[BENCH_MODELS];  // one each: models do not wait for each other's connections
    Call     *calls, *free;
    uint32_t  used, open;
    LoopTimer next, tick;
    TimeNs    start, end, last;  // end: no arrival after it; last: latest arrival so far
    Rng       rng[BENCH_MODELS];
    double    due_s[BENCH_MODELS];  // next arrival of each model
    double    rates[BENCH_MODELS];
    uint64_t  listed, counted;
    bool      sending;
};

double bench_hit_percent(const BenchTally *t) {
    return t->sent > 0 ? 100 * (double)t->met / (double)t->sent : NAN;
}

static bool measured(const RunState *p, TimeNs due) { return due - p->start >= p->run->warmup_ns; }

static void finish(RunState *p) {
    p->sending = false;
    loop_disarm(p->bench->loop, &p->next);
    if (p->open == 0) loop_stop(p->bench->loop);
}

// More requests are late already than min_hit allows of all that will arrive.
static bool is_infeasible(const RunState *p, uint32_t model) {
    const BenchTally *t = &p->result->tallies[model];
    double            all = p->rates[model] * (double)p->run->duration_ns / 1e9;
    uint64_t          late = t->outcomes[BENCH_OK] + t->outcomes[BENCH_REJECTED] +
                    t->outcomes[BENCH_EXPIRED] + t->outcomes[BENCH_FAILED] - t->met;
    return p->run->min_hit > 0 && (double)late > 1.3 * all * (1 - p->run->min_hit / 100) + 10;
}

static void write_record(const RunState *p, const Call *c, BenchOutcome end, TimeNs latency) {
    static const char *const outcomes[] = {"ok", "rejected", "expired", "failed"};
    fprintf(p->run->records, "%.9f,%s,%.6f,%.6f,%s\n", (double)(c->due - p->start) / 1e9,
            p->bench->models[c->model].name, (double)(c->call.submitted - c->due) / 1e6,
            (double)latency / 1e6, outcomes[end]);
}

static void count_end(BenchTally *t, TimeNs slo, BenchOutcome end, TimeNs latency) {
    t->outcomes[end]++;
    if (end == BENCH_OK) hist_record(&t->latency, latency);
    if (end == BENCH_OK && (slo == 0 || latency <= slo)) t->met++;
}

static void count(RunState *p, uint32_t model, BenchOutcome end, TimeNs latency,
                  const char *reason) {
    BenchTally *t = &p->result->tallies[model];
    TimeNs      slo = p->bench->models[model].slo_ns;
    count_end(t, slo, end, latency);
    count_end(p->result->all, slo, end, latency);
    if (end == BENCH_FAILED && t->reason[0] == '\0') memcpy(t->reason, reason, BENCH_REASON_BYTES);
    if (!p->sending || !is_infeasible(p, model)) return;
    p->result->infeasible = true;
    p->sending = false;
    loop_stop(p->bench->loop);
}

static void send_next(RunState *p);

static void done(void *self, ClientCall *call, const ClientReply *r) {
    Call        *c = self;
    RunState    *p = c->state;
    char         reason[BENCH_REASON_BYTES] = "";
    TimeNs       latency = clock_now(clock_monotonic()) - c->due;
    BenchOutcome end = bench_classify(p->bench, r, reason);
    if (measured(p, c->due)) {
        hist_record(p->result->wait, call->sent > 0 ? call->sent - call->submitted : 0);
        count(p, c->model, end, latency, reason);
    }
    if (p->run->records != NULL) write_record(p, c, end, latency);
    c->next_free = p->free;
    p->free = c;
    p->open--;
    if (p->run->closed > 0 && p->sending) send_next(p);
    if (p->open == 0 && !p->sending) loop_stop(p->bench->loop);
}

static Call *take_call(RunState *p) {
    Call *c = p->free;
    if (c != NULL)
        p->free = c->next_free;
    else if (p->used < IN_FLIGHT_MAX)
        c = &p->calls[p->used++];
    return c;
}

static void send_one(RunState *p, uint32_t model, TimeNs due) {
    Call *c = take_call(p);
    bool  counts = measured(p, due);
    p->last = due;
    if (counts) {
        p->counted++;
        p->result->tallies[model].sent++;
        p->result->all->sent++;
    }
    if (c == NULL) {
        static const char full[BENCH_REASON_BYTES] = "not sent: too many requests in flight";
        if (counts) count(p, model, BENCH_FAILED, 0, full);
        return;
    }
    *c = (Call){.call = {.request = &p->bench->models[model].request,
                         .keep = p->bench->check ? SIZE_MAX : KEEP,
                         .done = done,
                         .self = c},
                .state = p,
                .due = due,
                .model = model};
    p->open++;
    client_submit(p->clients[model], &c->call);
    if (counts) hist_record(p->result->lag, c->call.submitted - due);
}

// The earliest of the models' next arrivals; false: none is left.
static bool peek(const RunState *p, TimeNs *due, uint32_t *model) {
    if (p->run->requests > 0 && p->counted >= p->run->requests) return false;
    if (p->run->arrivals != NULL) {
        if (p->listed == p->run->n_arrivals) return false;
        *due = p->start + p->run->arrivals[p->listed].at;
        *model = p->run->arrivals[p->listed].model;
        return *due < p->end;
    }
    uint32_t first = 0;
    for (uint32_t i = 1; i < p->bench->n_models; i++)
        if (p->due_s[i] < p->due_s[first]) first = i;
    *model = first;
    if (p->due_s[first] * 1e9 >= (double)(p->end - p->start)) return false;
    *due = p->start + (TimeNs)(p->due_s[first] * 1e9);
    return true;
}

static void step(RunState *p, uint32_t model) {
    p->listed++;
    if (p->run->arrivals == NULL) p->due_s[model] += rng_exp(&p->rng[model]) / p->rates[model];
}

// Closed loop: the next model is drawn by weight, and its request is sent at once.
static void send_next(RunState *p) {
    TimeNs   now = clock_now(clock_monotonic());
    double   all = 0;
    uint32_t model = 0;
    if (now >= p->end || (p->run->requests > 0 && p->counted >= p->run->requests)) {
        p->sending = false;
        return;
    }
    for (uint32_t i = 0; i < p->bench->n_models; i++) all += p->bench->models[i].weight;
    double at = rng_unit64(&p->rng[0]) * all;
    while (model + 1 < p->bench->n_models && at >= p->bench->models[model].weight)
        at -= p->bench->models[model++].weight;
    send_one(p, model, now);
}

static void fire(void *self) {
    RunState *p = self;
    TimeNs    due = 0, now = clock_now(clock_monotonic());
    uint32_t  model = 0;
    for (uint32_t n = 0; p->sending; n++) {
        if (!peek(p, &due, &model)) {
            finish(p);
            return;
        }
        if (due > now || n == BATCH) break;  // responses are read in between
        step(p, model);
        send_one(p, model, due);
    }
    if (p->sending && loop_arm(p->bench->loop, &p->next, due) != ERR_OK) finish(p);
}

static void tick(void *self) {
    RunState *p = self;
    TimeNs    now = clock_now(clock_monotonic());
    if (stop_signal_due(p->start, 0)) {
        p->result->stopped = true;
        p->sending = false;
        loop_stop(p->bench->loop);
        return;
    }
    if (p->run->progress != NULL) p->run->progress(p->run->self, now - p->start, p->end - p->start);
    if (p->run->closed > 0 && now >= p->end) p->sending = false;
    if (p->open == 0 && !p->sending) loop_stop(p->bench->loop);
    if (loop_arm(p->bench->loop, &p->tick, now + TICK_NS) != ERR_OK) finish(p);
}

static void begin(RunState *p) {
    double all = 0;
    Rng    seed = {p->run->seed};
    for (uint32_t i = 0; i < p->bench->n_models; i++) all += p->bench->models[i].weight;
    for (uint32_t i = 0; i < p->bench->n_models; i++) {
        p->rng[i] = rng_fork(seed, i + 1);
        p->rates[i] = p->run->rate * p->bench->models[i].weight / all;
        if (p->run->rate > 0) p->due_s[i] = rng_exp(&p->rng[i]) / p->rates[i];
    }
    p->start = p->last = clock_now(clock_monotonic());
    p->end = p->start + p->run->warmup_ns + p->run->duration_ns;
    p->sending = true;
    p->next = (LoopTimer){.fire = fire, .self = p};
    p->tick = (LoopTimer){.fire = tick, .self = p};
}

static Err run_loop(RunState *p) {
    Loop *l = p->bench->loop;
    begin(p);
    TRY(loop_arm(l, &p->tick, p->start + TICK_NS));
    if (p->run->closed == 0) TRY(loop_arm(l, &p->next, p->start));
    for (uint32_t i = 0; i < p->run->closed && p->sending; i++) send_next(p);
    return loop_run(l);
}

static Err make_room(const Bench *b, Arena *a, BenchResult *r) {
    *r = (BenchResult){.tallies = arena_try_new(a, BenchTally, b->n_models),
                       .all = arena_try_new(a, BenchTally, 1),
                       .lag = arena_try_new(a, Hist, 1),
                       .wait = arena_try_new(a, Hist, 1)};
    if (r->tallies == NULL || r->all == NULL || r->lag == NULL || r->wait == NULL)
        return err_set(ERR_LIMIT, "no memory for the results of %u models", b->n_models);
    return ERR_OK;
}

static Err open_clients(RunState *p) {
    const Bench  *b = p->bench;
    ClientOptions o = {.host = b->url.host,
                       .port = b->url.port,
                       .protocol = b->url.protocol,
                       .connections = b->connections,
                       .timeout_ns = b->timeout_ns};
    for (uint32_t i = 0; i < b->n_models; i++) TRY(client_create(&p->clients[i], b->loop, &o));
    return ERR_OK;
}

static void close_clients(RunState *p) {
    for (uint32_t i = 0; i < p->bench->n_models; i++) {
        if (p->clients[i] == NULL) continue;
        ClientCounts one = client_counts(p->clients[i]), *all = &p->result->counts;
        all->connects += one.connects;
        all->retries += one.retries;
        all->waited += one.waited;
        client_destroy(p->clients[i]);
    }
}

static TimeNs span_of(const RunState *p) {
    bool early = p->result->stopped || p->result->infeasible || p->run->requests > 0;
    return (early && p->last < p->end ? p->last : p->end) - p->start - p->run->warmup_ns;
}

Err bench_run(const Bench *b, const BenchRun *run, Arena *a, BenchResult *r) {
    TRY(make_room(b, a, r));
    RunState *p = calloc(1, sizeof *p);
    Call     *calls = calloc(IN_FLIGHT_MAX, sizeof *calls);
    Err e = p != NULL && calls != NULL ? ERR_OK : err_set(ERR_LIMIT, "no memory for requests");
    if (e == ERR_OK) {
        *p = (RunState){.bench = b, .run = run, .result = r, .calls = calls};
        e = open_clients(p);
        if (e == ERR_OK) e = run_loop(p);
        loop_disarm(b->loop, &p->next);
        loop_disarm(b->loop, &p->tick);
        r->span_ns = span_of(p);
        close_clients(p);
    }
    free(calls);
    free(p);
    return e;
}
