// Hist: how long things took, live: fixed memory, percentiles within 1 %, mergeable.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"

// Below 64 every value has its own bucket; above, each power of two is cut into 64 equal ones, so a
// bucket is at most 1/64 of its values wide and its middle at most 1/128 off.
enum { HIST_BITS = 6, HIST_BUCKETS = (63 - HIST_BITS + 1) << HIST_BITS };

typedef struct Hist {  // one thread writes, any thread may read; zeroed is empty
    _Atomic uint64_t counts[HIST_BUCKETS];
    _Atomic uint64_t count;
    _Atomic double   sum;
    _Atomic int64_t  min, max;  // mean nothing while count is 0
} Hist;

void hist_record(Hist *h, TimeNs value);        // no lock, no memory; negative counts as 0
void hist_merge(Hist *into, const Hist *from);  // from may be written to meanwhile
void hist_reset(Hist *h);                       // by the writer

uint64_t hist_count(const Hist *h);
double   hist_sum(const Hist *h);
TimeNs   hist_min(const Hist *h);  // 0 when empty, as are the next two
TimeNs   hist_max(const Hist *h);
TimeNs   hist_percentile(const Hist *h, double p);  // nearest rank; between min and max
