// Bench: an open-loop load generator for servers of the Open Inference Protocol, REST or gRPC.
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "base/hist.h"
#include "base/option_list.h"
#include "base/rng.h"
#include "net/client.h"
#include "serve/tensor/infer_request.h"

enum { BENCH_MODELS = 64, BENCH_REASON_BYTES = 200 };

typedef enum BenchProtocol { BENCH_REST, BENCH_JSON, BENCH_GRPC } BenchProtocol;

typedef struct BenchModel {
    const char   *name;
    double        weight;      // share of the rate, or the rate itself
    TimeNs        slo_ns;      // 0: none
    int64_t       timeout_us;  // parameters.timeout; 0: none
    int64_t       priority;    // parameters.priority; 0: none
    TensorSpec   *inputs;      // as the server declares them, then as they are sent
    uint32_t      n_inputs;
    ClientRequest request;
} BenchModel;

typedef struct Bench {  // what is sent, and to which server
    Loop         *loop;
    ClientUrl     url;
    BenchProtocol protocol;
    BenchModel    models[BENCH_MODELS];
    uint32_t      n_models;
    uint32_t      connections;  // of each model, at most
    TimeNs        timeout_ns;   // of one response
    bool          check;        // parse responses and require finite outputs
} Bench;

typedef enum BenchOutcome {
    BENCH_OK,
    BENCH_REJECTED,  // by admission control: 503, 429, RESOURCE_EXHAUSTED, UNAVAILABLE
    BENCH_EXPIRED,   // past its deadline: 504, 408, DEADLINE_EXCEEDED
    BENCH_FAILED,
    BENCH_OUTCOMES
} BenchOutcome;

typedef struct BenchTally {  // of one model, or of all
    uint64_t sent, met, outcomes[BENCH_OUTCOMES];
    Hist     latency;                     // of OK responses, from the arrival time of the request
    char     reason[BENCH_REASON_BYTES];  // of the first failure
} BenchTally;

typedef struct BenchArrival {
    TimeNs   at;
    uint32_t model;
} BenchArrival;

typedef struct BenchRun {
    double              rate;      // of all models together; 0: closed loop or arrivals
    uint32_t            closed;    // closed loop with so many requests in flight; 0: open loop
    const BenchArrival *arrivals;  // [n_arrivals] by time; NULL: Poisson process
    uint64_t            n_arrivals;
    TimeNs              warmup_ns, duration_ns;
    uint64_t            requests;  // after warm-up; 0: no limit
    uint64_t            seed;
    double              min_hit;  // percent; ends once a model cannot reach it; 0: runs to the end
    FILE               *records;  // a CSV row per request; NULL: none
    void (*progress)(void *self, TimeNs done, TimeNs of);  // NULL: none
    void *self;
} BenchRun;

typedef struct BenchResult {
    BenchTally  *tallies;  // [n_models]
    BenchTally  *all;
    Hist        *lag;      // from arrival time to sending: delay of the generator itself
    Hist        *wait;     // for a connection
    TimeNs       span_ns;  // of sending, without warm-up
    ClientCounts counts;
    bool         infeasible;  // ended early: min_hit was out of reach
    bool         stopped;     // ended early by a signal
} BenchResult;

// bench_options.c: texts of options. "50ms", "0.5s", "200us"; a bare number counts `bare` ns.
MUST_USE Err bench_time(const char *option, const char *text, double bare, TimeNs *out);
// "a,b:5": names with shares or rates; *rated: how many have one.
MUST_USE Err bench_models(const char *text, Arena *a, Bench *b, uint32_t *rated);
// "50ms" for all models, or "a:50ms,b:20ms"; text NULL: nothing is set.
MUST_USE Err bench_each(const char *option, const char *text, Arena *a, Bench *b,
                        Err (*set)(const char *option, BenchModel *m, const char *value));
MUST_USE Err bench_priority(const char *option, BenchModel *m,
                            const char *value);  // for bench_each
// Rows "seconds,model" in any order, further columns ignored; models not yet in b are added.
MUST_USE Err bench_arrivals(const char *path, Arena *a, Bench *b, BenchArrival **out, uint64_t *n);

typedef struct BenchShapes {
    int64_t            batch;   // for open first dimensions
    const char *const *shapes;  // [n] "INPUT:1x3x224x224" or "MODEL/INPUT:..."
    uint32_t           n;
} BenchShapes;

// bench_discover.c: models that the server lists. REST only.
MUST_USE Err bench_list(Bench *b, Arena *a);
// Reads the metadata of every model, sets its shapes, and prepares one request with random inputs;
// a model without an SLO gets the target that the server reports.
MUST_USE Err bench_prepare(Bench *b, const BenchShapes *s, Rng rng, Arena *a);

// bench_run.c: memory of r is the arena's. ERR_IO only if the event loop fails: failures of the
// server are counted.
MUST_USE Err bench_run(const Bench *b, const BenchRun *run, Arena *a, BenchResult *r);
double       bench_hit_percent(const BenchTally *t);  // in time; NaN without requests

// bench_output.c
MUST_USE Err bench_print(const Bench *b, const BenchResult *r, Arena *a, FILE *f);
MUST_USE Err bench_csv(const Bench *b, const BenchResult *r, Arena *a, FILE *f);
void         bench_warn(const Bench *b, const BenchResult *r, FILE *f);
json_t      *bench_json(const Bench *b, const BenchRun *run, const BenchResult *r);  // new; or NULL
// "hit=95", "p99=50ms", "failed=0", "rate=100", checked for each model; writes a line to f for each
// one missed, and counts them. r NULL: only the syntax is checked.
MUST_USE Err bench_thresholds(const Bench *b, const BenchResult *r, const ArgList *thresholds,
                              FILE *f, uint32_t *missed);
