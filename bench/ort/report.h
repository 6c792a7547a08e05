// Report: the measurements as a table or as one JSON document.
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "bench/ort/measurement.h"

typedef struct Report {
    const char       *version;  // ONNX Runtime's
    MeasurementParams params;
    Measurement      *measurements;  // [n]
    uint32_t          n;
} Report;

MUST_USE Err report_print(const Report *r, Arena *a, FILE *f);
MUST_USE Err report_json(const Report *r, json_t **out);  // the caller's
bool         report_clean(const Report *r);  // every measurement succeeded and outputs agree

// Geometric mean of cotenant's time / ONNX Runtime's at `threads` threads; NaN if there is none.
double report_mean(const Report *r, int threads, bool medians);
