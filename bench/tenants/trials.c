#include "bench/tenants/trials.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/peak.h"

typedef struct Results {  // of one mix
    ComparisonCell  *cell;
    ComparisonEntry *entries;  // [contenders]
    double          *values;   // [contender][seed][METRICS]
} Results;

enum { CALM = COMPARISON_EQUALS, LOADS = COMPARISON_EQUALS + 1 };

static bool is_peer(const Contender *c) { return strncmp(c->name, "ort_", 4) == 0; }

// Shortest latency of a network alone, over the contenders of one kind.
static TimeNs best_alone(const Trials *r, uint32_t tenant, bool peers) {
    TimeNs best = 0;
    for (uint32_t i = 0; i < r->n; i++)
        if (is_peer(r->contenders[i]) == peers && (best == 0 || r->alone[i][tenant] < best))
            best = r->alone[i][tenant];
    return best;
}

Err trials_open(Trials *r) {
    for (uint32_t i = 0; i < r->n; i++)
        TRY(contender_process_start(&r->processes[i], r->contenders[i], &r->cfg));
    for (uint32_t i = 0; i < r->n; i++)
        TRY(contender_process_alone(&r->processes[i], r->cfg.n, r->alone[i]));
    for (uint32_t t = 0; t < r->cfg.n; t++) {
        TimeNs ours = best_alone(r, t, false), theirs = best_alone(r, t, true);
        TimeNs least = (TimeNs)(r->params->least_qos_ms * 1e6);
        r->qos_ns[t] = mix_qos(ours > theirs ? ours : theirs, r->params->slack);
        if (r->qos_ns[t] < least) r->qos_ns[t] = least;
        (void)fprintf(stderr, "%s alone: ours %.2f ms, ONNX Runtime %.2f ms; QoS %.2f ms\n",
                      r->cfg.names[t], (double)ours / 1e6, (double)theirs / 1e6,
                      (double)r->qos_ns[t] / 1e6);
    }
    return ERR_OK;
}

void trials_close(Trials *r) {
    for (uint32_t i = 0; i < r->n; i++) contender_process_end(&r->processes[i]);
}

static Trial trial_of(const Trials *r, double rate, uint64_t seed) {
    Trial  t = {.rate = rate, .seed = seed};
    double n = rate * r->params->seconds;
    t.n = n > r->params->least_requests ? (uint32_t)n : r->params->least_requests;
    t.skip = t.n / 20;
    memcpy(t.qos_ns, r->qos_ns, sizeof t.qos_ns);
    return t;
}

static PeakRule peak_rule(const Trials *r) {
    PeakRule rule = PEAK_RULE_DEFAULT;
    double   mean_s = 0;
    for (uint32_t t = 0; t < r->cfg.n; t++)
        mean_s += (double)best_alone(r, t, false) / 1e9 / r->cfg.n;
    rule.target = r->params->target;
    rule.tolerance = r->params->tolerance;
    rule.start = 0.4 / mean_s;
    rule.least = rule.start / r->params->range;
    rule.most = rule.start * r->params->range;
    rule.trials = r->params->trials;
    return rule;
}

static Err try_rate(Trials *r, uint32_t contender, const Trial *t, Tally *out, double *ms,
                    uint32_t *n_ms) {
    TRY(contender_process_try(&r->processes[contender], t, out, ms, n_ms));
    if (!r->params->by_tenant) return ERR_OK;
    (void)fprintf(stderr, "%s %.4g/s: %.1f %% in time, p99 %.2f ms, conflicts %.2f, cores %.2f;",
                  r->contenders[contender]->name, t->rate, 100.0 * out->met / out->n, out->p99_ms,
                  out->conflict_rate, out->core_use);
    for (uint32_t i = 0; i < r->cfg.n; i++)
        if (out->tenant_n[i] > 0)
            (void)fprintf(stderr, " %s %.1f %%", r->cfg.names[i],
                          100.0 * out->tenant_met[i] / out->tenant_n[i]);
    (void)fputc('\n', stderr);
    return ERR_OK;
}

// One trial of each search at a time; the first contender changes from round to round.
static Err search_seed(Trials *r, uint64_t seed, Peak *peaks, Progress *p) {
    PeakRule rule = peak_rule(r);
    bool     done[TRIALS_CONTENDERS] = {false};
    uint32_t left = r->n;
    for (uint32_t i = 0; i < r->n; i++) peak_begin(&peaks[i], &rule);
    for (uint32_t turn = 0; left > 0; turn++) {
        for (uint32_t k = 0; k < r->n; k++) {
            uint32_t i = (k + turn) % r->n;
            double   rate = 0;
            Tally    tally;
            if (done[i]) continue;
            done[i] = !peak_next(&peaks[i], &rate);
            if (done[i]) {
                left--;
                progress_step(p, 1);
                continue;
            }
            Trial t = trial_of(r, rate, seed);
            TRY(try_rate(r, i, &t, &tally, NULL, NULL));
            peak_tell(&peaks[i], rate, (double)tally.met / tally.n);
        }
    }
    return ERR_OK;
}

static double *values_of(const Results *x, const Trials *r, uint32_t contender, uint32_t seed) {
    return &x->values[((size_t)contender * r->params->seeds + seed) * METRICS];
}

static double highest_rate(const Results *x, const Trials *r, uint32_t contender) {
    double rates[COMPARISON_SEEDS];
    for (uint32_t k = 0; k < r->params->seeds; k++)
        rates[k] = values_of(x, r, contender, k)[METRIC_QPS];
    return stats_mean(rates, r->params->seeds).mean;
}

static void keep_trials(const Peak *p, Curve *to, double *rates, double *hits) {
    for (uint32_t k = 0; k < p->n; k++, to->n++) {
        rates[to->n] = p->trials[k].rate;
        hits[to->n] = p->trials[k].hit_rate;
    }
    *to = (Curve){rates, hits, to->n};
}

static Err search(Trials *r, Progress *p, Arena *a, Results *x) {
    uint32_t seeds = r->params->seeds, room = seeds * PEAK_TRIALS;
    Peak    *peaks = arena_new(a, Peak, r->n);
    double  *rates = arena_new(a, double, (size_t)r->n *room);
    double  *hits = arena_new(a, double, (size_t)r->n *room);
    for (uint32_t s = 0; s < seeds; s++) {
        TRY(search_seed(r, s + 1, peaks, p));
        for (uint32_t i = 0; i < r->n; i++) {
            values_of(x, r, i, s)[METRIC_QPS] = peak_rate(&peaks[i]);
            keep_trials(&peaks[i], &x->entries[i].curves[CURVE_TRIALS], rates + (size_t)i * room,
                        hits + (size_t)i * room);
        }
    }
    return ERR_OK;
}

static void put_calm(const Tally *t, double *v) {
    v[METRIC_MEAN_MS] = t->mean_ms;
    v[METRIC_P99_MS] = t->p99_ms;
    v[METRIC_HIT_RATE] = (double)t->met / t->n;
    v[METRIC_CONFLICT_RATE] = t->conflict_rate;
    v[METRIC_CORE_USE] = t->core_use;
}

static Err run_load(Trials *r, uint32_t load, uint32_t seed, Arena *a, Results *x) {
    for (uint32_t k = 0; k < r->n; k++) {
        uint32_t         i = (k + seed) % r->n;
        const EqualLoad *equal = &x->cell->equal[load % COMPARISON_EQUALS];
        double  rate = load == CALM ? r->params->calm * highest_rate(x, r, i) : equal->rate;
        Curve  *latencies = &x->entries[i].curves[CURVE_LATENCY];
        double *v = values_of(x, r, i, seed - 1);
        Tally   tally;
        if (!(rate > 0)) continue;
        Trial   t = trial_of(r, rate, seed);
        double *ms = load == 0 && seed == 1 ? arena_new(a, double, t.n) : NULL;
        TRY(try_rate(r, i, &t, &tally, ms, ms != NULL ? &latencies->n : NULL));
        if (ms != NULL) latencies->y = ms;
        if (load == CALM) {
            put_calm(&tally, v);
        } else {
            v[equal->latency] = tally.mean_ms;
            v[equal->hit_rate] = (double)tally.met / tally.n;
        }
    }
    return ERR_OK;
}

static void describe(const Trials *r, const char *mix, Arena *a, ComparisonCell *out) {
    char *about = arena_str(a, "QoS:");
    for (uint32_t t = 0; t < r->cfg.n; t++)
        about = arena_printf(a, "%s%s %s %.4g ms", about, t > 0 ? "," : "", r->cfg.names[t],
                             (double)r->qos_ns[t] / 1e6);
    *out = (ComparisonCell){.title = mix,
                            .group = mix,
                            .about = about,
                            .fields = {{.key = "mix", .text = mix}},
                            .n_fields = 1,
                            .n_entries = r->n};
}

static Results make_results(const Trials *r, Arena *a, ComparisonCell *out) {
    size_t  n = (size_t)r->n * r->params->seeds * METRICS;
    Results x = {.cell = out,
                 .entries = arena_new(a, ComparisonEntry, r->n),
                 .values = arena_new(a, double, n)};
    for (size_t i = 0; i < n; i++) x.values[i] = NAN;
    for (uint32_t i = 0; i < r->n; i++) {
        x.entries[i].policy = r->contenders[i]->name;
        x.entries[i].values = values_of(&x, r, i, 0);
    }
    out->entries = x.entries;
    return x;
}

Err trials_run(Trials *r, const char *mix, const char *baseline, Progress *p, Arena *a,
               ComparisonCell *out) {
    uint32_t base = 0;
    describe(r, mix, a, out);
    Results x = make_results(r, a, out);
    TRY(search(r, p, a, &x));
    while (base < r->n && strcmp(r->contenders[base]->name, baseline) != 0) base++;
    if (base == r->n) base = 0;
    double of = highest_rate(&x, r, base);
    for (uint32_t i = 0; i < COMPARISON_EQUALS; i++)
        out->equal[i] = (EqualLoad){
            r->params->equal_share[i], of > 0 ? of * r->params->equal_share[i] : NAN,
            i == 0 ? METRIC_EQUAL_MS : METRIC_FULL_MS, i == 0 ? METRIC_EQUAL_HIT : METRIC_FULL_HIT};
    for (uint32_t s = 1; s <= r->params->seeds; s++)
        for (uint32_t load = 0; load < LOADS; load++) {
            TRY(run_load(r, load, s, a, &x));
            progress_step(p, 1);
        }
    return ERR_OK;
}
