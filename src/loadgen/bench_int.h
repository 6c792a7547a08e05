// What the files of the load generator share.
#pragma once

#include "loadgen/bench.h"

// bench_inputs.c: inputs as the server declares them, and bytes that fit.
MUST_USE Err bench_read_json(BenchModel *m, const char *body, size_t len, Arena *a);
MUST_USE Err bench_read_proto(BenchModel *m, const unsigned char *body, size_t len, Arena *a);
MUST_USE Err bench_set_shapes(BenchModel *m, const BenchShapes *s);
MUST_USE Err bench_fill(BenchModel *m, Rng *rng, Arena *a);
void         bench_set_target(BenchModel *m, double target_ms);  // unless the user gave an SLO

// bench_request.c: the body and headers of an inference request; shapes and bytes are set.
MUST_USE Err bench_make_request(const Bench *b, BenchModel *m, Arena *a);

// bench_response.c: reason[BENCH_REASON_BYTES] is written for BENCH_FAILED.
BenchOutcome bench_classify(const Bench *b, const ClientReply *r, char *reason);
