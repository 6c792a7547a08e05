// BenchPort: what a server says about its models, and requests made from that.
#pragma once

#include "loadgen/bench.h"

typedef struct BenchShapes {
    int64_t            batch;   // of open first dimensions
    const char *const *shapes;  // [n] "INPUT:1x3x224x224" or "MODEL/INPUT:..."
    uint32_t           n;
} BenchShapes;

// All models that the server lists, when none was named. REST only.
MUST_USE Err bench_list(Bench *b, Arena *a);
// Reads metadata of every model, settles shapes, and prepares one request for each with random
// numbers; targets that are missing are asked for.
MUST_USE Err bench_prepare(Bench *b, const BenchShapes *s, Rng rng, Arena *a);

void bench_set_target(BenchModel *m,
                      double      target_ms);  // a server's word, where nobody said another
// The parts of it. Shapes of m->inputs are settled before a body is made.
MUST_USE Err bench_read_json(BenchModel *m, const char *body, size_t len, Arena *a);
MUST_USE Err bench_read_proto(BenchModel *m, const unsigned char *body, size_t len, Arena *a);
MUST_USE Err bench_fix_shapes(BenchModel *m, const BenchShapes *s);
MUST_USE Err bench_fill(BenchModel *m, Rng *rng, Arena *a);  // the inputs' bytes
MUST_USE Err bench_body(const Bench *b, BenchModel *m, Arena *a);
