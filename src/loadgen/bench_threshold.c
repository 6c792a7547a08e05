// Wishes like hit=95 or p99=50ms, held against what was measured.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/bench_options.h"
#include "loadgen/bench_output.h"

typedef struct Wish {
    const char *text;
    char        key[16];
    double      value;  // percent, requests a second, or milliseconds
    bool        at_least;
} Wish;

static Err read_wish(const char *text, Wish *w) {
    const char *mark = strchr(text, '=');
    char       *end = NULL;
    TimeNs      t = 0;
    *w = (Wish){.text = text};
    if (mark == NULL || mark == text || (size_t)(mark - text) >= sizeof w->key)
        return err_set(ERR_ARG, "--threshold '%s': expected hit=95, rate=100, failed=0 or p99=50ms",
                       text);
    memcpy(w->key, text, (size_t)(mark - text));
    w->at_least = strcmp(w->key, "hit") == 0 || strcmp(w->key, "rate") == 0;
    if (w->key[0] == 'p' || strcmp(w->key, "max") == 0) {
        double rank = w->key[0] == 'p' ? strtod(w->key + 1, &end) : 100;
        if (w->key[0] == 'p' && (end == w->key + 1 || *end != '\0' || !(rank > 0 && rank <= 100)))
            return err_set(ERR_ARG, "--threshold '%s': no such percentile", text);
        TRY(bench_time("threshold", mark + 1, 1e6, &t));
        w->value = (double)t / 1e6;
        return ERR_OK;
    }
    w->value = strtod(mark + 1, &end);
    if ((!w->at_least && strcmp(w->key, "failed") != 0) || end == mark + 1 || *end != '\0' ||
        !(w->value >= 0))
        return err_set(ERR_ARG, "--threshold '%s': expected hit=95, rate=100, failed=0 or p99=50ms",
                       text);
    return ERR_OK;
}

static double measured(const Wish *w, const BenchTally *t, TimeNs span) {
    double   n = (double)t->sent;
    uint64_t bad = t->ends[BENCH_FAILED];
    if (strcmp(w->key, "hit") == 0) return bench_hit(t);
    if (strcmp(w->key, "rate") == 0)
        return span > 0 ? (double)t->ends[BENCH_OK] * 1e9 / (double)span : NAN;
    if (strcmp(w->key, "failed") == 0) return n > 0 ? 100 * (double)bad / n : NAN;
    if (hist_count(&t->latency) == 0) return NAN;
    if (w->key[0] == 'p')
        return (double)hist_percentile(&t->latency, strtod(w->key + 1, NULL)) / 1e6;
    return (double)hist_max(&t->latency) / 1e6;
}

// Without a request nothing was shown, so that is a miss too.
static bool missed_by(const Wish *w, double v) {
    return !(w->at_least ? v >= w->value : v <= w->value);
}

Err bench_thresholds(const Bench *b, const BenchResult *r, const ArgList *wishes,
                     uint32_t *missed) {
    *missed = 0;
    for (uint32_t i = 0; i < wishes->n; i++) {
        Wish w;
        TRY(read_wish(wishes->at[i], &w));
        for (uint32_t k = 0; r != NULL && k < b->n_models; k++) {
            double v = measured(&w, &r->tallies[k], r->span_ns);
            if (!missed_by(&w, v)) continue;
            fprintf(stderr, "cotenant: threshold %s missed by %s: %.3f\n", w.text,
                    b->models[k].name, v);
            (*missed)++;
        }
    }
    return ERR_OK;
}
