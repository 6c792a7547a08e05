// Hist: a lock-free latency histogram (HDR style) of fixed size; percentiles are within 1 %.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"

// Values below 64 have a bucket each; above, each power of two is divided into 64 equal buckets, so
// that a bucket's middle is at most 1/128 off.
enum { HIST_BITS = 6, HIST_BUCKETS = (63 - HIST_BITS + 1) << HIST_BITS };

typedef struct Hist {  // one writer thread, any readers; zeroed is empty
    _Atomic uint64_t counts[HIST_BUCKETS];
    _Atomic uint64_t count;
    _Atomic double   sum;
    _Atomic int64_t  min, max;  // valid if count > 0
} Hist;

void hist_record(Hist *h, TimeNs value);  // negative values count as 0

uint64_t hist_count(const Hist *h);
double   hist_sum(const Hist *h);
TimeNs   hist_min(const Hist *h);  // 0 if empty, as are the next two
TimeNs   hist_max(const Hist *h);
TimeNs   hist_percentile(const Hist *h, double p);  // nearest rank; between min and max
