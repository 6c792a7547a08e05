#include "bench/ort/report.h"

#include <math.h>

#include "base/table.h"

enum { THREADS_MAX = 64 };

static double ratio(const Measurement *d, bool medians) {
    return medians ? d->ours.median_ms / d->ort.median_ms : d->ours.min_ms / d->ort.min_ms;
}

double report_mean(const Report *r, int threads, bool medians) {
    double   sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const Measurement *d = &r->measurements[i];
        if (d->failure != NULL || d->threads != threads) continue;
        sum += log(ratio(d, medians));
        n++;
    }
    return n > 0 ? exp(sum / n) : NAN;
}

bool report_clean(const Report *r) {
    for (uint32_t i = 0; i < r->n; i++)
        if (r->measurements[i].failure != NULL || !r->measurements[i].agrees) return false;
    return true;
}

static void print_terms(const Report *r, FILE *f) {
    (void)fprintf(
        f,
        "ours against ONNX Runtime %s: graph optimisation all, sequential execution, "
        "intra-op threads as below,\n1 inter-op thread, spinning on, denormals as zero. "
        "Batch 1, the same files and inputs, turns of 50 ms, one\nengine awake at a time. "
        "Times are the least of all runs, medians beside them; ratio is ours / ONNX "
        "Runtime.\nOutputs agree within %g of the largest number (of 8 or 16 bits: "
        "cosine of at least %g).\n\n",
        r->version, r->params.tolerance, MEASUREMENT_COSINE);
    if (r->params.tune > 0)
        (void)fprintf(f, "Ours is tuned for %g s per row before it is timed.\n\n", r->params.tune);
}

static void add_measurement(Table *t, const Measurement *d) {
    table_row(t);
    table_text(t, d->name);
    table_int(t, d->threads);
    if (d->failure != NULL) return;
    table_real(t, d->ours.min_ms);
    table_real(t, d->ort.min_ms);
    table_real(t, ratio(d, false));
    table_real(t, d->ours.median_ms);
    table_real(t, d->ort.median_ms);
    table_real(t, ratio(d, true));
    table_textf(t, "%.1e%s", d->quantised ? 1 - d->cosine : d->off, d->agrees ? "" : " DISAGREES");
}

static void add_mean(Table *t, const Report *r, int threads) {
    double least = report_mean(r, threads, false);
    if (isnan(least)) return;
    table_total(t);
    table_text(t, "geometric mean");
    table_int(t, threads);
    table_missing(t);
    table_missing(t);
    table_real(t, least);
    table_missing(t);
    table_missing(t);
    table_real(t, report_mean(r, threads, true));
}

Err report_print(const Report *r, Arena *a, FILE *f) {
    static const Column cols[] = {
        {.key = "name", .head = "network"},
        {.key = "threads", .head = "threads"},
        {.key = "ours_ms", .head = "ours", .unit = "ms", .decimals = 3},
        {.key = "ort_ms", .head = "ORT", .unit = "ms", .decimals = 3},
        {.key = "ratio", .head = "ratio", .decimals = 3},
        {.key = "ours_median_ms", .head = "median: ours", .unit = "ms", .decimals = 3},
        {.key = "ort_median_ms", .head = "ORT", .unit = "ms", .decimals = 3},
        {.key = "ratio_median", .head = "ratio", .decimals = 3},
        {.key = "difference", .head = "difference"},
    };
    Table table;
    table_init(&table, a, cols, sizeof cols / sizeof *cols);
    for (uint32_t i = 0; i < r->n; i++) add_measurement(&table, &r->measurements[i]);
    for (int threads = 1; threads <= THREADS_MAX; threads++) add_mean(&table, r, threads);
    print_terms(r, f);
    TRY(table_print(&table, f));
    for (uint32_t i = 0; i < r->n; i++)
        if (r->measurements[i].failure != NULL)
            (void)fprintf(f, "FAILED %s, threads %d: %s\n", r->measurements[i].name,
                          r->measurements[i].threads, r->measurements[i].failure);
    return ERR_OK;
}

static json_t *measurement_json(const Measurement *d) {
    json_t *o = json_pack("{s:s,s:i}", "name", d->name, "threads", d->threads);
    if (d->failure != NULL) {
        json_object_set_new(o, "failure", json_string(d->failure));
        return o;
    }
    json_t *numbers =
        json_pack("{s:f,s:f,s:f,s:f,s:f,s:f,s:i,s:i,s:f,s:f,s:b}", "ours_ms", d->ours.min_ms,
                  "ort_ms", d->ort.min_ms, "ratio", ratio(d, false), "ours_median_ms",
                  d->ours.median_ms, "ort_median_ms", d->ort.median_ms, "ratio_median",
                  ratio(d, true), "ours_runs", (int)d->ours.runs, "ort_runs", (int)d->ort.runs,
                  "difference", d->off, "cosine", d->cosine, "agrees", d->agrees);
    json_object_update(o, numbers);
    json_decref(numbers);
    return o;
}

Err report_json(const Report *r, json_t **out) {
    json_t *models = json_array(), *least = json_object(), *median = json_object();
    for (uint32_t i = 0; i < r->n; i++)
        json_array_append_new(models, measurement_json(&r->measurements[i]));
    for (int threads = 1; threads <= THREADS_MAX; threads++) {
        char key[16];
        if (isnan(report_mean(r, threads, false))) continue;
        (void)snprintf(key, sizeof key, "%d", threads);
        json_object_set_new(least, key, json_real(report_mean(r, threads, false)));
        json_object_set_new(median, key, json_real(report_mean(r, threads, true)));
    }
    *out = json_pack("{s:o,s:o,s:o,s:s,s:f,s:f}", "models", models, "geomean", least,
                     "geomean_median", median, "onnxruntime", r->version, "tolerance",
                     r->params.tolerance, "tune_seconds", r->params.tune);
    return *out != NULL ? ERR_OK : err_set(ERR_LIMIT, "no memory for the report");
}
