// The protocol's statistics extension as JSON, with further figures under "cotenant".
#include <string.h>

#include "base/coroutine.h"
#include "base/text.h"
#include "serve/observe/metrics_int.h"

// MODEL_NS: about the time that one model takes.
enum { ROW_BYTES = 16384, MODEL_NS = 8000 };

static void put_sum(StrBuf *s, const char *key, MetricsSum sum) {
    str_buf_printf(s, "\"%s\":{\"count\":%llu,\"ns\":%lld}", key, (unsigned long long)sum.count,
                   (long long)sum.ns);
}

static void put_row(StrBuf *s, const MetricsRow *r) {
    str_buf_text(s, "{\"name\":");
    str_buf_json(s, r->model);
    str_buf_text(s, ",\"version\":");
    str_buf_json(s, r->version);
    str_buf_printf(s, ",\"last_inference\":%llu,\"inference_count\":%llu,\"execution_count\":%llu",
                   (unsigned long long)r->last_ms, (unsigned long long)r->inferences,
                   (unsigned long long)r->executions);
    str_buf_text(s, ",\"inference_stats\":{");
    const struct {
        const char *key;
        MetricsSum  sum;
    } sums[] = {{"success", r->success},
                {"fail", r->fail},
                {"queue", r->queue},
                {"compute_input", r->compute_input},
                {"compute_infer", r->compute_infer},
                {"compute_output", r->compute_output},
                {"cache_hit", {0}},
                {"cache_miss", {0}}};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        if (i > 0) str_buf_text(s, ",");
        put_sum(s, sums[i].key, sums[i].sum);
    }
    str_buf_text(s, "},\"batch_stats\":[");
    for (uint32_t i = 0; i < r->n_batches; i++) {
        str_buf_printf(s, "%s{\"batch_size\":%llu,", i > 0 ? "," : "",
                       (unsigned long long)r->batches[i].size);
        put_sum(s, "compute_input", (MetricsSum){.count = r->batches[i].compute_infer.count});
        str_buf_text(s, ",");
        put_sum(s, "compute_infer", r->batches[i].compute_infer);
        str_buf_text(s, ",");
        put_sum(s, "compute_output", (MetricsSum){.count = r->batches[i].compute_infer.count});
        str_buf_text(s, "}");
    }
    str_buf_text(s, "],\"response_stats\":{},\"memory_usage\":[]");
}

static void put_counts(StrBuf *s, const char *key, const uint64_t *n, uint32_t count,
                       const char *(*name)(uint32_t)) {
    bool first = true;
    str_buf_printf(s, ",\"%s\":{", key);
    for (uint32_t i = 0; i < count; i++) {
        if (n[i] == 0 || name(i) == NULL) continue;
        str_buf_printf(s, "%s\"%s\":%llu", first ? "" : ",", name(i), (unsigned long long)n[i]);
        first = false;
    }
    str_buf_text(s, "}");
}

static void put_percentiles(StrBuf *s, const char *key, const Hist *h) {
    static const struct {
        const char *name;
        double      p;
    } rows[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}};
    uint64_t n = hist_count(h);
    str_buf_printf(s, ",\"%s\":{\"count\":%llu,\"mean\":", key, (unsigned long long)n);
    str_buf_number(s, n > 0 ? hist_sum(h) / (double)n / 1e6 : 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str_buf_printf(s, ",\"%s\":", rows[i].name);
        str_buf_number(s, (double)hist_percentile(h, rows[i].p) / 1e6);
    }
    str_buf_text(s, ",\"max\":");
    str_buf_number(s, (double)hist_max(h) / 1e6);
    str_buf_text(s, "}");
}

static void put_target(StrBuf *s, const MetricsModel *x) {
    str_buf_text(s, "\"target_ms\":");
    str_buf_number(s, (double)x->target_ns / 1e6);
    str_buf_text(s, ",\"percentile\":");
    str_buf_number(s, x->percentile);
    str_buf_text(s, ",\"hit_ratio\":");
    str_buf_number(s, metrics_hit_ratio(x));
    str_buf_printf(s, ",\"attained\":%s,\"deadlines\":{", metrics_attained(x) ? "true" : "false");
    for (uint32_t i = 0; i < RECEIPT_OUTCOMES; i++)
        str_buf_printf(s, "%s\"%s\":%llu", i > 0 ? "," : "",
                       receipt_outcome_name((ReceiptOutcome)i), (unsigned long long)x->outcomes[i]);
    str_buf_text(s, "}");
}

// Figures of the model, over all its versions.
static void put_model(StrBuf *s, const MetricsModel *x, const MetricsLoad *load) {
    str_buf_text(s, ",\"cotenant\":{");
    put_target(s, x);
    put_counts(s, "ends", x->ends, RECEIPT_ENDS, metrics_end_name);
    put_counts(s, "misses", x->causes, RECEIPT_CAUSES, metrics_cause_name);
    put_percentiles(s, "latency_ms", &x->latency);
    put_percentiles(s, "queue_ms", &x->queueing);
    put_percentiles(s, "compute_ms", &x->computing);
    str_buf_printf(s,
                   ",\"preemptions\":%llu,\"conflicts\":%llu,\"degraded\":%llu,\"core_seconds\":",
                   (unsigned long long)x->preemptions, (unsigned long long)x->conflicts,
                   (unsigned long long)x->degraded);
    str_buf_number(s, x->core_ns / 1e9);
    str_buf_printf(s, ",\"cores\":%u,\"waiting\":%u,\"running\":%u", load->cores, load->waiting,
                   load->running);
    str_buf_text(s, "}}");
}

typedef struct Listing {
    const Metrics *m;
    MetricsLoad   *loads;
    Str            name, version;
    StrBuf         text;
    uint32_t       n, n_models;  // n_models: with loads; models may be added meanwhile
} Listing;

static bool wanted(Str want, const char *have) {
    return want.at == NULL || text_equal(want, text_of(have));
}

static void list_one(Listing *l, uint32_t slot, const char *model, const char *version) {
    MetricsRow row;
    if (slot >= l->n_models) return;
    if (!wanted(l->name, model) || !wanted(l->version, version)) return;
    if (!metrics_read(l->m, slot, version, &row)) return;
    if (l->n++ > 0) str_buf_text(&l->text, ",\n");
    put_row(&l->text, &row);
    put_model(&l->text, &l->m->models[slot], &l->loads[slot]);
    coroutine_point(MODEL_NS);
}

static void list_models(Listing *l) {
    for (uint32_t i = 0; i < l->n_models; i++)
        for (uint32_t v = 0; l->m->models[i].model != NULL && v < l->m->models[i].n_versions; v++)
            list_one(l, i, l->m->models[i].model, l->m->models[i].versions[v].version);
}

static void list_registry(Listing *l, const ModelRegistry *f) {
    for (uint32_t i = 0; i < registry_count(f); i++) {
        const ModelInfo *s = registry_at(f, i);
        if (s->state == MODEL_READY) list_one(l, s->slot, s->name, s->version);
    }
}

Err metrics_stats(const Metrics *m, const ModelRegistry *f, Str name, Str version, Arena *a,
                  Str *out) {
    LiveStatus live = {0};
    bool       known = m->engine != NULL && node_live_status(m->engine, a, &live) == ERR_OK;
    Listing    l = {.m = m, .name = name, .version = version, .n_models = m->n_models};
    TRY(metrics_loads(m, known ? &live : NULL, NULL, a, &l.loads));
    str_buf_begin(&l.text, a, (size_t)ROW_BYTES * REGISTRY_SLOTS);
    str_buf_text(&l.text, "{\"model_stats\":[");
    if (f != NULL)
        list_registry(&l, f);
    else
        list_models(&l);
    str_buf_text(&l.text, "]}");
    return str_buf_end(&l.text, out);
}
