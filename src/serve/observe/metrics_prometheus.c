// Prometheus text format 0.0.4: HELP and TYPE once per family.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/coroutine.h"
#include "serve/observe/metrics_int.h"

// ROW_NS: about the time that the lines of one model in a family take.
enum { TEXT_BYTES = 64 << 20, ROW_NS = 1000 };

static void put_family_head(StrBuf *s, const char *name, const char *type, const char *help) {
    str_buf_printf(s, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put(StrBuf *s, const char *name, const char *type, const char *help, double x) {
    put_family_head(s, name, type, help);
    str_buf_printf(s, "%s ", name);
    str_buf_number(s, x);
    str_buf_text(s, "\n");
}

// Writes name{model="...",key="value"} before a value; key NULL: one label.
static void start(MetricsText *t, const char *name, const char *model, const char *key,
                  const char *value) {
    str_buf_text(&t->s, name);
    str_buf_text(&t->s, "{model=\"");
    str_buf_label(&t->s, model);
    if (key != NULL) {
        str_buf_text(&t->s, "\",");
        str_buf_text(&t->s, key);
        str_buf_text(&t->s, "=\"");
        str_buf_text(&t->s, value);
    }
    str_buf_text(&t->s, "\"} ");
}

static void put_int(MetricsText *t, uint64_t x) {
    str_buf_int(&t->s, x);
    str_buf_text(&t->s, "\n");
}

static void put_real(MetricsText *t, double x) {
    str_buf_number(&t->s, x);
    str_buf_text(&t->s, "\n");
}

static const MetricsModel *next_model(const MetricsText *t, uint32_t *i) {
    coroutine_point(ROW_NS);
    for (; *i < t->n_models; ++*i)
        if (t->m->models[*i].model != NULL) return &t->m->models[(*i)++];
    return NULL;
}

static void put_buckets(MetricsText *t, const char *const names[3], const MetricsModel *x,
                        const MetricsBuckets *b) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= METRICS_EDGES; i++) {
        sum += b->counts[i];
        str_buf_text(&t->s, names[0]);
        str_buf_text(&t->s, "{model=\"");
        str_buf_label(&t->s, x->model);
        str_buf_text(&t->s, "\",le=\"");
        if (i < METRICS_EDGES)
            str_buf_number(&t->s, (double)x->edges[i] / 1e9);
        else
            str_buf_text(&t->s, "+Inf");
        str_buf_text(&t->s, "\"} ");
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
    const MetricsModel *x;
    put_family_head(&t->s, names[0], "histogram", help);
    for (uint32_t i = 0; (x = next_model(t, &i)) != NULL;)
        put_buckets(t, names + 1, x,
                    (const MetricsBuckets *)(const void *)((const char *)x + offset));
}

static void put_durations(MetricsText *t) {
    put_histogram(
        t, HISTOGRAM("cotenant_request_duration_seconds"),
        "Time from a request's last byte to its response; restarts when the target changes.",
        offsetof(MetricsModel, request));
    put_histogram(t, HISTOGRAM("cotenant_queue_duration_seconds"),
                  "Time before a request's first block; restarts when the target changes.",
                  offsetof(MetricsModel, queue));
    put_histogram(t, HISTOGRAM("cotenant_compute_duration_seconds"),
                  "Time in blocks; restarts when the target changes.",
                  offsetof(MetricsModel, compute));
}

// A family over an array of counters per model, with a label for the index.
static void put_rows(MetricsText *t, const char *name, const char *help, const char *key,
                     size_t offset, uint32_t n, const char *(*word)(uint32_t)) {
    const MetricsModel *x;
    put_family_head(&t->s, name, "counter", help);
    for (uint32_t i = 0; (x = next_model(t, &i)) != NULL;) {
        const uint64_t *counts = (const uint64_t *)(const void *)((const char *)x + offset);
        for (uint32_t k = 0; k < n; k++) {
            if (word(k) == NULL) continue;
            start(t, name, x->model, key, word(k));
            put_int(t, counts[k]);
        }
    }
}

static const char *outcome_word(uint32_t i) { return receipt_outcome_name((ReceiptOutcome)i); }
static void        put_counters(MetricsText *t) {
           put_rows(t, "cotenant_deadline_total", "Requests with a deadline, by outcome.", "outcome",
                    offsetof(MetricsModel, outcomes), RECEIPT_OUTCOMES, outcome_word);
           put_rows(t, "cotenant_requests_total", "Requests, by how they ended.", "end",
                    offsetof(MetricsModel, ends), RECEIPT_ENDS, metrics_end_name);
           put_rows(t, "cotenant_misses_total", "Missed deadlines, by main cause.", "cause",
                    offsetof(MetricsModel, causes), RECEIPT_CAUSES, metrics_cause_name);
           put_family_head(&t->s, "cotenant_unmatched_requests_total", "counter",
                           "Requests for unknown models, by how they ended.");
           for (uint32_t i = 0; i < RECEIPT_ENDS; i++)
        if (t->m->unmatched[i] > 0 || i == RECEIPT_UNKNOWN)
            str_buf_printf(&t->s, "cotenant_unmatched_requests_total{end=\"%s\"} %llu\n",
                                  metrics_end_name(i), (unsigned long long)t->m->unmatched[i]);
}

typedef double (*ModelValue)(const MetricsModel *x, const MetricsLoad *l);

#define VALUE(name, value)                                                                         \
    static double name(const MetricsModel *x, const MetricsLoad *l) {                              \
        (void)x, (void)l;                                                                          \
        return (double)(value);                                                                    \
    }

VALUE(target, (double)x->target_ns / 1e9)
VALUE(share, x->percentile / 100)
VALUE(hits, metrics_hit_ratio(x))
VALUE(attained, metrics_attained(x))
VALUE(preemptions, x->preemptions)
VALUE(conflicts, x->conflicts)
VALUE(yields, x->yields)
VALUE(demotions, x->demotions)
VALUE(degraded, x->degraded)
VALUE(core_seconds, x->core_ns / 1e9)
VALUE(cores, l->cores)
VALUE(waiting, l->waiting)
VALUE(running, l->running)
VALUE(memory, l->memory_bytes)
VALUE(request_memory, l->request_bytes)
VALUE(request_memory_limit, l->request_limit)
VALUE(ready, l->ready)
VALUE(tuning, l->tuning)
VALUE(tunings, x->tunings)

typedef struct ModelFamily {
    const char *name, *type, *help;
    ModelValue  value;
} ModelFamily;

static const ModelFamily model_families[] = {
    {"cotenant_target_seconds", "gauge", "Latency target; 0: none.", target},
    {"cotenant_target_ratio", "gauge", "Share of requests that should meet the target.", share},
    {"cotenant_hit_ratio", "gauge", "Share of the last 1024 deadlines that were met.", hits},
    {"cotenant_target_attained", "gauge", "1 if cotenant_hit_ratio reaches cotenant_target_ratio.",
     attained},
    {"cotenant_preemptions_total", "counter", "Times a request was paused between blocks.",
     preemptions},
    {"cotenant_conflicts_total", "counter", "Blocks that ran on fewer cores than requested.",
     conflicts},
    {"cotenant_yields_total", "counter",
     "Blocks that ended early because other models waited, of requests that have ended.", yields},
    {"cotenant_demotions_total", "counter",
     "Blocks that lost their cores because other models waited, of requests that have ended.",
     demotions},
    {"cotenant_degraded_total", "counter",
     "Requests moved behind all others for a missed deadline (on_miss: degrade).", degraded},
    {"cotenant_core_seconds_total", "counter", "Core time in blocks.", core_seconds},
    {"cotenant_cores_allocated", "gauge", "Cores in use by the model.", cores},
    {"cotenant_queue_length", "gauge", "Queued requests.", waiting},
    {"cotenant_running", "gauge", "Requests being computed.", running},
    {"cotenant_model_memory_bytes", "gauge", "Memory of all its versions.", memory},
    {"cotenant_request_memory_bytes", "gauge",
     "Memory of its requests: decoded inputs, intermediate values, outputs, unread responses.",
     request_memory},
    {"cotenant_request_memory_limit_bytes", "gauge",
     "Limit of cotenant_request_memory_bytes (buffered_mb of the model).", request_memory_limit},
    {"cotenant_model_ready", "gauge", "1 if a version of the model is ready.", ready},
    {"cotenant_model_tuning", "gauge",
     "1 while faster kernel versions are searched, or compiled, beside serving.", tuning},
    {"cotenant_model_tuned_total", "counter",
     "Times faster kernel versions replaced those in service.", tunings},
};

static void put_models(MetricsText *t) {
    for (size_t f = 0; f < sizeof model_families / sizeof *model_families; f++) {
        const ModelFamily  *row = &model_families[f];
        const MetricsModel *x;
        put_family_head(&t->s, row->name, row->type, row->help);
        for (uint32_t i = 0; (x = next_model(t, &i)) != NULL;) {
            start(t, row->name, x->model, NULL, NULL);
            put_real(t, row->value(x, &t->loads[i - 1]));
        }
    }
}

static void put_cores(MetricsText *t, const LiveStatus *l) {
    const struct {
        const char *state;
        uint32_t    n;
    } rows[] = {{"present", l->cores}, {"budget", l->budget}, {"busy", l->busy}};
    put_family_head(&t->s, "cotenant_cores", "gauge",
                    "Cores present, usable under quota and affinity, and busy.");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        str_buf_printf(&t->s, "cotenant_cores{state=\"%s\"} %u\n", rows[i].state, rows[i].n);
}

static void put_engine(MetricsText *t) {
    const LiveStatus *l = t->now->live;
    if (l == NULL) return;
    put_cores(t, l);
    put(&t->s, "cotenant_demoted", "gauge",
        "Requests computed without cores of their own: on idle cores and in a small share.",
        l->demoted);
    put(&t->s, "cotenant_interference_level", "gauge",
        "Interference level of shared caches and memory.", l->level);
    put(&t->s, "cotenant_throttled", "gauge",
        "1 if the system grants less CPU time than its quota.", l->throttled ? 1 : 0);
    put(&t->s, "cotenant_decisions_total", "counter", "Decisions of the scheduling policy.",
        (double)l->decisions);
    put(&t->s, "cotenant_rejected_plans_total", "counter",
        "Actions of the policy that were invalid.", (double)l->refused);
    put(&t->s, "cotenant_decision_seconds_total", "counter", "Time spent in the policy.",
        l->decide_ns / 1e9);
}

typedef struct ListenerFamily {
    const char *name, *type, *help;
    size_t      offset;
    bool        narrow;  // uint32_t, else uint64_t
} ListenerFamily;

static const ListenerFamily listener_families[] = {
    {"cotenant_connections", "gauge", "Open connections.", offsetof(ListenerCounts, open), true},
    {"cotenant_connections_total", "counter", "Connections accepted.",
     offsetof(ListenerCounts, accepted), false},
    {"cotenant_connections_rejected_total", "counter", "Connections rejected at the limit.",
     offsetof(ListenerCounts, refused), false},
    {"cotenant_exchanges_total", "counter", "HTTP requests, inference and others.",
     offsetof(ListenerCounts, requests), false},
    {"cotenant_exchanges_bad_total", "counter",
     "HTTP requests that violated the protocol or a limit.", offsetof(ListenerCounts, bad), false},
    {"cotenant_connections_evicted_total", "counter",
     "Connections and responses closed to make room for others.", offsetof(ListenerCounts, evicted),
     false},
    {"cotenant_body_bytes", "gauge", "Memory of request bodies.",
     offsetof(ListenerCounts, body_bytes), false},
    {"cotenant_held_bytes", "gauge", "Memory that the listener and its connections hold.",
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

static void put_listeners(MetricsText *t) {
    for (size_t f = 0; f < sizeof listener_families / sizeof *listener_families; f++) {
        const ListenerFamily *row = &listener_families[f];
        put_family_head(&t->s, row->name, row->type, row->help);
        for (uint32_t i = 0; i < 4; i++) {
            if (t->now->names[i] == NULL) continue;
            str_buf_printf(&t->s, "%s{listener=\"", row->name);
            str_buf_label(&t->s, t->now->names[i]);
            str_buf_text(&t->s, "\"} ");
            str_buf_printf(&t->s, "%llu\n",
                           (unsigned long long)listener_value(&t->now->listeners[i], row));
        }
    }
}

// Bounds as LoopCounts has them.
static void put_loop(MetricsText *t) {
    static const char *const bounds[LOOP_STRETCHES] = {"0.0001", "0.001", "0.01", "0.1", "+Inf"};
    const LoopCounts        *c = &t->now->loop;
    uint64_t                 n = 0;
    put_family_head(&t->s, "cotenant_loop_stretch_seconds", "histogram",
                    "Time of the event loop on one connection, timer or completed request.");
    for (uint32_t i = 0; i < LOOP_STRETCHES; i++) {
        n += c->turns[i];
        str_buf_printf(&t->s, "cotenant_loop_stretch_seconds_bucket{le=\"%s\"} %llu\n", bounds[i],
                       (unsigned long long)n);
    }
    str_buf_printf(&t->s,
                   "cotenant_loop_stretch_seconds_sum %.9f\ncotenant_loop_stretch_seconds_count "
                   "%llu\n",
                   (double)c->total / 1e9, (unsigned long long)n);
    put(&t->s, "cotenant_loop_longest_seconds", "gauge", "The longest of these.",
        (double)c->longest / 1e9);
    put(&t->s, "cotenant_loop_longest_cpu_seconds", "gauge",
        "CPU time of the one that had most of it.", (double)c->worked / 1e9);
    put(&t->s, "cotenant_loop_overlong_total", "counter",
        "Those with more than a millisecond of CPU time.", (double)c->overlong);
}

static void put_server(MetricsText *t) {
    put_engine(t);
    put_listeners(t);
    put_loop(t);
    put(&t->s, "cotenant_ready", "gauge", "1 if all required models are ready.",
        t->now->ready ? 1 : 0);
    put(&t->s, "cotenant_requests_open", "gauge", "Requests in flight.", t->now->open_requests);
    if (t->now->memory != NULL) {
        put(&t->s, "cotenant_buffered_bytes", "gauge", "Memory of all requests and connections.",
            (double)budget_used(t->now->memory));
        put(&t->s, "cotenant_buffered_limit_bytes", "gauge",
            "Limit of cotenant_buffered_bytes (buffered_mb).", (double)t->now->memory->most);
    }
    put(&t->s, "cotenant_log_dropped_total", "counter",
        "Log lines dropped: ring full or write failed.", (double)t->now->log_dropped);
    put(&t->s, "cotenant_log_suppressed_total", "counter", "Log lines above the rate limit.",
        (double)t->now->log_suppressed);
}

// Standard process metrics; what the system does not report is left out.

static void put_memory(StrBuf *s) {
    char  line[128] = "", *end = NULL;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL) return;
    bool read = fgets(line, sizeof line, f) != NULL;
    long page = sysconf(_SC_PAGESIZE);
    (void)fclose(f);
    uint64_t size = strtoull(line, &end, 10), resident = strtoull(end, NULL, 10);
    if (!read || page <= 0 || resident == 0) return;
    put(s, "process_resident_memory_bytes", "gauge", "Resident memory.",
        (double)resident * (double)page);
    put(s, "process_virtual_memory_bytes", "gauge", "Virtual memory, mostly never touched.",
        (double)size * (double)page);
}

static void put_descriptors(StrBuf *s) {
    uint64_t      n = 0;
    struct rlimit most;
    DIR          *d = opendir("/proc/self/fd");
    if (d == NULL) return;
    while (readdir(d) != NULL) n++;
    (void)closedir(d);
    n = n > 3 ? n - 3 : 0;  // without the directory itself, . and ..
    put(s, "process_open_fds", "gauge", "Open file descriptors.", (double)n);
    if (getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur != RLIM_INFINITY)
        put(s, "process_max_fds", "gauge", "Limit of file descriptors.", (double)most.rlim_cur);
}

static void put_cpu(StrBuf *s) {
    struct timespec t;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return;
    put(s, "process_cpu_seconds_total", "counter", "CPU time.",
        (double)t.tv_sec + (double)t.tv_nsec / 1e9);
}

static void put_process(const Metrics *m, StrBuf *s) {
    put_cpu(s);
    put_memory(s);
    put_descriptors(s);
    put(s, "process_start_time_seconds", "gauge", "Start time, seconds since 1970.", m->started);
    put_family_head(s, "cotenant_build_info", "gauge", "Version and compiler.");
    str_buf_text(s, "cotenant_build_info{version=\"" COTENANT_VERSION "\",compiler=\"");
    str_buf_label(s, __VERSION__);
    str_buf_text(s, "\"} 1\n");
}

// Triton's metric names, for existing dashboards: by model and version, times in microseconds.

typedef struct Family {
    const char *name, *help, *reason;  // reason: label; NULL: none
    uint64_t (*value)(const MetricsRow *r);
} Family;

static uint64_t us(MetricsSum sum) { return (uint64_t)sum.ns / 1000; }

static uint64_t success(const MetricsRow *r) { return r->success.count; }
static uint64_t rejected(const MetricsRow *r) { return r->rejected; }
static uint64_t cancelled(const MetricsRow *r) { return r->cancelled; }
static uint64_t broken(const MetricsRow *r) { return r->broken; }
static uint64_t other(const MetricsRow *r) {
    return r->fail.count - r->rejected - r->cancelled - r->broken;
}
static uint64_t inferences(const MetricsRow *r) { return r->inferences; }
static uint64_t executions(const MetricsRow *r) { return r->executions; }
static uint64_t request_us(const MetricsRow *r) { return us(r->success); }
static uint64_t queue_us(const MetricsRow *r) { return us(r->queue); }
static uint64_t input_us(const MetricsRow *r) { return us(r->compute_input); }
static uint64_t infer_us(const MetricsRow *r) { return us(r->compute_infer); }
static uint64_t output_us(const MetricsRow *r) { return us(r->compute_output); }

static const Family families[] = {
    {"nv_inference_request_success", "Successful requests.", NULL, success},
    {"nv_inference_request_failure", "Failed requests.", "REJECTED", rejected},
    {"nv_inference_request_failure", NULL, "CANCELED", cancelled},
    {"nv_inference_request_failure", NULL, "BACKEND", broken},
    {"nv_inference_request_failure", NULL, "OTHER", other},
    {"nv_inference_count", "Inferences; a batch of n counts n.", NULL, inferences},
    {"nv_inference_exec_count", "Executions.", NULL, executions},
    {"nv_inference_request_duration_us", "Time of successful requests.", NULL, request_us},
    {"nv_inference_queue_duration_us", "Queue time.", NULL, queue_us},
    {"nv_inference_compute_input_duration_us", "Decoding time.", NULL, input_us},
    {"nv_inference_compute_infer_duration_us", "Compute time.", NULL, infer_us},
    {"nv_inference_compute_output_duration_us", "Encoding time.", NULL, output_us},
};

static void put_labels(StrBuf *s, const char *name, const MetricsRow *r) {
    str_buf_text(s, name);
    str_buf_text(s, "{model=\"");
    str_buf_label(s, r->model);
    str_buf_text(s, "\",version=\"");
    str_buf_label(s, r->version);
    str_buf_text(s, "\"");
}

static void put_family(MetricsText *t, const Family *f) {
    const MetricsModel *x;
    StrBuf             *s = &t->s;
    if (f->help != NULL) put_family_head(s, f->name, "counter", f->help);
    for (uint32_t i = 0; (x = next_model(t, &i)) != NULL;)
        for (uint32_t v = 0; v < x->n_versions; v++) {
            const MetricsRow *r = &x->versions[v];
            put_labels(s, f->name, r);
            if (f->reason != NULL) str_buf_printf(s, ",reason=\"%s\"", f->reason);
            str_buf_text(s, "} ");
            str_buf_int(s, f->value(r));
            str_buf_text(s, "\n");
        }
}

// The queue belongs to the model: reported for the version registered last.
static void put_pending(MetricsText *t) {
    const char *name = "nv_inference_pending_request_count";
    put_family_head(&t->s, name, "gauge", "Queued requests.");
    const MetricsModel *x;
    for (uint32_t i = 0; (x = next_model(t, &i)) != NULL;) {
        uint32_t newest = 0;
        if (x->n_versions == 0) continue;
        for (uint32_t v = 1; v < x->n_versions; v++)
            if (x->registered[v] > x->registered[newest]) newest = v;
        put_labels(&t->s, name, &x->versions[newest]);
        str_buf_printf(&t->s, "} %u\n", t->loads[i - 1].waiting);
    }
}

static void put_triton(MetricsText *t) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) put_family(t, &families[i]);
    put_pending(t);
}

Err metrics_text(const Metrics *m, const MetricsNow *now, Arena *a, Str *out) {
    MetricsLoad *loads = NULL;
    size_t       mark = a->used;
    uint32_t     n_models = m->n_models;
    TRY(metrics_loads(m, now->live, now->registry, a, &loads));
    MetricsText t = {.m = m, .now = now, .loads = loads, .n_models = n_models};
    str_buf_begin(&t.s, a, TEXT_BYTES);
    put_durations(&t);
    put_counters(&t);
    put_models(&t);
    put_server(&t);
    if (m->triton) put_triton(&t);
    put_process(m, &t.s);
    Err e = str_buf_end(&t.s, out);
    if (e != ERR_OK) arena_rewind(a, mark);
    return e;
}
