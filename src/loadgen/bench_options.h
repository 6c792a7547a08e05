// BenchArgs: what bench's options say, one value for all models or one for each.
#pragma once

#include "loadgen/bench.h"

// "50ms", "0.5s", "200us"; a number alone is in `bare` nanoseconds.
MUST_USE Err bench_time(const char *option, const char *text, double bare, TimeNs *out);

// "a,b:5": names with shares or rates; *rated: how many have one.
MUST_USE Err bench_models(const char *text, Arena *a, Bench *b, uint32_t *rated);
// "50ms" or "a:50ms,b:20ms"; likewise priorities. NULL: nothing was said.
MUST_USE Err bench_each_time(const char *option, const char *text, Arena *a, Bench *b,
                             void (*set)(BenchModel *m, TimeNs t));
MUST_USE Err bench_each_number(const char *option, const char *text, Arena *a, Bench *b,
                               void (*set)(BenchModel *m, int64_t n));

// Rows "seconds,model" in any order, further columns ignored; models that are not in b join it.
MUST_USE Err bench_arrivals(const char *path, Arena *a, Bench *b, BenchArrival **out, uint64_t *n);
