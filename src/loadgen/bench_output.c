// Results of a bench run: table, CSV, JSON, warnings, thresholds.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "loadgen/bench_int.h"

static const Column columns[] = {
    {.key = "model", .head = "model"},
    {.key = "slo_ms", .head = "SLO", .unit = "ms", .decimals = 1},
    {.key = "sent", .head = "sent"},
    {.key = "ok", .head = "ok"},
    {.key = "rejected", .head = "rejected"},
    {.key = "expired", .head = "expired"},
    {.key = "failed", .head = "failed"},
    {.key = "rate", .head = "ok/s", .decimals = 1},
    {.key = "p50_ms", .head = "p50", .unit = "ms", .decimals = 2},
    {.key = "p90_ms", .head = "p90", .unit = "ms", .decimals = 2},
    {.key = "p95_ms", .head = "p95", .unit = "ms", .decimals = 2},
    {.key = "p99_ms", .head = "p99", .unit = "ms", .decimals = 2},
    {.key = "p99_9_ms", .head = "p99.9", .unit = "ms", .decimals = 2},
    {.key = "max_ms", .head = "max", .unit = "ms", .decimals = 2},
    {.key = "hit_percent", .head = "in time", .unit = "%", .decimals = 1},
};

static double percentile_ms(const Hist *h, double p) {
    if (hist_count(h) == 0) return NAN;
    return (double)(p >= 100 ? hist_max(h) : hist_percentile(h, p)) / 1e6;
}

static double rate_of(const BenchTally *t, TimeNs span) {
    return span > 0 ? (double)t->outcomes[BENCH_OK] * 1e9 / (double)span : NAN;
}

static void put_real(Table *t, double v) {
    if (isfinite(v))
        table_real(t, v);
    else
        table_missing(t);
}

static void put_row(Table *t, const char *name, TimeNs slo, const BenchTally *s, TimeNs span) {
    static const double ranks[] = {50, 90, 95, 99, 99.9, 100};
    table_text(t, name);
    put_real(t, slo > 0 ? (double)slo / 1e6 : NAN);
    table_int(t, (int64_t)s->sent);
    for (uint32_t i = 0; i < BENCH_OUTCOMES; i++) table_int(t, (int64_t)s->outcomes[i]);
    put_real(t, rate_of(s, span));
    for (uint32_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        put_real(t, percentile_ms(&s->latency, ranks[i]));
}

static bool has_slo(const Bench *b) {
    for (uint32_t i = 0; i < b->n_models; i++)
        if (b->models[i].slo_ns > 0) return true;
    return false;
}

static void put_rows(Table *t, const Bench *b, const BenchResult *r) {
    for (uint32_t i = 0; i < b->n_models; i++) {
        table_row(t);
        put_row(t, b->models[i].name, b->models[i].slo_ns, &r->tallies[i], r->span_ns);
        put_real(t, b->models[i].slo_ns > 0 ? bench_hit_percent(&r->tallies[i]) : NAN);
    }
    if (b->n_models < 2) return;
    table_total(t);
    put_row(t, "all", 0, r->all, r->span_ns);
    put_real(t, has_slo(b) ? bench_hit_percent(r->all) : NAN);
}

Err bench_csv(const Bench *b, const BenchResult *r, Arena *a, FILE *f) {
    Table t;
    table_init(&t, a, columns, sizeof columns / sizeof *columns);
    put_rows(&t, b, r);
    return table_csv(&t, f);
}

Err bench_print(const Bench *b, const BenchResult *r, Arena *a, FILE *f) {
    Table t;
    table_init(&t, a, columns, sizeof columns / sizeof *columns);
    put_rows(&t, b, r);
    TRY(table_print(&t, f));
    (void)fprintf(f, "\nlag of the generator: p99 %.3f ms, max %.3f ms; connections opened: %llu\n",
                  percentile_ms(r->lag, 99), percentile_ms(r->lag, 100),
                  (unsigned long long)r->counts.connects);
    return ERR_OK;
}

// Lag at p99 of at most a tenth of the tightest SLO, and 2 ms.
static bool kept_up(const Bench *b, const BenchResult *r) {
    double allowed = 2;
    for (uint32_t i = 0; i < b->n_models; i++)
        if (b->models[i].slo_ns > 0 && (double)b->models[i].slo_ns / 1e7 < allowed)
            allowed = (double)b->models[i].slo_ns / 1e7;
    return hist_count(r->lag) == 0 || percentile_ms(r->lag, 99) <= fmax(allowed, 0.2);
}

void bench_warn(const Bench *b, const BenchResult *r, FILE *f) {
    for (uint32_t i = 0; i < b->n_models; i++)
        if (r->tallies[i].reason[0] != '\0')
            fprintf(f, "cotenant: %s: %llu requests failed, the first with: %s\n",
                    b->models[i].name, (unsigned long long)r->tallies[i].outcomes[BENCH_FAILED],
                    r->tallies[i].reason);
    if (!kept_up(b, r))
        fprintf(f,
                "cotenant: the generator could not keep up: 1 %% of the requests were sent %.2f ms "
                "late or later; give it a core of its own, or lower the rate\n",
                percentile_ms(r->lag, 99));
    if (b->url.protocol == CLIENT_HTTP1 && r->counts.waited * 100 > r->all->sent &&
        hist_count(r->wait) > 0)
        fprintf(
            f,
            "cotenant: %llu requests waited for one of the %u connections of their model, 1 %% of "
            "all for %.2f ms or longer; raise --connections\n",
            (unsigned long long)r->counts.waited, b->connections, percentile_ms(r->wait, 99));
    if (r->stopped) fputs("cotenant: stopped early: these are the results so far\n", f);
}

static json_t *real(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *tally_json(const char *name, TimeNs slo, const BenchTally *t, TimeNs span,
                          bool has_target) {
    return json_pack(
        "{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:s}",
        "model", name, "slo_ms", real(slo > 0 ? (double)slo / 1e6 : NAN), "sent",
        (json_int_t)t->sent, "ok", (json_int_t)t->outcomes[BENCH_OK], "rejected",
        (json_int_t)t->outcomes[BENCH_REJECTED], "expired", (json_int_t)t->outcomes[BENCH_EXPIRED],
        "failed", (json_int_t)t->outcomes[BENCH_FAILED], "met",
        (json_int_t)(has_target ? t->met : 0), "rate", real(rate_of(t, span)), "mean_ms",
        real(hist_count(&t->latency) > 0
                 ? hist_sum(&t->latency) / (double)hist_count(&t->latency) / 1e6
                 : NAN),
        "p50_ms", real(percentile_ms(&t->latency, 50)), "p90_ms",
        real(percentile_ms(&t->latency, 90)), "p95_ms", real(percentile_ms(&t->latency, 95)),
        "p99_ms", real(percentile_ms(&t->latency, 99)), "p99_9_ms",
        real(percentile_ms(&t->latency, 99.9)), "max_ms", real(percentile_ms(&t->latency, 100)),
        "hit_percent", real(has_target ? bench_hit_percent(t) : NAN), "first_failure", t->reason);
}

static json_t *generator_json(const Bench *b, const BenchResult *r) {
    return json_pack("{s:o, s:o, s:o, s:I, s:I, s:I, s:b}", "lag_p99_ms",
                     real(percentile_ms(r->lag, 99)), "lag_max_ms",
                     real(percentile_ms(r->lag, 100)), "wait_p99_ms",
                     real(percentile_ms(r->wait, 99)), "connections",
                     (json_int_t)r->counts.connects, "waited", (json_int_t)r->counts.waited,
                     "retries", (json_int_t)r->counts.retries, "kept_up", kept_up(b, r));
}

json_t *bench_json(const Bench *b, const BenchRun *run, const BenchResult *r) {
    static const char *const protocols[] = {"rest", "json", "grpc"};
    json_t                  *models = json_array();
    for (uint32_t i = 0; i < b->n_models; i++)
        json_array_append_new(models,
                              tally_json(b->models[i].name, b->models[i].slo_ns, &r->tallies[i],
                                         r->span_ns, b->models[i].slo_ns > 0));
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:I, s:f, s:I, s:o, s:o, s:o}", "host", b->url.host, "protocol",
        protocols[b->protocol], "loop",
        run->closed > 0         ? "closed"
        : run->arrivals != NULL ? "arrivals"
                                : "open",
        "rate", real(run->rate > 0 ? run->rate : NAN), "closed", (json_int_t)run->closed, "seconds",
        (double)r->span_ns / 1e9, "seed", (json_int_t)run->seed, "models", models, "all",
        tally_json("all", 0, r->all, r->span_ns, has_slo(b)), "generator", generator_json(b, r));
}

typedef struct Threshold {
    const char *text;
    char        key[16];
    double      value;  // percent, requests per second, or milliseconds
    bool        at_least;
} Threshold;

static Err read_threshold(const char *text, Threshold *w) {
    const char *equals = strchr(text, '=');
    char       *end = NULL;
    TimeNs      t = 0;
    *w = (Threshold){.text = text};
    if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof w->key)
        return err_set(ERR_ARG, "--threshold '%s': expected hit=95, rate=100, failed=0 or p99=50ms",
                       text);
    memcpy(w->key, text, (size_t)(equals - text));
    w->at_least = strcmp(w->key, "hit") == 0 || strcmp(w->key, "rate") == 0;
    if (w->key[0] == 'p' || strcmp(w->key, "max") == 0) {
        double rank = w->key[0] == 'p' ? strtod(w->key + 1, &end) : 100;
        if (w->key[0] == 'p' && (end == w->key + 1 || *end != '\0' || !(rank > 0 && rank <= 100)))
            return err_set(ERR_ARG, "--threshold '%s': no such percentile", text);
        TRY(bench_time("threshold", equals + 1, 1e6, &t));
        w->value = (double)t / 1e6;
        return ERR_OK;
    }
    w->value = strtod(equals + 1, &end);
    if ((!w->at_least && strcmp(w->key, "failed") != 0) || end == equals + 1 || *end != '\0' ||
        !(w->value >= 0))
        return err_set(ERR_ARG, "--threshold '%s': expected hit=95, rate=100, failed=0 or p99=50ms",
                       text);
    return ERR_OK;
}

static double measured(const Threshold *w, const BenchTally *t, TimeNs span) {
    double   n = (double)t->sent;
    uint64_t bad = t->outcomes[BENCH_FAILED];
    if (strcmp(w->key, "hit") == 0) return bench_hit_percent(t);
    if (strcmp(w->key, "rate") == 0)
        return span > 0 ? (double)t->outcomes[BENCH_OK] * 1e9 / (double)span : NAN;
    if (strcmp(w->key, "failed") == 0) return n > 0 ? 100 * (double)bad / n : NAN;
    if (hist_count(&t->latency) == 0) return NAN;
    if (w->key[0] == 'p')
        return (double)hist_percentile(&t->latency, strtod(w->key + 1, NULL)) / 1e6;
    return (double)hist_max(&t->latency) / 1e6;
}

// A value that is not known misses too.
static bool missed_by(const Threshold *w, double v) {
    return !(w->at_least ? v >= w->value : v <= w->value);
}

Err bench_thresholds(const Bench *b, const BenchResult *r, const ArgList *thresholds, FILE *f,
                     uint32_t *missed) {
    *missed = 0;
    for (uint32_t i = 0; i < thresholds->n; i++) {
        Threshold w;
        TRY(read_threshold(thresholds->at[i], &w));
        for (uint32_t k = 0; r != NULL && k < b->n_models; k++) {
            double v = measured(&w, &r->tallies[k], r->span_ns);
            if (!missed_by(&w, v)) continue;
            fprintf(f, "cotenant: threshold %s missed by %s: %.3f\n", w.text, b->models[k].name, v);
            (*missed)++;
        }
    }
    return ERR_OK;
}
