#include "loadgen/bench_peak.h"

#include <math.h>
#include <time.h>

#include "base/clock.h"

enum { CONFIRMATIONS = 4 };

typedef struct Search {
    const Bench            *bench;
    const BenchRun         *run;
    const BenchPeakOptions *options;
    Arena                  *arena;
    BenchPeak              *peak;
    TimeNs                  start;
    BenchResult             last;
    bool                    stopped;
} Search;

static bool is_over(const Search *s) {
    return s->stopped || s->peak->n_probes == PEAK_PROBES ||
           clock_now(clock_monotonic()) - s->start >= s->options->budget_ns;
}

static double worst_hit(const Bench *b, const BenchResult *r) {
    double low = 100;
    for (uint32_t i = 0; i < b->n_models; i++)
        if (r->tallies[i].sent > 0 && bench_hit_percent(&r->tallies[i]) < low)
            low = bench_hit_percent(&r->tallies[i]);
    return r->all->sent > 0 ? low : 0;
}

// After an overload the server gets time to empty its queues.
static void settle(bool met) {
    struct timespec t = {.tv_nsec = met ? 50000000 : 400000000};
    (void)nanosleep(&t, NULL);
}

static Err probe(Search *s, double rate, bool confirms, bool *met) {
    BenchPeak *p = s->peak;
    BenchRun   run = *s->run;
    run.rate = rate;
    run.closed = 0;
    run.min_hit = s->options->percentile;
    run.seed += p->n_probes;
    TRY(bench_run(s->bench, &run, s->arena, &s->last));
    s->stopped = s->last.stopped;
    double hit = worst_hit(s->bench, &s->last);
    *met = !s->last.infeasible && !s->stopped && hit >= s->options->percentile;
    if (*met) p->best = s->last;
    if (s->stopped) return ERR_OK;
    p->probes[p->n_probes++] =
        (BenchProbe){.rate = rate, .hit = hit, .met = *met, .confirms = confirms};
    if (s->options->probed != NULL) s->options->probed(s->options->self, rate, hit, *met);
    settle(*met);
    return ERR_OK;
}

// First rate: half the throughput of a closed loop with 4 requests in flight.
static Err first_rate(Search *s, double *rate) {
    BenchRun run = *s->run;
    *rate = s->options->start;
    if (*rate > 0) return ERR_OK;
    run.closed = 4;
    run.rate = 0;
    run.requests = 0;
    run.warmup_ns = INT64_C(300) * 1000 * 1000;
    run.duration_ns = INT64_C(2) * 1000 * 1000 * 1000;
    TRY(bench_run(s->bench, &run, s->arena, &s->last));
    s->stopped = s->last.stopped;
    double seconds = (double)s->last.span_ns / 1e9;
    *rate = seconds > 0 ? (double)s->last.all->outcomes[BENCH_OK] / seconds / 2 : 0;
    if (*rate < 0.5) *rate = 0.5;
    settle(true);
    return ERR_OK;
}

// Doubles or halves the rate until one meets the target and one does not; 0: none did.
static Err bracket(Search *s, double rate, double *low, double *high) {
    *low = *high = 0;
    while (!is_over(s) && (*low == 0 || *high == 0)) {
        bool met = false;
        TRY(probe(s, rate, false, &met));
        if (s->stopped) break;
        *(met ? low : high) = rate;
        rate = met ? rate * (*high > 0 ? 1 : 2) : rate / 2;
        if (rate < 0.05 || rate > 1e7) break;
    }
    return ERR_OK;
}

static Err narrow(Search *s, double *low, double *high) {
    while (!is_over(s) && *low > 0 && *high > 0 && *high - *low > s->options->precision * *low) {
        bool   met = false;
        double middle = sqrt(*low * *high);
        TRY(probe(s, middle, false, &met));
        if (s->stopped) break;
        *(met ? low : high) = middle;
    }
    s->peak->narrow = *low > 0 && *high > 0 && *high - *low <= s->options->precision * *low;
    return ERR_OK;
}

// Repeats the run with other arrivals; each failure lowers the rate by a step.
static Err confirm(Search *s, double low) {
    s->peak->rate = low;
    for (uint32_t i = 0; i < CONFIRMATIONS && s->peak->rate > 0 && !is_over(s); i++) {
        bool met = false;
        TRY(probe(s, s->peak->rate, true, &met));
        s->peak->confirmed = met;
        if (met || s->stopped) break;
        s->peak->rate /= 1 + 2 * s->options->precision;
    }
    return ERR_OK;
}

Err bench_peak(const Bench *b, const BenchRun *run, const BenchPeakOptions *o, Arena *a,
               BenchPeak *out) {
    Search s = {.bench = b,
                .run = run,
                .options = o,
                .arena = a,
                .peak = out,
                .start = clock_now(clock_monotonic())};
    double rate = 0, low = 0, high = 0;
    *out = (BenchPeak){0};
    TRY(first_rate(&s, &rate));
    TRY(bracket(&s, rate, &low, &high));
    TRY(narrow(&s, &low, &high));
    return confirm(&s, low);
}

json_t *bench_peak_json(const BenchPeak *p) {
    json_t *probes = json_array();
    for (uint32_t i = 0; i < p->n_probes; i++)
        json_array_append_new(probes,
                              json_pack("{s:f, s:f, s:b, s:b}", "rate", p->probes[i].rate,
                                        "hit_percent", p->probes[i].hit, "met", p->probes[i].met,
                                        "confirms", p->probes[i].confirms));
    return json_pack("{s:f, s:b, s:b, s:o}", "peak_rate", p->rate, "confirmed", p->confirmed,
                     "narrow", p->narrow, "probes", probes);
}
