#include "node/live/stolen_time.h"

#include <math.h>
#include <stdbool.h>

// Below this share of the CPU, other processes lengthen the queue in proportion; above, they may be
// the reason that there is one.
static const double much = 0.25;
// A wait of which less than this share would remain without them is theirs, even if it alone misses
// the target.
static const double little = 0.25;

TimeNs stolen_time_arrive(StolenTime *s, double work_ns, uint32_t cores, TimeNs now) {
    if (s->since == 0) {
        s->since = now;
        s->at = now;
    }
    s->backlog = fmax(s->backlog - (double)(now - s->at) * cores, 0);
    s->at = now;
    double before = s->backlog;
    s->backlog += work_ns;
    return (TimeNs)(before / cores);
}

void stolen_time_take(StolenTime *s, double core_ns) {
    if (s->since != 0) s->taken += core_ns;
}

void stolen_time_idle(StolenTime *s) { *s = (StolenTime){0}; }

StolenWait stolen_time_wait(const StolenTime *s, StolenQuestion q) {
    double span = (double)(q.now - s->since) * q.cores, wait = (double)q.wait;
    if (s->since == 0 || !(span > 0) || !(s->taken + q.running > 0)) return (StolenWait){0};
    double     taken = fmin(s->taken + q.running, span), share = taken / span;
    double     most = share < much ? share * wait : taken / q.cores;
    double     ns = fmin(fmin(wait - (double)q.least, wait), most);
    StolenWait out = {.taken = (TimeNs)taken, .of_ns = (TimeNs)span};
    bool       caused = q.least < q.target || (double)q.least < little * wait;
    if (caused && ns > 0) out.ns = (TimeNs)ns;
    return out;
}
