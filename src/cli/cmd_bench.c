// cotenant bench: open-loop load on a server, latencies and the share of responses in time.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/term.h"
#include "loadgen/bench_peak.h"
#include "cli/commands.h"
#include "base/stop_signal.h"

enum { EXIT_MISSED = 6 };

typedef struct Options {
    const char *url, *models, *slo, *protocol, *timeout, *priority, *arrivals, *records;
    const char *duration, *warmup, *response_timeout, *budget;
    ArgList     shapes, thresholds;
    double      rate, percentile, min_hit, precision;
    const char *max_p99;
    int64_t     batch, connections, seed, requests, closed;
    bool        find_max, check, csv, json;
} Options;

typedef struct Job {
    const Options *o;
    Arena          arena;
    Bench          bench;
    BenchRun       run;
    BenchPeak      peak;
    BenchResult    result;
    TimeNs         budget;
    AtomicFile     records;
    Progress       progress;
    int64_t        drawn;  // milliseconds
    bool           shows;
    ArgList        thresholds;
} Job;

static void draw_progress(void *self, TimeNs done, TimeNs of) {
    Job    *j = self;
    int64_t ms = (done < of ? done : of) / 1000000;
    progress_step(&j->progress, ms - j->drawn);
    j->drawn = ms;
}

static void print_probe(void *self, double rate, double hit, bool met) {
    (void)self;
    fprintf(stderr, "%10.1f/s  %5.1f %% in time%s\n", rate, hit, met ? "" : ": over the limit");
}

static Err choose_protocol(const char *word, Bench *b) {
    bool grpc = b->url.protocol == CLIENT_HTTP2;
    b->protocol = grpc ? BENCH_GRPC : BENCH_REST;
    if (word == NULL) return ERR_OK;
    if (strcmp(word, "grpc") == 0) {
        b->protocol = BENCH_GRPC;
        b->url.protocol = CLIENT_HTTP2;
    } else if (grpc) {
        return err_set(ERR_ARG, "--protocol %s does not go with grpc://", word);
    } else if (strcmp(word, "json") == 0) {
        b->protocol = BENCH_JSON;
    } else if (strcmp(word, "rest") != 0) {
        return err_set(ERR_ARG, "--protocol %s: there are rest, json and grpc", word);
    }
    return ERR_OK;
}

static Err set_slo(const char *option, BenchModel *m, const char *value) {
    return bench_time(option, value, 1e6, &m->slo_ns);
}

static Err set_timeout(const char *option, BenchModel *m, const char *value) {
    TimeNs t = 0;
    TRY(bench_time(option, value, 1e6, &t));
    m->timeout_us = t / 1000;
    return ERR_OK;
}

static Err read_models(Job *j) {
    const Options *o = j->o;
    Bench         *b = &j->bench;
    BenchArrival  *arrivals = NULL;
    uint32_t       rated = 0;
    if (o->models != NULL) TRY(bench_models(o->models, &j->arena, b, &rated));
    if (o->arrivals != NULL) {
        TRY(bench_arrivals(o->arrivals, &j->arena, b, &arrivals, &j->run.n_arrivals));
        j->run.arrivals = arrivals;
    }
    if (b->n_models == 0) TRY(bench_list(b, &j->arena));
    TRY(bench_each("slo", o->slo, &j->arena, b, set_slo));
    TRY(bench_each("timeout", o->timeout, &j->arena, b, set_timeout));
    TRY(bench_each("priority", o->priority, &j->arena, b, bench_priority));
    j->run.rate = o->rate;
    if (o->rate > 0 || o->find_max || o->closed > 0 || o->arrivals != NULL) return ERR_OK;
    if (rated < b->n_models)
        return err_set(ERR_ARG,
                       "no load given: use --rate R, a rate for each model (--models a:30,b:5), "
                       "--closed N or --find-max");
    for (uint32_t i = 0; i < b->n_models; i++) j->run.rate += b->models[i].weight;
    return ERR_OK;
}

static Err read_times(Job *j) {
    const Options *o = j->o;
    TRY(bench_time("duration", o->duration, 1e9, &j->run.duration_ns));
    TRY(bench_time("give-up", o->response_timeout, 1e9, &j->bench.timeout_ns));
    TRY(bench_time("budget", o->budget, 1e9, &j->budget));
    if (strcmp(o->warmup, "0") != 0) TRY(bench_time("warmup", o->warmup, 1e9, &j->run.warmup_ns));
    if (o->arrivals != NULL && strcmp(o->duration, "10s") == 0)
        j->run.duration_ns = INT64_C(1) << 55;
    return ERR_OK;
}

static Err read_options(Job *j) {
    const Options *o = j->o;
    static char    hit[32], p99[64];
    j->thresholds = o->thresholds;
    (void)snprintf(hit, sizeof hit, "hit=%g", o->min_hit);
    (void)snprintf(p99, sizeof p99, "p99=%s", o->max_p99 != NULL ? o->max_p99 : "");
    if (o->min_hit >= 0 && j->thresholds.n < ARG_LIST_MAX)
        j->thresholds.at[j->thresholds.n++] = hit;
    if (o->max_p99 != NULL && j->thresholds.n < ARG_LIST_MAX)
        j->thresholds.at[j->thresholds.n++] = p99;
    uint32_t none = 0;
    TRY(bench_thresholds(&j->bench, NULL, &j->thresholds, stderr, &none));
    TRY(client_url(o->url, &j->arena, &j->bench.url));
    TRY(choose_protocol(o->protocol, &j->bench));
    TRY(read_times(j));
    if ((o->rate > 0) + o->find_max * (o->rate == 0) + (o->closed > 0) + (o->arrivals != NULL) > 1)
        return err_set(ERR_ARG, "--rate, --closed, --find-max and --arrivals exclude each other");
    j->bench.connections = (uint32_t)o->connections;
    j->bench.check = o->check;
    j->run.closed = (uint32_t)o->closed;
    j->run.requests = (uint64_t)o->requests;
    j->run.seed = (uint64_t)o->seed;
    return ERR_OK;
}

static Err need_slo(const Bench *b, const char *option) {
    for (uint32_t i = 0; i < b->n_models; i++)
        if (b->models[i].slo_ns == 0)
            return err_set(ERR_ARG, "%s: model '%s' has no target; give one with --slo", option,
                           b->models[i].name);
    return ERR_OK;
}

static Err measure_peak(Job *j) {
    const Options   *o = j->o;
    BenchPeakOptions p = {.start = o->rate,
                          .percentile = o->percentile,
                          .precision = o->precision / 100,
                          .budget_ns = j->budget,
                          .probed = print_probe};
    TRY(bench_peak(&j->bench, &j->run, &p, &j->arena, &j->peak));
    j->result = j->peak.best;
    return ERR_OK;
}

static Err measure_once(Job *j) {
    TimeNs all = j->run.warmup_ns + j->run.duration_ns;
    if (j->o->arrivals != NULL && j->run.arrivals[j->run.n_arrivals - 1].at < all)
        all = j->run.arrivals[j->run.n_arrivals - 1].at + 1;
    j->run.duration_ns = all - j->run.warmup_ns;
    if (j->run.duration_ns <= 0) return err_set(ERR_ARG, "--warmup is longer than the arrivals");
    j->shows = term_is_tty(stderr);
    if (j->shows) {
        progress_begin(&j->progress, stderr, clock_monotonic(), "sending", all / 1000000);
        j->run.progress = draw_progress;
        j->run.self = j;
    }
    if (j->o->records != NULL) {
        TRY(file_begin(&j->records, j->o->records));
        fputs("seconds,model,lag_ms,latency_ms,end\n", j->records.out);
        j->run.records = j->records.out;
    }
    Err e = bench_run(&j->bench, &j->run, &j->arena, &j->result);
    if (j->shows) progress_end(&j->progress);
    if (j->o->records == NULL) return e;
    if (e == ERR_OK) return file_commit(&j->records);
    file_drop(&j->records);
    return e;
}

static Err print_result(Job *j) {
    if (j->o->find_max && j->peak.rate == 0) {
        if (j->o->json) return ERR_OK;
        printf("no rate was found at which %g %% of the requests are in time\n", j->o->percentile);
        return ERR_OK;
    }
    if (j->o->json) return ERR_OK;
    if (j->o->csv) return bench_csv(&j->bench, &j->result, &j->arena, stdout);
    TRY(bench_print(&j->bench, &j->result, &j->arena, stdout));
    if (!j->o->find_max) return ERR_OK;
    printf("\n%.1f requests/s is the highest rate at which %g %% of each model's requests are in "
           "time%s%s\n",
           j->peak.rate, j->o->percentile, j->peak.confirmed ? "" : " (not confirmed)",
           j->peak.narrow ? "" : " (--budget ended before --precision was reached)");
    return ERR_OK;
}

static int print_json(const Job *j) {
    json_t *doc =
        j->result.all != NULL ? bench_json(&j->bench, &j->run, &j->result) : json_object();
    if (j->o->find_max && doc != NULL) json_object_set_new(doc, "peak", bench_peak_json(&j->peak));
    return command_json(doc);
}

static Err run_bench(Job *j, uint32_t *missed) {
    const Options *o = j->o;
    TRY(arena_init(&j->arena, (size_t)8 << 30));
    TRY(loop_create(&j->bench.loop));
    TRY(read_options(j));
    TRY(read_models(j));
    BenchShapes s = {o->batch, o->shapes.at, o->shapes.n};
    TRY(bench_prepare(&j->bench, &s, (Rng){(uint64_t)o->seed}, &j->arena));
    if (o->find_max) TRY(need_slo(&j->bench, "--find-max"));
    for (uint32_t i = 0; i < j->thresholds.n; i++)
        if (strncmp(j->thresholds.at[i], "hit=", 4) == 0)
            TRY(need_slo(&j->bench, "--threshold hit"));
    TRY(o->find_max ? measure_peak(j) : measure_once(j));
    TRY(print_result(j));
    if (j->result.all == NULL) {
        *missed = j->thresholds.n;
        return ERR_OK;
    }
    bench_warn(&j->bench, &j->result, stderr);
    return bench_thresholds(&j->bench, &j->result, &j->thresholds, stderr, missed);
}

// Connections are limited by the hard limit of open files only.
static void raise_limit(void) {
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0) return;
    r.rlim_cur = r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
}

static int run_command(const Options *o) {
    static Job j;
    uint32_t   missed = 0;
    j.o = o;
    stop_signal_listen();
    raise_limit();
    (void)prctl(PR_SET_TIMERSLACK, 1000);  // ns: timers fire at the arrival times
    Err e = run_bench(&j, &missed);
    int code = e == ERR_OK ? 0 : command_failed(e);
    if (e == ERR_OK && o->json) code = print_json(&j);
    loop_destroy(j.bench.loop);
    arena_finish(&j.arena);
    return code == 0 && missed > 0 ? EXIT_MISSED : code;
}

int cmd_bench(const Command *c, int argc, char **argv) {
    Options      o = {.duration = "10s",
                      .warmup = "1s",
                      .response_timeout = "30s",
                      .budget = "3min",
                      .percentile = 95,
                      .precision = 3,
                      .min_hit = -1,
                      .batch = 1,
                      .connections = 256,
                      .seed = 1};
    const ArgRow rows[] = {
        {"models", ARG_TEXT, &o.models, "LIST",
         "NAME[:RATE],... (default: all models that the server lists)", 0, 0},
        {"rate", ARG_REAL, &o.rate, "R",
         "total requests per second, split by the rates of --models or equally", 0, 10000000},
        {"find-max", ARG_FLAG, &o.find_max, NULL,
         "search the highest rate at which --percentile of the requests are in time", 0, 0},
        {"slo", ARG_TEXT, &o.slo, "TIME",
         "latency target: 50ms for all, or NAME:50ms,... (default: the server's)", 0, 0},
        {"duration", ARG_TEXT, &o.duration, "TIME",
         "time of sending after warm-up; a bare number is in seconds (default 10s)", 0, 0},
        {"warmup", ARG_TEXT, &o.warmup, "TIME",
         "time of sending that is not counted (default 1s; 0: none)", 0, 0},
        {"requests", ARG_INT, &o.requests, "N", "stop after N requests, if that is earlier", 1,
         INT64_MAX},
        {"protocol", ARG_TEXT, &o.protocol, "P",
         "rest (binary tensors), json, or grpc (implied by grpc://)", 0, 0},
        {"batch", ARG_INT, &o.batch, "N", "size of an open first dimension (default 1)", 1, 65536},
        {"shape", ARG_LIST, &o.shapes, "INPUT:1x3x8x8",
         "shape of an input; MODEL/INPUT:... of one model's", 0, 0},
        {"timeout", ARG_TEXT, &o.timeout, "TIME", "parameters.timeout, for all or NAME:TIME,...", 0,
         0},
        {"priority", ARG_TEXT, &o.priority, "N", "parameters.priority, for all or NAME:N,...", 0,
         0},
        {"closed", ARG_INT, &o.closed, "N", "closed loop with N requests in flight", 1, 65536},
        {"arrivals", ARG_TEXT, &o.arrivals, "FILE",
         "arrivals from a CSV file (seconds,model) instead of a rate", 0, 0},
        {"connections", ARG_INT, &o.connections, "N",
         "maximum connections of each model (default 256)", 1, 65536},
        {"give-up", ARG_TEXT, &o.response_timeout, "TIME", "timeout of one response (default 30s)",
         0, 0},
        {"seed", ARG_INT, &o.seed, "S", "seed of arrivals and inputs (default 1)", 0, INT64_MAX},
        {"percentile", ARG_REAL, &o.percentile, "P",
         "--find-max: percent of requests in time (default 95)", 1, 100},
        {"precision", ARG_REAL, &o.precision, "P",
         "--find-max: precision in percent of the rate (default 3)", 1, 50},
        {"budget", ARG_TEXT, &o.budget, "TIME",
         "--find-max: no run begins after this time (default 3min)", 0, 0},
        {"check", ARG_FLAG, &o.check, NULL, "parse responses and require finite outputs", 0, 0},
        {"threshold", ARG_LIST, &o.thresholds, "KEY=VALUE",
         "exit 6 unless met: hit=95, p99=50ms, rate=100, failed=0", 0, 0},
        {"min-hit", ARG_REAL, &o.min_hit, "P", "as --threshold hit=P", 0, 100},
        {"max-p99", ARG_TEXT, &o.max_p99, "TIME", "as --threshold p99=TIME", 0, 0},
        {"records", ARG_TEXT, &o.records, "FILE",
         "CSV file with a row per request; --arrivals reads it", 0, 0},
        {"csv", ARG_FLAG, &o.csv, NULL, "the table as CSV", 0, 0},
        {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
    };
    const char *rest[1] = {NULL};
    int code = args_parse(c, rows, sizeof rows / sizeof *rows, argc, argv, rest, 1, 1, NULL);
    if (code >= 0) return code;
    o.url = rest[0];
    return run_command(&o);
}
