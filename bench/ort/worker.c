#include "bench/ort/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"

enum { WARM_RUNS = 3, REASON_BYTES = 1024, LEAVE = 0 };

typedef struct Hello {  // what a worker says first; its outputs follow, each a Tensor and its bytes
    Err      err;
    uint32_t n_outputs;
    bool     quantised;
    char     reason[REASON_BYTES];
} Hello;

static Err send_bytes(int fd, const void *bytes, size_t n) {
    for (const char *at = bytes; n > 0;) {
        ssize_t put = write(fd, at, n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return err_set(ERR_IO, "the other process is gone");
        at += put;
        n -= (size_t)put;
    }
    return ERR_OK;
}

static Err take_bytes(int fd, void *bytes, size_t n) {
    for (char *at = bytes; n > 0;) {
        ssize_t got = read(fd, at, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return err_set(ERR_IO, "the other process is gone");
        at += got;
        n -= (size_t)got;
    }
    return ERR_OK;
}

static Err send_outputs(const Tensor *outputs, uint32_t n, int fd) {
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = 0;
        TRY(tensor_measure(&outputs[i], &bytes));
        TRY(send_bytes(fd, &outputs[i], sizeof outputs[i]));
        TRY(send_bytes(fd, outputs[i].data, bytes));
    }
    return ERR_OK;
}

static Err take_outputs(int fd, Arena *a, Answer *out) {
    out->outputs = arena_new(a, Tensor, out->n);
    for (uint32_t i = 0; i < out->n; i++) {
        Tensor *t = &out->outputs[i];
        size_t  bytes = 0;
        TRY(take_bytes(fd, t, sizeof *t));
        TRY(tensor_room(t, a));
        TRY(tensor_measure(t, &bytes));
        TRY(take_bytes(fd, t->data, bytes));
    }
    return ERR_OK;
}

static Err warm_up(const Engine *e, void *state, Tensor *outputs) {
    for (int i = 0; i < WARM_RUNS; i++) TRY(e->run(state));
    return e->outputs(state, outputs);
}

static Err serve_bursts(const Engine *e, void *state, Arena *a, int in, int out) {
    Clock   clock = clock_steady();
    TimeNs *took = arena_new(a, TimeNs, WORKER_BURST_MAX);
    for (uint32_t n; take_bytes(in, &n, sizeof n) == ERR_OK && n != LEAVE;) {
        for (uint32_t i = 0; i < n; i++) {
            TimeNs start = clock_now(clock);
            TRY(e->run(state));
            took[i] = clock_now(clock) - start;
        }
        TRY(send_bytes(out, took, n * sizeof *took));
    }
    return ERR_OK;
}

static Err serve(const Engine *e, const char *path, const Terms *terms, int in, int out) {
    Arena   a = {0}, times = {0};
    Network n;
    void   *state = NULL;
    Tensor *outputs = NULL;
    Hello   hello = {0};
    hello.err = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (hello.err == ERR_OK) hello.err = arena_init(&times, WORKER_BURST_MAX * sizeof(TimeNs) + 64);
    if (hello.err == ERR_OK) hello.err = network_read(path, &a, &n);
    if (hello.err == ERR_OK) {
        hello.n_outputs = n.model.graph->n_outputs;
        hello.quantised = n.quantised;
        outputs = arena_new(&a, Tensor, hello.n_outputs);
        hello.err = e->open(&n, terms, &a, &state);
    }
    if (hello.err == ERR_OK) hello.err = warm_up(e, state, outputs);
    if (hello.err != ERR_OK) (void)snprintf(hello.reason, sizeof hello.reason, "%s", err_why());
    TRY(send_bytes(out, &hello, sizeof hello));
    TRY(hello.err);
    TRY(send_outputs(outputs, hello.n_outputs, out));
    TRY(serve_bursts(e, state, &times, in, out));
    e->close(state);
    return ERR_OK;
}

static void hold(const Worker *w) {
    (void)kill(w->pid, SIGSTOP);
    (void)waitpid(w->pid, NULL, WUNTRACED);
}

static Err fork_worker(Worker *w, const Engine *e, const char *path, const Terms *terms) {
    int to[2], from[2];
    if (pipe(to) != 0) return err_set(ERR_IO, "no pipe: %s", strerror(errno));
    if (pipe(from) != 0) return err_set(ERR_IO, "no pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0) return err_set(ERR_IO, "no process: %s", strerror(errno));
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);  // a stopped worker must not outlive us
        (void)close(to[1]);
        (void)close(from[0]);
        _exit(serve(e, path, terms, to[0], from[1]) != ERR_OK);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    *w = (Worker){.name = e->name, .pid = pid, .to = to[1], .from = from[0]};
    return ERR_OK;
}

Err worker_start(Worker *w, const Engine *e, const char *path, const Terms *terms, Arena *a,
                 Answer *out) {
    Hello hello = {0};
    TRY(fork_worker(w, e, path, terms));
    Err err = take_bytes(w->from, &hello, sizeof hello);
    if (err == ERR_OK && hello.err != ERR_OK) err = err_set(hello.err, "%s", hello.reason);
    *out = (Answer){.n = hello.n_outputs, .quantised = hello.quantised};
    if (err == ERR_OK) err = take_outputs(w->from, a, out);
    if (err == ERR_OK)
        hold(w);
    else
        worker_end(w);
    return err == ERR_OK ? err : err_add(err, "%s", e->name);
}

Err worker_burst(Worker *w, uint32_t n, TimeNs *took) {
    (void)kill(w->pid, SIGCONT);
    Err e = send_bytes(w->to, &n, sizeof n);
    if (e == ERR_OK) e = take_bytes(w->from, took, n * sizeof *took);
    if (e == ERR_OK) hold(w);
    return e == ERR_OK ? e : err_add(e, "%s", w->name);
}

void worker_end(Worker *w) {
    if (w->pid == 0) return;
    const uint32_t leave = LEAVE;  // closing the pipe is not enough: later workers hold it too
    (void)kill(w->pid, SIGCONT);
    Err told = send_bytes(w->to, &leave, sizeof leave);
    (void)told;  // one that failed has left already
    (void)close(w->to);
    (void)close(w->from);
    (void)waitpid(w->pid, NULL, 0);
    *w = (Worker){0};
}
