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
    bool                    halted;
} Search;

static bool over(const Search *s) {
    return s->halted || s->peak->n_probes == PEAK_PROBES ||
           clock_now(clock_monotonic()) - s->start >= s->options->budget_ns;
}

static double worst(const Bench *b, const BenchResult *r) {
    double low = 100;
    for (uint32_t i = 0; i < b->n_models; i++)
        if (r->tallies[i].sent > 0 && bench_hit(&r->tallies[i]) < low)
            low = bench_hit(&r->tallies[i]);
    return r->all->sent > 0 ? low : 0;
}

// A server that was given too much gets a moment to forget it.
static void rest(bool met) {
    struct timespec t = {.tv_nsec = met ? 50000000 : 400000000};
    (void)nanosleep(&t, NULL);
}

static Err probe(Search *s, double rate, bool confirms, bool *met) {
    BenchPeak *p = s->peak;
    BenchRun   run = *s->run;
    run.rate = rate;
    run.closed = 0;
    run.hopeless = s->options->percentile;
    run.seed += p->n_probes;
    TRY(bench_run(s->bench, &run, s->arena, &s->last));
    s->halted = s->last.halted;
    double hit = worst(s->bench, &s->last);
    *met = !s->last.hopeless && !s->halted && hit >= s->options->percentile;
    if (*met) p->best = s->last;
    if (s->halted) return ERR_OK;
    p->probes[p->n_probes++] =
        (BenchProbe){.rate = rate, .hit = hit, .met = *met, .confirms = confirms};
    if (s->options->probed != NULL) s->options->probed(s->options->self, rate, hit, *met);
    rest(*met);
    return ERR_OK;
}

// What the server does when there is always work: a first guess, and no more than that.
static Err guess(Search *s, double *rate) {
    BenchRun run = *s->run;
    *rate = s->options->start;
    if (*rate > 0) return ERR_OK;
    run.closed = 4;
    run.rate = 0;
    run.requests = 0;
    run.warmup_ns = INT64_C(300) * 1000 * 1000;
    run.duration_ns = INT64_C(2) * 1000 * 1000 * 1000;
    TRY(bench_run(s->bench, &run, s->arena, &s->last));
    s->halted = s->last.halted;
    double seconds = (double)s->last.span_ns / 1e9;
    *rate = seconds > 0 ? (double)s->last.all->ends[BENCH_OK] / seconds / 2 : 0;
    if (*rate < 0.5) *rate = 0.5;
    rest(true);
    return ERR_OK;
}

// Doubles or halves until one rate is met and one is not. high: 0 when none failed.
static Err bracket(Search *s, double rate, double *low, double *high) {
    *low = *high = 0;
    while (!over(s) && (*low == 0 || *high == 0)) {
        bool met = false;
        TRY(probe(s, rate, false, &met));
        if (s->halted) break;
        *(met ? low : high) = rate;
        rate = met ? rate * (*high > 0 ? 1 : 2) : rate / 2;
        if (rate < 0.05 || rate > 1e7) break;
    }
    return ERR_OK;
}

static Err narrow(Search *s, double *low, double *high) {
    while (!over(s) && *low > 0 && *high > 0 && *high - *low > s->options->precision * *low) {
        bool   met = false;
        double middle = sqrt(*low * *high);
        TRY(probe(s, middle, false, &met));
        if (s->halted) break;
        *(met ? low : high) = middle;
    }
    s->peak->in_time = *low > 0 && *high > 0 && *high - *low <= s->options->precision * *low;
    return ERR_OK;
}

// One lucky run is not enough; each that fails takes the rate down by a step.
static Err confirm(Search *s, double low) {
    s->peak->rate = low;
    for (uint32_t i = 0; i < CONFIRMATIONS && s->peak->rate > 0 && !over(s); i++) {
        bool met = false;
        TRY(probe(s, s->peak->rate, true, &met));
        s->peak->confirmed = met;
        if (met || s->halted) break;
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
    TRY(guess(&s, &rate));
    TRY(bracket(&s, rate, &low, &high));
    TRY(narrow(&s, &low, &high));
    return confirm(&s, low);
}
