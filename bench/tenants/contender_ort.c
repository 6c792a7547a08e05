// A common deployment of ONNX Runtime: a session and a thread per network, requests of a network in
// order of arrival. A session has one open shape, with input and output values for each length. A
// thread knows its arrival times in advance and sleeps until the next one, so
// that no load generator competes with it.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bench/ort/lib.h"
#include "bench/tenants/contender.h"

enum { LOG_ERRORS = 3, OPTIMISE_ALL = 99, SEQUENTIAL = 0, ALLOCATOR_ARENA = 1, MEMORY_DEFAULT = 0 };

typedef struct Values {  // of a run; outputs are allocated by the first run and reused
    void **in, **out;
} Values;

typedef struct Session {
    const Lib   *lib;
    Network      network;
    void        *session;
    const char **in_names, **out_names;
    Values      *values;  // [longest + 1] by length
    int64_t      longest;
} Session;

typedef struct Theirs {
    Lib      lib;
    void    *env, *memory;
    Session  sessions[MIX_TENANTS];
    uint32_t n;
} Theirs;

static Err set_options(const Lib *lib, int threads, void *o) {
    const char *spin = threads < 0 ? "0" : "1";
    TRY(lib_check(lib, lib->set_optimisation(o, OPTIMISE_ALL), "optimisation level"));
    TRY(lib_check(lib, lib->set_execution_mode(o, SEQUENTIAL), "execution mode"));
    TRY(lib_check(lib, lib->set_intra_threads(o, abs(threads)), "threads"));
    TRY(lib_check(lib, lib->set_inter_threads(o, 1), "threads"));
    TRY(lib_check(lib, lib->add_config(o, "session.intra_op.allow_spinning", spin), "spinning"));
    return lib_check(lib, lib->add_config(o, "session.set_denormal_as_zero", "1"), "denormals");
}

static Err create(const Theirs *t, int threads, Session *s) {
    const Lib *lib = &t->lib;
    void      *options = NULL;
    TRY(lib_check(lib, lib->create_options(&options), "options"));
    Err e = set_options(lib, threads, options);
    if (e == ERR_OK)
        e = lib_check(lib, lib->create_session(t->env, s->network.path, options, &s->session),
                      "loading");
    lib->release_options(options);
    return e;
}

static Err wrap_length(const Theirs *t, Session *s, int64_t length, Arena *a) {
    const Lib   *lib = s->lib;
    const Graph *g = s->network.model.graph;
    Tensor      *inputs = arena_new(a, Tensor, g->n_inputs);
    Values      *v = &s->values[length];
    *v = (Values){arena_new(a, void *, g->n_inputs), arena_new(a, void *, g->n_outputs)};
    network_inputs_at(&s->network, length, inputs);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const Tensor *x = &inputs[i];
        size_t        bytes = 0;
        TRY(tensor_measure(x, &bytes));
        TRY(lib_check(lib,
                      lib->tensor_with_data(t->memory, x->data, bytes, x->dims, (size_t)x->rank,
                                            (int)x->dtype, &v->in[i]),
                      "input"));
    }
    return ERR_OK;
}

static Err wrap(const Theirs *t, Session *s, Arena *a) {
    const Graph *g = s->network.model.graph;
    s->in_names = arena_new(a, const char *, g->n_inputs);
    s->out_names = arena_new(a, const char *, g->n_outputs);
    for (uint32_t i = 0; i < g->n_inputs; i++) s->in_names[i] = g->values[g->inputs[i]].name;
    for (uint32_t i = 0; i < g->n_outputs; i++) s->out_names[i] = g->values[g->outputs[i]].name;
    s->values = arena_new(a, Values, (size_t)s->longest + 1);
    for (int64_t length = 1; length <= s->longest; length++) TRY(wrap_length(t, s, length, a));
    return ERR_OK;
}

static Err run(Session *s, int64_t length) {
    const Graph  *g = s->network.model.graph;
    const Values *v = &s->values[length];
    return lib_check(s->lib,
                     s->lib->run(s->session, NULL, s->in_names, (const void *const *)v->in,
                                 g->n_inputs, s->out_names, g->n_outputs, v->out),
                     "run");
}

Err ort_open(const Contender *c, const ContenderOptions *cfg, Arena *a, void **state) {
    Theirs *t = arena_new(a, Theirs, 1);
    TRY(lib_open(cfg->lib, &t->lib));
    TRY(lib_check(&t->lib, t->lib.create_env(LOG_ERRORS, "bench", &t->env), "environment"));
    TRY(lib_check(&t->lib, t->lib.cpu_memory(ALLOCATOR_ARENA, MEMORY_DEFAULT, &t->memory),
                  "memory"));
    for (; t->n < cfg->n; t->n++) {
        Session *s = &t->sessions[t->n];
        s->lib = &t->lib;
        s->longest = cfg->longest[t->n] > 0 ? cfg->longest[t->n] : 1;
        TRY(network_read(cfg->files[t->n], s->longest, a, &s->network));
        TRY(create(t, c->option, s));
        TRY(wrap(t, s, a));
        for (int64_t length = 1; length <= s->longest; length++) TRY(run(s, length));
    }
    *state = t;
    return ERR_OK;
}

Err ort_alone(void *state, uint32_t tenant, TimeNs *took) {
    Theirs *t = state;
    TimeNs  start = clock_now(clock_monotonic());
    TRY(run(&t->sessions[tenant], t->sessions[tenant].longest));
    *took = clock_now(clock_monotonic()) - start;
    return ERR_OK;
}

typedef struct Round {  // of one trial, shared by the threads
    TimeNs           zero;
    RequestOutcome  *served;
    const Arrivals  *arrivals;
    uint32_t         enough;  // misses after which the trial has failed and ends
    _Atomic uint32_t missed;
    const Trial     *trial;
} Round;

typedef struct Thread {
    pthread_t id;
    Session  *session;
    Round    *round;
    uint32_t  tenant;
    Err       err;
    char      why[256];
} Thread;

static void sleep_until(TimeNs at) {
    struct timespec t = {at / 1000000000, at % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) continue;
}

static Err serve_one(const Thread *t, uint32_t i) {
    Round          *r = t->round;
    RequestOutcome *s = &r->served[i];
    s->arrival = r->zero + r->arrivals->at[i].at;
    if (clock_now(clock_monotonic()) < s->arrival) sleep_until(s->arrival);
    if (atomic_load_explicit(&r->missed, memory_order_relaxed) > r->enough) return ERR_OK;
    TRY(run(t->session, trial_length(r->trial, i, t->session->longest)));
    s->finish = clock_now(clock_monotonic());
    s->answered = true;
    if (s->finish - s->arrival > r->trial->qos_ns[t->tenant])
        atomic_fetch_add_explicit(&r->missed, 1, memory_order_relaxed);
    return ERR_OK;
}

static void *serve_tenant(void *self) {
    Thread *t = self;
    for (uint32_t i = 0; t->err == ERR_OK && i < t->round->arrivals->n; i++)
        if (t->round->arrivals->at[i].tenant == t->tenant) t->err = serve_one(t, i);
    if (t->err != ERR_OK) (void)snprintf(t->why, sizeof t->why, "%s", err_why());
    return NULL;
}

Err ort_serve(void *state, const Trial *trial, const Arrivals *arrivals, Arena *a,
              RequestOutcome *served, double *conflict_rate) {
    Theirs *t = state;
    Thread *threads = arena_new(a, Thread, t->n);
    Round   round = {.zero = clock_now(clock_monotonic()) + 10000000,
                     .served = served,
                     .arrivals = arrivals,
                     .enough = trial->n / 4,
                     .trial = trial};
    Err     e = ERR_OK;
    for (uint32_t i = 0; i < arrivals->n; i++)
        served[i] = (RequestOutcome){.tenant = arrivals->at[i].tenant};
    for (uint32_t i = 0; i < t->n; i++) {
        threads[i] = (Thread){.session = &t->sessions[i], .round = &round, .tenant = i};
        if (pthread_create(&threads[i].id, NULL, serve_tenant, &threads[i]) != 0) abort();
    }
    for (uint32_t i = 0; i < t->n; i++) {
        (void)pthread_join(threads[i].id, NULL);
        if (threads[i].err != ERR_OK) e = err_set(threads[i].err, "%s", threads[i].why);
    }
    *conflict_rate = 0;
    return e;
}
