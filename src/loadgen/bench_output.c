#include "loadgen/bench_output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "loadgen/bench_options.h"

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
    return span > 0 ? (double)t->ends[BENCH_OK] * 1e9 / (double)span : NAN;
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
    for (uint32_t i = 0; i < BENCH_ENDS; i++) table_int(t, (int64_t)s->ends[i]);
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
        put_real(t, b->models[i].slo_ns > 0 ? bench_hit(&r->tallies[i]) : NAN);
    }
    if (b->n_models < 2) return;
    table_total(t);
    put_row(t, "all", 0, r->all, r->span_ns);
    put_real(t, has_slo(b) ? bench_hit(r->all) : NAN);
}

Err bench_csv(const Bench *b, const BenchResult *r, Arena *a) {
    Table t;
    table_init(&t, a, columns, sizeof columns / sizeof *columns);
    put_rows(&t, b, r);
    return table_csv(&t, stdout);
}

Err bench_print(const Bench *b, const BenchResult *r, Arena *a) {
    Table t;
    table_init(&t, a, columns, sizeof columns / sizeof *columns);
    put_rows(&t, b, r);
    TRY(table_print(&t, stdout));
    printf("\nthe generator itself was late by %.3f ms at p99, %.3f ms at most; it used %llu "
           "connections\n",
           percentile_ms(r->lag, 99), percentile_ms(r->lag, 100),
           (unsigned long long)r->counts.connects);
    return ERR_OK;
}

// Late by more than a tenth of the tightest target, or by 2 ms, where that matters: at p99.
static bool kept_up(const Bench *b, const BenchResult *r) {
    double allowed = 2;
    for (uint32_t i = 0; i < b->n_models; i++)
        if (b->models[i].slo_ns > 0 && (double)b->models[i].slo_ns / 1e7 < allowed)
            allowed = (double)b->models[i].slo_ns / 1e7;
    return hist_count(r->lag) == 0 || percentile_ms(r->lag, 99) <= fmax(allowed, 0.2);
}

void bench_warn(const Bench *b, const BenchResult *r) {
    for (uint32_t i = 0; i < b->n_models; i++)
        if (r->tallies[i].why[0] != '\0')
            fprintf(stderr, "cotenant: %s: %llu failed, the first by: %s\n", b->models[i].name,
                    (unsigned long long)r->tallies[i].ends[BENCH_FAILED], r->tallies[i].why);
    if (!kept_up(b, r))
        fprintf(stderr,
                "cotenant: the generator could not keep up: 1 %% of the requests were sent %.2f ms "
                "late or later. Give it a core of its own, or lower the rate.\n",
                percentile_ms(r->lag, 99));
    if (b->url.protocol == CLIENT_HTTP1 && r->counts.waited * 100 > r->all->sent &&
        hist_count(r->wait) > 0)
        fprintf(stderr,
                "cotenant: %llu requests waited for one of their model's %u connections, 1 %% of "
                "all for %.2f ms or longer; more may be allowed with --connections.\n",
                (unsigned long long)r->counts.waited, b->connections, percentile_ms(r->wait, 99));
    if (r->halted) fputs("cotenant: stopped early: these are the results so far\n", stderr);
}

static json_t *real(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *tally_json(const char *name, TimeNs slo, const BenchTally *t, TimeNs span,
                          bool judged) {
    return json_pack(
        "{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:s}",
        "model", name, "slo_ms", real(slo > 0 ? (double)slo / 1e6 : NAN), "sent",
        (json_int_t)t->sent, "ok", (json_int_t)t->ends[BENCH_OK], "rejected",
        (json_int_t)t->ends[BENCH_REJECTED], "expired", (json_int_t)t->ends[BENCH_EXPIRED],
        "failed", (json_int_t)t->ends[BENCH_FAILED], "met", (json_int_t)(judged ? t->met : 0),
        "rate", real(rate_of(t, span)), "mean_ms",
        real(hist_count(&t->latency) > 0
                 ? hist_sum(&t->latency) / (double)hist_count(&t->latency) / 1e6
                 : NAN),
        "p50_ms", real(percentile_ms(&t->latency, 50)), "p90_ms",
        real(percentile_ms(&t->latency, 90)), "p95_ms", real(percentile_ms(&t->latency, 95)),
        "p99_ms", real(percentile_ms(&t->latency, 99)), "p99_9_ms",
        real(percentile_ms(&t->latency, 99.9)), "max_ms", real(percentile_ms(&t->latency, 100)),
        "hit_percent", real(judged ? bench_hit(t) : NAN), "first_failure", t->why);
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
    static const char *const forms[] = {"rest", "json", "grpc"};
    json_t                  *models = json_array();
    for (uint32_t i = 0; i < b->n_models; i++)
        json_array_append_new(models,
                              tally_json(b->models[i].name, b->models[i].slo_ns, &r->tallies[i],
                                         r->span_ns, b->models[i].slo_ns > 0));
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:I, s:f, s:I, s:o, s:o, s:o}", "host", b->url.host, "protocol",
        forms[b->form], "loop",
        run->closed > 0         ? "closed"
        : run->arrivals != NULL ? "arrivals"
                                : "open",
        "rate", real(run->rate > 0 ? run->rate : NAN), "closed", (json_int_t)run->closed, "seconds",
        (double)r->span_ns / 1e9, "seed", (json_int_t)run->seed, "models", models, "all",
        tally_json("all", 0, r->all, r->span_ns, has_slo(b)), "generator", generator_json(b, r));
}

json_t *bench_peak_json(const BenchPeak *p) {
    json_t *probes = json_array();
    for (uint32_t i = 0; i < p->n_probes; i++)
        json_array_append_new(probes,
                              json_pack("{s:f, s:f, s:b, s:b}", "rate", p->probes[i].rate,
                                        "hit_percent", p->probes[i].hit, "met", p->probes[i].met,
                                        "confirms", p->probes[i].confirms));
    return json_pack("{s:f, s:b, s:b, s:o}", "peak_rate", p->rate, "confirmed", p->confirmed,
                     "narrow", p->in_time, "probes", probes);
}
