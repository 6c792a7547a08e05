// Prometheus' text format 0.0.4: families one after the other, HELP and TYPE once each.
#include "serve/metrics_int.h"

enum { TEXT_BYTES = 64 << 20 };

void metrics_family(Sheet *s, const char *name, const char *type, const char *help) {
    sheet_printf(s, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

// name{model="..." and, where there is one, a second label; the value follows.
static void start(MetricsText *t, const char *name, const char *model, const char *key,
                  const char *value) {
    sheet_text(&t->s, name);
    sheet_text(&t->s, "{model=\"");
    sheet_label(&t->s, model);
    if (key != NULL) {
        sheet_text(&t->s, "\",");
        sheet_text(&t->s, key);
        sheet_text(&t->s, "=\"");
        sheet_text(&t->s, value);
    }
    sheet_text(&t->s, "\"} ");
}

static void put_int(MetricsText *t, uint64_t x) {
    sheet_int(&t->s, x);
    sheet_text(&t->s, "\n");
}

static void put_real(MetricsText *t, double x) {
    sheet_number(&t->s, x);
    sheet_text(&t->s, "\n");
}

static const MetricsSeat *next_seat(const Metrics *m, uint32_t *i) {
    for (; *i < m->n_seats; ++*i)
        if (m->seats[*i].model != NULL) return &m->seats[(*i)++];
    return NULL;
}

static void put_buckets(MetricsText *t, const char *const names[3], const MetricsSeat *x,
                        const MetricsBuckets *b) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= METRICS_EDGES; i++) {
        sum += b->counts[i];
        sheet_text(&t->s, names[0]);
        sheet_text(&t->s, "{model=\"");
        sheet_label(&t->s, x->model);
        sheet_text(&t->s, "\",le=\"");
        if (i < METRICS_EDGES)
            sheet_number(&t->s, (double)x->edges[i] / 1e9);
        else
            sheet_text(&t->s, "+Inf");
        sheet_text(&t->s, "\"} ");
        put_int(t, sum);
    }
    start(t, names[1], x->model, NULL, NULL);
    put_real(t, (double)b->sum / 1e9);
    start(t, names[2], x->model, NULL, NULL);
    put_int(t, sum);
}

#define HISTOGRAM(name)                                                                            \
    (const char *const[]) { name, name "_bucket", name "_sum", name "_count" }

static void put_histogram(MetricsText *t, const char *const names[4], const char *help,
                          size_t offset) {
    const MetricsSeat *x;
    metrics_family(&t->s, names[0], "histogram", help);
    for (uint32_t i = 0; (x = next_seat(t->m, &i)) != NULL;)
        put_buckets(t, names + 1, x,
                    (const MetricsBuckets *)(const void *)((const char *)x + offset));
}

static void put_durations(MetricsText *t) {
    put_histogram(t, HISTOGRAM("cotenant_request_duration_seconds"),
                  "From a request's last byte to its answer; starts anew when the target changes.",
                  offsetof(MetricsSeat, request));
    put_histogram(t, HISTOGRAM("cotenant_queue_duration_seconds"),
                  "Before the first block; starts anew when the target changes.",
                  offsetof(MetricsSeat, queue));
    put_histogram(t, HISTOGRAM("cotenant_compute_duration_seconds"),
                  "In blocks; starts anew when the target changes.",
                  offsetof(MetricsSeat, compute));
}

// One family over a seat's array of counters, with a label that names the row.
static void put_rows(MetricsText *t, const char *name, const char *help, const char *key,
                     size_t offset, uint32_t n, const char *(*word)(uint32_t)) {
    const MetricsSeat *x;
    metrics_family(&t->s, name, "counter", help);
    for (uint32_t i = 0; (x = next_seat(t->m, &i)) != NULL;) {
        const uint64_t *counts = (const uint64_t *)(const void *)((const char *)x + offset);
        for (uint32_t k = 0; k < n; k++) {
            if (word(k) == NULL) continue;
            start(t, name, x->model, key, word(k));
            put_int(t, counts[k]);
        }
    }
}

static const char *outcome_word(uint32_t i) { return receipt_outcome_name((ReceiptOutcome)i); }
static const char *end_word(uint32_t i) { return receipt_end_name((ReceiptEnd)i); }
static const char *cause_word(uint32_t i) {
    return i == RECEIPT_CAUSE_NONE ? NULL : receipt_cause_name((ReceiptCause)i);
}

static void put_counters(MetricsText *t) {
    put_rows(t, "cotenant_deadline_total", "Requests with a deadline, by what became of it.",
             "outcome", offsetof(MetricsSeat, outcomes), RECEIPT_OUTCOMES, outcome_word);
    put_rows(t, "cotenant_requests_total", "Requests, by how they ended.", "end",
             offsetof(MetricsSeat, ends), RECEIPT_ENDS, end_word);
    put_rows(t, "cotenant_misses_total", "Deadlines that were not met, by the main cause.", "cause",
             offsetof(MetricsSeat, causes), RECEIPT_CAUSES, cause_word);
    metrics_family(&t->s, "cotenant_unmatched_requests_total", "counter",
                   "Requests that named no model we have, by how they ended.");
    for (uint32_t i = 0; i < RECEIPT_ENDS; i++)
        if (t->m->strangers[i] > 0 || i == RECEIPT_UNKNOWN)
            sheet_printf(&t->s, "cotenant_unmatched_requests_total{end=\"%s\"} %llu\n", end_word(i),
                         (unsigned long long)t->m->strangers[i]);
}

typedef double (*SeatValue)(const MetricsSeat *x, const MetricsLoad *l);

#define VALUE(name, value)                                                                         \
    static double name(const MetricsSeat *x, const MetricsLoad *l) {                               \
        (void)x, (void)l;                                                                          \
        return (double)(value);                                                                    \
    }

VALUE(target, (double)x->target_ns / 1e9)
VALUE(share, x->percentile / 100)
VALUE(hits, metrics_hit_ratio(x))
VALUE(attained, metrics_attained(x))
VALUE(preemptions, x->preemptions)
VALUE(conflicts, x->conflicts)
VALUE(core_seconds, x->core_ns / 1e9)
VALUE(cores, l->cores)
VALUE(waiting, l->waiting)
VALUE(running, l->running)
VALUE(memory, l->memory_bytes)
VALUE(ready, l->ready)

typedef struct SeatFamily {
    const char *name, *type, *help;
    SeatValue   value;
} SeatFamily;

static const SeatFamily seat_families[] = {
    {"cotenant_target_seconds", "gauge", "Latency target; 0: none.", target},
    {"cotenant_target_ratio", "gauge", "Share of requests that shall meet it.", share},
    {"cotenant_hit_ratio", "gauge", "Share of the last 1024 deadlines that were met.", hits},
    {"cotenant_target_attained", "gauge", "Whether that share is reached.", attained},
    {"cotenant_preemptions_total", "counter", "Pauses of requests while others had the cores.",
     preemptions},
    {"cotenant_conflicts_total", "counter", "Blocks that got fewer cores than wished for.",
     conflicts},
    {"cotenant_core_seconds_total", "counter", "Cores times time in blocks.", core_seconds},
    {"cotenant_cores_allocated", "gauge", "Cores that compute it now.", cores},
    {"cotenant_queue_length", "gauge", "Requests that wait.", waiting},
    {"cotenant_running", "gauge", "Requests that have begun.", running},
    {"cotenant_model_memory_bytes", "gauge", "Weights, places and tables of all its versions.",
     memory},
    {"cotenant_model_ready", "gauge", "Whether a version of it can be served.", ready},
};

static void put_seats(MetricsText *t) {
    for (size_t f = 0; f < sizeof seat_families / sizeof *seat_families; f++) {
        const SeatFamily  *row = &seat_families[f];
        const MetricsSeat *x;
        metrics_family(&t->s, row->name, row->type, row->help);
        for (uint32_t i = 0; (x = next_seat(t->m, &i)) != NULL;) {
            start(t, row->name, x->model, NULL, NULL);
            put_real(t, row->value(x, &t->loads[i - 1]));
        }
    }
}

Err metrics_text(const Metrics *m, const MetricsNow *now, Arena *a, Str *out) {
    MetricsLoad *loads = NULL;
    size_t       mark = a->used;
    TRY(metrics_loads(m, now->live, now->fleet, a, &loads));
    MetricsText t = {.m = m, .now = now, .loads = loads};
    sheet_begin(&t.s, a, TEXT_BYTES);
    put_durations(&t);
    put_counters(&t);
    put_seats(&t);
    metrics_server(&t);
    if (m->triton) metrics_triton(&t);
    metrics_process(m, &t.s);
    Err e = sheet_end(&t.s, out);
    if (e != ERR_OK) arena_rewind(a, mark);
    return e;
}
