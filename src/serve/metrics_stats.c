// Statistics as the protocol's extension has them, and what we know beyond it under "cotenant".
#include <string.h>

#include "base/text.h"
#include "serve/metrics_int.h"

enum { ROW_BYTES = 16384 };

static void put_sum(Sheet *s, const char *key, MetricsSum sum) {
    sheet_printf(s, "\"%s\":{\"count\":%llu,\"ns\":%lld}", key, (unsigned long long)sum.count,
                 (long long)sum.ns);
}

static void put_row(Sheet *s, const MetricsRow *r) {
    sheet_text(s, "{\"name\":");
    sheet_json(s, r->model);
    sheet_text(s, ",\"version\":");
    sheet_json(s, r->version);
    sheet_printf(s, ",\"last_inference\":%llu,\"inference_count\":%llu,\"execution_count\":%llu",
                 (unsigned long long)r->last_ms, (unsigned long long)r->inferences,
                 (unsigned long long)r->executions);
    sheet_text(s, ",\"inference_stats\":{");
    const struct {
        const char *key;
        MetricsSum  sum;
    } sums[] = {{"success", r->success},
                {"fail", r->fail},
                {"queue", r->queue},
                {"compute_input", r->compute_input},
                {"compute_infer", r->compute_infer},
                {"compute_output", r->compute_output}};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        if (i > 0) sheet_text(s, ",");
        put_sum(s, sums[i].key, sums[i].sum);
    }
    sheet_text(s, "},\"batch_stats\":[");
    for (uint32_t i = 0; i < r->n_batches; i++) {
        sheet_printf(s, "%s{\"batch_size\":%llu,", i > 0 ? "," : "",
                     (unsigned long long)r->batches[i].size);
        put_sum(s, "compute_infer", r->batches[i].compute_infer);
        sheet_text(s, "}");
    }
    sheet_text(s, "]");
}

static void put_counts(Sheet *s, const char *key, const uint64_t *n, uint32_t count,
                       const char *(*name)(uint32_t)) {
    bool first = true;
    sheet_printf(s, ",\"%s\":{", key);
    for (uint32_t i = 0; i < count; i++) {
        if (n[i] == 0 || name(i) == NULL) continue;
        sheet_printf(s, "%s\"%s\":%llu", first ? "" : ",", name(i), (unsigned long long)n[i]);
        first = false;
    }
    sheet_text(s, "}");
}

static const char *end_name(uint32_t i) { return receipt_end_name((ReceiptEnd)i); }

static const char *cause_name(uint32_t i) {
    return i == RECEIPT_CAUSE_NONE ? NULL : receipt_cause_name((ReceiptCause)i);
}

static void put_percentiles(Sheet *s, const char *key, const Hist *h) {
    static const struct {
        const char *name;
        double      p;
    } rows[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}};
    uint64_t n = hist_count(h);
    sheet_printf(s, ",\"%s\":{\"count\":%llu,\"mean\":", key, (unsigned long long)n);
    sheet_number(s, n > 0 ? hist_sum(h) / (double)n / 1e6 : 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sheet_printf(s, ",\"%s\":", rows[i].name);
        sheet_number(s, (double)hist_percentile(h, rows[i].p) / 1e6);
    }
    sheet_text(s, ",\"max\":");
    sheet_number(s, (double)hist_max(h) / 1e6);
    sheet_text(s, "}");
}

static void put_target(Sheet *s, const MetricsSeat *x) {
    sheet_text(s, "\"target_ms\":");
    sheet_number(s, (double)x->target_ns / 1e6);
    sheet_text(s, ",\"percentile\":");
    sheet_number(s, x->percentile);
    sheet_text(s, ",\"hit_ratio\":");
    sheet_number(s, metrics_hit_ratio(x));
    sheet_printf(s, ",\"attained\":%s,\"deadlines\":{", metrics_attained(x) ? "true" : "false");
    for (uint32_t i = 0; i < RECEIPT_OUTCOMES; i++)
        sheet_printf(s, "%s\"%s\":%llu", i > 0 ? "," : "", receipt_outcome_name((ReceiptOutcome)i),
                     (unsigned long long)x->outcomes[i]);
    sheet_text(s, "}");
}

// Of the model: deadlines are met or missed whichever version serves.
static void put_seat(Sheet *s, const MetricsSeat *x, const MetricsLoad *load) {
    sheet_text(s, ",\"cotenant\":{");
    put_target(s, x);
    put_counts(s, "ends", x->ends, RECEIPT_ENDS, end_name);
    put_counts(s, "misses", x->causes, RECEIPT_CAUSES, cause_name);
    put_percentiles(s, "latency_ms", &x->latency);
    put_percentiles(s, "queue_ms", &x->queueing);
    put_percentiles(s, "compute_ms", &x->computing);
    sheet_printf(s, ",\"preemptions\":%llu,\"conflicts\":%llu,\"core_seconds\":",
                 (unsigned long long)x->preemptions, (unsigned long long)x->conflicts);
    sheet_number(s, x->core_ns / 1e9);
    sheet_printf(s, ",\"cores\":%u,\"waiting\":%u,\"running\":%u", load->cores, load->waiting,
                 load->running);
    sheet_text(s, "}}");
}

typedef struct Listing {
    const Metrics *m;
    MetricsLoad   *loads;
    Str            name, version;
    Sheet          sheet;
    uint32_t       n;
} Listing;

static bool wanted(Str want, const char *have) {
    return want.at == NULL || text_equal(want, text_of(have));
}

static void list_one(Listing *l, uint32_t seat, const char *model, const char *version) {
    MetricsRow row;
    if (!wanted(l->name, model) || !wanted(l->version, version)) return;
    if (!metrics_read(l->m, seat, version, &row)) return;
    if (l->n++ > 0) sheet_text(&l->sheet, ",\n");
    put_row(&l->sheet, &row);
    put_seat(&l->sheet, &l->m->seats[seat], &l->loads[seat]);
}

static void list_seats(Listing *l) {
    for (uint32_t i = 0; i < l->m->n_seats; i++)
        for (uint32_t v = 0; l->m->seats[i].model != NULL && v < l->m->seats[i].n_versions; v++)
            list_one(l, i, l->m->seats[i].model, l->m->seats[i].versions[v].version);
}

static void list_fleet(Listing *l, const Fleet *f) {
    for (uint32_t i = 0; i < fleet_count(f); i++) {
        const Served *s = fleet_at(f, i);
        if (s->state == FLEET_READY) list_one(l, s->seat, s->name, s->version);
    }
}

Err metrics_stats(const Metrics *m, const Fleet *f, Str name, Str version, Arena *a, Str *out) {
    LiveStatus live = {0};
    bool       known = m->engine != NULL && node_live_status(m->engine, a, &live) == ERR_OK;
    Listing    l = {.m = m, .name = name, .version = version};
    TRY(metrics_loads(m, known ? &live : NULL, NULL, a, &l.loads));
    sheet_begin(&l.sheet, a, (size_t)ROW_BYTES * FLEET_SEATS);
    sheet_text(&l.sheet, "{\"model_stats\":[");
    if (f != NULL)
        list_fleet(&l, f);
    else
        list_seats(&l);
    sheet_text(&l.sheet, "]}");
    return sheet_end(&l.sheet, out);
}
