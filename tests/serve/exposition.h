// Exposition: a strict parser of Prometheus' text format, with lookup of values.
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/tensor.h"

typedef struct Sample {
    const char *name, *labels;  // labels: as written between the braces; ""
    double      value;
} Sample;

typedef struct Exposition {
    Sample  *samples;
    uint32_t n;
    char     fault[256];  // "": none
} Exposition;

// Checks lines, names, labels, escapes, HELP and TYPE once and before their samples, contiguous
// families, unique samples, counters named _total, cumulative buckets.
void   exposition_read(Exposition *e, Str text, Arena *a);
double exposition_value(const Exposition *e, const char *name, const char *labels);  // NAN: none
// The first sample of a counter or bucket that is smaller in `after`, or NULL.
const char *exposition_shrunk(const Exposition *before, const Exposition *after);
