#include "bench/ort/worker.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/cpu.h"

enum { WARM_RUNS = 3, REASON_BYTES = 1024, LEAVE = 0 };

typedef struct Hello {  // first message of a worker; its outputs follow, each a Tensor and its
                        // bytes
    Err      err;
    uint32_t n_outputs;
    bool     quantised;
    char     reason[REASON_BYTES];
} Hello;

static Err send_outputs(const Tensor *outputs, uint32_t n, int fd) {
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = 0;
        TRY(tensor_measure(&outputs[i], &bytes));
        TRY(child_send(fd, &outputs[i], sizeof outputs[i]));
        TRY(child_send(fd, outputs[i].data, bytes));
    }
    return ERR_OK;
}

static Err take_outputs(int fd, Arena *a, Answer *out) {
    out->outputs = arena_new(a, Tensor, out->n);
    for (uint32_t i = 0; i < out->n; i++) {
        Tensor *t = &out->outputs[i];
        size_t  bytes = 0;
        TRY(child_take(fd, t, sizeof *t));
        TRY(tensor_alloc(t, a));
        TRY(tensor_measure(t, &bytes));
        TRY(child_take(fd, t->data, bytes));
    }
    return ERR_OK;
}

static Err warm_up(const Engine *e, void *state, Tensor *outputs) {
    for (int i = 0; i < WARM_RUNS; i++) TRY(e->run(state));
    return e->outputs(state, outputs);
}

static Err serve_bursts(const Engine *e, void *state, Arena *a, int in, int out) {
    Clock   clock = clock_monotonic();
    TimeNs *took = arena_new(a, TimeNs, WORKER_BURST_MAX);
    for (uint32_t n; child_take(in, &n, sizeof n) == ERR_OK && n != LEAVE;) {
        for (uint32_t i = 0; i < n; i++) {
            TimeNs start = clock_now(clock);
            TRY(e->run(state));
            took[i] = clock_now(clock) - start;
        }
        TRY(child_send(out, took, n * sizeof *took));
    }
    return ERR_OK;
}

static Err serve(const Engine *e, const char *path, const EngineOptions *cfg, int in, int out) {
    Arena   a = {0}, times = {0};
    Network n;
    void   *state = NULL;
    Tensor *outputs = NULL;
    Hello   hello = {0};
    hello.err = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (hello.err == ERR_OK) hello.err = arena_init(&times, WORKER_BURST_MAX * sizeof(TimeNs) + 64);
    if (hello.err == ERR_OK) hello.err = network_read(path, 1, &a, &n);
    if (hello.err == ERR_OK) {
        hello.n_outputs = n.model.graph->n_outputs;
        hello.quantised = n.quantised;
        outputs = arena_new(&a, Tensor, hello.n_outputs);
        hello.err = e->open(&n, cfg, &a, &state);
    }
    if (hello.err == ERR_OK) hello.err = warm_up(e, state, outputs);
    if (hello.err != ERR_OK) (void)snprintf(hello.reason, sizeof hello.reason, "%s", err_why());
    TRY(child_send(out, &hello, sizeof hello));
    TRY(hello.err);
    TRY(send_outputs(outputs, hello.n_outputs, out));
    TRY(serve_bursts(e, state, &times, in, out));
    e->close(state);
    return ERR_OK;
}

typedef struct Job {
    const Engine        *engine;
    const char          *path;
    const EngineOptions *cfg;
} Job;

static Err do_job(const void *of, int in, int out) {
    const Job *j = of;
    return serve(j->engine, j->path, j->cfg, in, out);
}

Err worker_start(Worker *w, const Engine *e, const char *path, const EngineOptions *cfg, Arena *a,
                 Answer *out) {
    Hello hello = {0};
    *w = (Worker){.name = e->name};
    TRY(child_start(&w->child, do_job, &(Job){e, path, cfg}));
    Err err = child_take(w->child.from, &hello, sizeof hello);
    if (err == ERR_OK && hello.err != ERR_OK) err = err_set(hello.err, "%s", hello.reason);
    *out = (Answer){.n = hello.n_outputs, .quantised = hello.quantised};
    if (err == ERR_OK) err = take_outputs(w->child.from, a, out);
    if (err == ERR_OK)
        child_hold(&w->child);
    else
        worker_end(w);
    return err == ERR_OK ? err : err_add(err, "%s", e->name);
}

Err worker_burst(Worker *w, uint32_t n, TimeNs *took) {
    child_wake(&w->child);
    Err e = child_send(w->child.to, &n, sizeof n);
    if (e == ERR_OK) e = child_take(w->child.from, took, n * sizeof *took);
    if (e == ERR_OK) child_hold(&w->child);
    return e == ERR_OK ? e : err_add(e, "%s", w->name);
}

void worker_end(Worker *w) {
    const uint32_t leave = LEAVE;
    child_end(&w->child, &leave, sizeof leave);
}
