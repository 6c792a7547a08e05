// BenchTell: results of bench for people and for machines, and whether they are good enough.
#pragma once

#include <jansson.h>

#include "base/option_list.h"
#include "loadgen/bench_peak.h"

MUST_USE Err bench_print(const Bench *b, const BenchResult *r, Arena *a);  // to stdout
MUST_USE Err bench_csv(const Bench *b, const BenchResult *r, Arena *a);
void         bench_warn(const Bench *b, const BenchResult *r);  // to stderr
// A new document; NULL: no memory.
json_t *bench_json(const Bench *b, const BenchRun *run, const BenchResult *r);
json_t *bench_peak_json(const BenchPeak *p);

// "hit=95", "p99=50ms", "failed=0", "rate=100", checked for each model; each one missed is told on
// stderr and counted.
MUST_USE Err bench_thresholds(const Bench *b, const BenchResult *r, const ArgList *wishes,
                              uint32_t *missed);
