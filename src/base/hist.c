#include "base/hist.h"

#include <math.h>

// With one writer a relaxed load and store replaces an atomic add.
#define GET(x)    atomic_load_explicit(&(x), memory_order_relaxed)
#define SET(x, v) atomic_store_explicit(&(x), (v), memory_order_relaxed)

static uint32_t bucket_of(uint64_t v) {
    if (v < 1u << HIST_BITS) return (uint32_t)v;
    uint32_t top = 63 - (uint32_t)__builtin_clzll(v), shift = top - HIST_BITS;
    return (shift << HIST_BITS) + (uint32_t)(v >> shift);  // v >> shift is in 64..127
}

static uint64_t bucket_middle(uint32_t b) {
    if (b < 2u << HIST_BITS) return b;
    uint32_t shift = (b >> HIST_BITS) - 1;
    uint64_t low = ((uint64_t)(b & ((1u << HIST_BITS) - 1)) | 1u << HIST_BITS) << shift;
    return low + (UINT64_C(1) << shift) / 2;
}

// Last: a reader that sees the count also sees min, max and the buckets.
static void publish(Hist *h, uint64_t count) {
    atomic_store_explicit(&h->count, count, memory_order_release);
}

static void widen(Hist *h, int64_t low, int64_t high) {
    if (GET(h->count) == 0 || low < GET(h->min)) SET(h->min, low);
    if (GET(h->count) == 0 || high > GET(h->max)) SET(h->max, high);
}

void hist_record(Hist *h, TimeNs value) {
    if (value < 0) value = 0;
    uint32_t b = bucket_of((uint64_t)value);
    widen(h, value, value);
    SET(h->counts[b], GET(h->counts[b]) + 1);
    SET(h->sum, GET(h->sum) + (double)value);
    publish(h, GET(h->count) + 1);
}

uint64_t hist_count(const Hist *h) { return atomic_load_explicit(&h->count, memory_order_acquire); }

double hist_sum(const Hist *h) { return GET(h->sum); }
TimeNs hist_min(const Hist *h) { return hist_count(h) > 0 ? GET(h->min) : 0; }
TimeNs hist_max(const Hist *h) { return hist_count(h) > 0 ? GET(h->max) : 0; }

TimeNs hist_percentile(const Hist *h, double p) {
    uint64_t count = hist_count(h), seen = 0;
    double   rank = ceil(p * (double)count / 100 - 1e-9);
    int64_t  low = hist_min(h), high = hist_max(h);
    if (count == 0 || !(rank > 1)) return low;
    if (rank >= (double)count) return high;
    for (uint32_t b = 0; b < HIST_BUCKETS; b++) {
        seen += GET(h->counts[b]);
        if ((double)seen < rank) continue;
        int64_t middle = (int64_t)bucket_middle(b);
        return middle < low ? low : middle > high ? high : middle;
    }
    return high;
}
