// Report: the duels as a table for people and as one JSON document for machines.
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "bench/ort/duel.h"

typedef struct Report {
    const char *version;  // ONNX Runtime's
    Rules       rules;
    Duel       *duels;  // [n]
    uint32_t    n;
} Report;

MUST_USE Err report_print(const Report *r, Arena *a, FILE *f);
MUST_USE Err report_json(const Report *r, json_t **out);  // the caller's
bool         report_clean(const Report *r);               // every duel was fought and agreed upon

// The geometric mean of ours / ONNX Runtime at that many threads; not a number when there is none.
double report_mean(const Report *r, int threads, bool medians);
