// Bench: load on a server of the Open Inference Protocol, and what came of it.
#pragma once

#include <stdio.h>

#include "base/hist.h"
#include "base/rng.h"
#include "net/client.h"
#include "serve/tensor/infer_request.h"

enum { BENCH_MODELS = 64, BENCH_WHY = 200 };

typedef enum BenchForm { BENCH_REST, BENCH_JSON, BENCH_GRPC } BenchForm;

typedef struct BenchModel {
    const char   *name;
    double        weight;      // its share of the rate, or its rate
    TimeNs        slo_ns;      // 0: none
    int64_t       timeout_us;  // parameters.timeout; 0: none
    int64_t       priority;    // parameters.priority; 0: none
    TensorSpec   *inputs;      // as the server declares them, then as they are sent
    const char  **outputs;
    uint32_t      n_inputs, n_outputs;
    ClientRequest request;
} BenchModel;

typedef struct Bench {  // what is sent, and where
    Loop      *loop;
    ClientUrl  url;
    BenchForm  form;
    BenchModel models[BENCH_MODELS];
    uint32_t   n_models;
    uint32_t   connections;
    TimeNs     give_up_ns;  // for one answer
    bool       check;       // look into the answers
} Bench;

typedef enum BenchEnd {
    BENCH_OK,
    BENCH_REJECTED,
    BENCH_EXPIRED,
    BENCH_FAILED,
    BENCH_ENDS
} BenchEnd;

typedef struct BenchTally {  // of one model, or of all
    uint64_t sent, met, ends[BENCH_ENDS];
    Hist     latency;         // of those that are OK, from the moment they were due
    char     why[BENCH_WHY];  // the first that failed
} BenchTally;

typedef struct BenchArrival {
    TimeNs   at;
    uint32_t model;
} BenchArrival;

typedef struct BenchRun {
    double              rate;      // of all together; 0: closed loop or list
    uint32_t            closed;    // so many at once, the next when one is answered
    const BenchArrival *arrivals;  // [n_arrivals] in order; NULL: Poisson
    uint64_t            n_arrivals;
    TimeNs              warmup_ns, duration_ns;
    uint64_t            requests;  // after warm-up; 0: no limit
    uint64_t            seed;
    double              hopeless;  // ends early when fewer percent can be in time; 0: never
    FILE               *records;   // a row for each request; NULL: none
    void (*progress)(void *self, TimeNs done, TimeNs of);  // NULL: nobody looks
    void *self;
} BenchRun;

typedef struct BenchResult {
    BenchTally  *tallies;  // [n_models]
    BenchTally  *all;
    Hist        *lag;      // how late the generator was
    Hist        *wait;     // how long calls waited for a connection
    TimeNs       span_ns;  // of sending, without warm-up
    ClientCounts counts;
    bool         hopeless, halted;
} BenchResult;

// Memory of r is the arena's. ERR_IO only when the loop fails: what servers do is counted.
MUST_USE Err bench_run(const Bench *b, const BenchRun *run, Arena *a, BenchResult *r);

// How an answer is to be counted; why[BENCH_WHY] is written when it is BENCH_FAILED.
BenchEnd bench_classify(const Bench *b, const ClientReply *r, char *why);

double bench_hit(const BenchTally *t);  // percent in time; not a number without requests
