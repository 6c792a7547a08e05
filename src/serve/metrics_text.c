// Prometheus' text format 0.0.4: families one after the other, HELP and TYPE once each.
#include <string.h>

#include "serve/metrics_int.h"

enum { TEXT_BYTES = 64 << 20 };

void metrics_family(Sheet *s, const char *name, const char *type, const char *help) {
    sheet_printf(s, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

typedef struct Text {
    const Metrics    *m;
    const MetricsNow *now;
    Sheet             s;
} Text;

// name{model="..." and, where there is one, a second label; the value follows.
static void start(Text *t, const char *name, const char *model, const char *key,
                  const char *value) {
    sheet_printf(&t->s, "%s{model=\"", name);
    sheet_label(&t->s, model);
    if (key != NULL) sheet_printf(&t->s, "\",%s=\"%s", key, value);
    sheet_text(&t->s, "\"} ");
}

static void put_int(Text *t, uint64_t x) { sheet_printf(&t->s, "%llu\n", (unsigned long long)x); }

static void put_real(Text *t, double x) {
    sheet_number(&t->s, x);
    sheet_text(&t->s, "\n");
}

static const MetricsSeat *next_seat(const Metrics *m, uint32_t *i) {
    for (; *i < m->n_seats; ++*i)
        if (m->seats[*i].model != NULL) return &m->seats[(*i)++];
    return NULL;
}

static void put_buckets(Text *t, const char *name, const MetricsSeat *x, const MetricsBuckets *b) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= METRICS_EDGES; i++) {
        sum += b->counts[i];
        sheet_printf(&t->s, "%s_bucket{model=\"", name);
        sheet_label(&t->s, x->model);
        sheet_text(&t->s, "\",le=\"");
        if (i < METRICS_EDGES)
            sheet_number(&t->s, (double)x->edges[i] / 1e9);
        else
            sheet_text(&t->s, "+Inf");
        sheet_printf(&t->s, "\"} %llu\n", (unsigned long long)sum);
    }
    sheet_printf(&t->s, "%s_sum{model=\"", name);
    sheet_label(&t->s, x->model);
    sheet_text(&t->s, "\"} ");
    put_real(t, (double)b->sum / 1e9);
    sheet_printf(&t->s, "%s_count{model=\"", name);
    sheet_label(&t->s, x->model);
    sheet_text(&t->s, "\"} ");
    put_int(t, sum);
}

static void put_histogram(Text *t, const char *name, const char *help, size_t offset) {
    const MetricsSeat *x;
    metrics_family(&t->s, name, "histogram", help);
    for (uint32_t i = 0; (x = next_seat(t->m, &i)) != NULL;)
        put_buckets(t, name, x, (const MetricsBuckets *)(const void *)((const char *)x + offset));
}

static void put_durations(Text *t) {
    put_histogram(t, "cotenant_request_duration_seconds",
                  "From a request's last byte to its answer; starts anew when the target changes.",
                  offsetof(MetricsSeat, request));
    put_histogram(t, "cotenant_queue_duration_seconds",
                  "Before the first block; starts anew when the target changes.",
                  offsetof(MetricsSeat, queue));
    put_histogram(t, "cotenant_compute_duration_seconds",
                  "In blocks; starts anew when the target changes.",
                  offsetof(MetricsSeat, compute));
}

// One family over a seat's array of counters, with a label that names the row.
static void put_rows(Text *t, const char *name, const char *help, const char *key, size_t offset,
                     uint32_t n, const char *(*word)(uint32_t)) {
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

static void put_counters(Text *t) {
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

typedef double (*SeatValue)(const Text *t, const MetricsSeat *x, uint32_t seat);

static double v_target(const Text *t, const MetricsSeat *x, uint32_t seat) {
    (void)t, (void)seat;
    return (double)x->target_ns / 1e9;
}
static double v_share(const Text *t, const MetricsSeat *x, uint32_t seat) {
    (void)t, (void)seat;
    return x->percentile / 100;
}
static double v_hits(const Text *t, const MetricsSeat *x, uint32_t seat) {
    (void)t, (void)seat;
    return metrics_hit_ratio(x);
}
static double v_attained(const Text *t, const MetricsSeat *x, uint32_t seat) {
    (void)t, (void)seat;
    return metrics_attained(x) ? 1 : 0;
}
static double v_preemptions(const Text *t, const MetricsSeat *x, uint32_t seat) {
    (void)t, (void)seat;
    return (double)x->preemptions;
}
static double v_conflicts(const Text *t, const MetricsSeat *x, uint32_t seat) {
    (void)t, (void)seat;
    return (double)x->conflicts;
}
static double v_core_seconds(const Text *t, const MetricsSeat *x, uint32_t seat) {
    (void)t, (void)seat;
    return x->core_ns / 1e9;
}
static double v_cores(const Text *t, const MetricsSeat *x, uint32_t seat) {
    (void)x;
    return metrics_load(t->m, t->now->live, seat).cores;
}
static double v_queue(const Text *t, const MetricsSeat *x, uint32_t seat) {
    (void)x;
    return metrics_load(t->m, t->now->live, seat).waiting;
}
static double v_running(const Text *t, const MetricsSeat *x, uint32_t seat) {
    (void)x;
    return metrics_load(t->m, t->now->live, seat).running;
}
static double v_memory(const Text *t, const MetricsSeat *x, uint32_t seat) {
    double bytes = 0;
    (void)x;
    for (uint32_t i = 0; t->now->fleet != NULL && i < fleet_count(t->now->fleet); i++) {
        const Served *s = fleet_at(t->now->fleet, i);
        if (s->seat == seat) bytes += (double)s->memory_bytes;
    }
    return bytes;
}
static double v_ready(const Text *t, const MetricsSeat *x, uint32_t seat) {
    (void)x;
    for (uint32_t i = 0; t->now->fleet != NULL && i < fleet_count(t->now->fleet); i++) {
        const Served *s = fleet_at(t->now->fleet, i);
        if (s->seat == seat && s->state == FLEET_READY) return 1;
    }
    return 0;
}

typedef struct SeatFamily {
    const char *name, *type, *help;
    SeatValue   value;
} SeatFamily;

static const SeatFamily seat_families[] = {
    {"cotenant_target_seconds", "gauge", "Latency target; 0: none.", v_target},
    {"cotenant_target_ratio", "gauge", "Share of requests that shall meet it.", v_share},
    {"cotenant_hit_ratio", "gauge", "Share of the last 1024 deadlines that were met.", v_hits},
    {"cotenant_target_attained", "gauge", "Whether that share is reached.", v_attained},
    {"cotenant_preemptions_total", "counter", "Pauses of requests while others had the cores.",
     v_preemptions},
    {"cotenant_conflicts_total", "counter", "Blocks that got fewer cores than wished for.",
     v_conflicts},
    {"cotenant_core_seconds_total", "counter", "Cores times time in blocks.", v_core_seconds},
    {"cotenant_cores_allocated", "gauge", "Cores that compute it now.", v_cores},
    {"cotenant_queue_length", "gauge", "Requests that wait.", v_queue},
    {"cotenant_running", "gauge", "Requests that have begun.", v_running},
    {"cotenant_model_memory_bytes", "gauge", "Weights, places and tables of all its versions.",
     v_memory},
    {"cotenant_model_ready", "gauge", "Whether a version of it can be served.", v_ready},
};

static void put_seats(Text *t) {
    for (size_t f = 0; f < sizeof seat_families / sizeof *seat_families; f++) {
        const SeatFamily  *row = &seat_families[f];
        const MetricsSeat *x;
        metrics_family(&t->s, row->name, row->type, row->help);
        for (uint32_t i = 0; (x = next_seat(t->m, &i)) != NULL;) {
            start(t, row->name, x->model, NULL, NULL);
            put_real(t, row->value(t, x, i - 1));
        }
    }
}

static void put_plain(Text *t, const char *name, const char *type, const char *help, double x) {
    metrics_family(&t->s, name, type, help);
    sheet_printf(&t->s, "%s ", name);
    put_real(t, x);
}

static void put_cores(Text *t, const LiveStatus *l) {
    const struct {
        const char *state;
        uint32_t    n;
    } rows[] = {{"present", l->cores}, {"budget", l->budget}, {"busy", l->busy}};
    metrics_family(&t->s, "cotenant_cores", "gauge",
                   "Cores we have, may use now by quota and affinity, and that are in blocks.");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        sheet_printf(&t->s, "cotenant_cores{state=\"%s\"} %u\n", rows[i].state, rows[i].n);
}

static void put_engine(Text *t) {
    const LiveStatus *l = t->now->live;
    if (l == NULL) return;
    put_cores(t, l);
    put_plain(t, "cotenant_interference_level", "gauge", "Pressure on shared caches and memory.",
              l->level);
    put_plain(t, "cotenant_throttled", "gauge", "Whether the system gives less than it promises.",
              l->throttled ? 1 : 0);
    put_plain(t, "cotenant_decisions_total", "counter", "Plans that the policy made.",
              (double)l->decisions);
    put_plain(t, "cotenant_refused_plans_total", "counter", "Plans that could not be carried out.",
              (double)l->refused);
    put_plain(t, "cotenant_decision_seconds_total", "counter", "Time the policy took.",
              l->decide_ns / 1e9);
}

typedef struct ListenerFamily {
    const char *name, *type, *help;
    size_t      offset;
    bool        narrow;  // 32 bits
} ListenerFamily;

static const ListenerFamily listener_families[] = {
    {"cotenant_connections", "gauge", "Connections now.", offsetof(ListenerCounts, open), true},
    {"cotenant_connections_total", "counter", "Connections accepted.",
     offsetof(ListenerCounts, accepted), false},
    {"cotenant_connections_refused_total", "counter", "Connections beyond the limit.",
     offsetof(ListenerCounts, refused), false},
    {"cotenant_exchanges_total", "counter", "Requests of the protocol, inference or not.",
     offsetof(ListenerCounts, requests), false},
    {"cotenant_exchanges_bad_total", "counter", "Requests that broke the protocol or a limit.",
     offsetof(ListenerCounts, bad), false},
    {"cotenant_held_bytes", "gauge", "Bodies of requests in memory.",
     offsetof(ListenerCounts, held_bytes), false},
};

static uint64_t listener_value(const ListenerCounts *c, const ListenerFamily *f) {
    uint64_t wide = 0;
    uint32_t narrow = 0;
    if (f->narrow)
        memcpy(&narrow, (const char *)c + f->offset, sizeof narrow);
    else
        memcpy(&wide, (const char *)c + f->offset, sizeof wide);
    return f->narrow ? narrow : wide;
}

static void put_listeners(Text *t) {
    for (size_t f = 0; f < sizeof listener_families / sizeof *listener_families; f++) {
        const ListenerFamily *row = &listener_families[f];
        metrics_family(&t->s, row->name, row->type, row->help);
        for (uint32_t i = 0; i < 4; i++) {
            if (t->now->names[i] == NULL) continue;
            sheet_printf(&t->s, "%s{listener=\"", row->name);
            sheet_label(&t->s, t->now->names[i]);
            sheet_text(&t->s, "\"} ");
            put_int(t, listener_value(&t->now->listeners[i], row));
        }
    }
}

static void put_server(Text *t) {
    put_plain(t, "cotenant_ready", "gauge", "Whether all models that are required can be served.",
              t->now->ready ? 1 : 0);
    put_plain(t, "cotenant_requests_open", "gauge", "Requests on their way.", t->now->asks);
    put_plain(t, "cotenant_log_dropped_total", "counter", "Log lines lost to a full or slow disk.",
              (double)t->now->log_dropped);
    put_plain(t, "cotenant_log_suppressed_total", "counter", "Log lines beyond the rate.",
              (double)t->now->log_suppressed);
}

Err metrics_text(const Metrics *m, const MetricsNow *now, Arena *a, Str *out) {
    Text t = {.m = m, .now = now};
    sheet_begin(&t.s, a, TEXT_BYTES);
    put_durations(&t);
    put_counters(&t);
    put_seats(&t);
    put_engine(&t);
    put_listeners(&t);
    put_server(&t);
    if (m->triton) metrics_triton(m, now, &t.s);
    metrics_process(m, &t.s);
    return sheet_end(&t.s, out);
}
