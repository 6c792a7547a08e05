// Triton's names, for dashboards that exist: counters by model and version, times in microseconds.
#include "serve/metrics_int.h"

typedef struct Family {
    const char *name, *help, *reason;  // reason: a label; NULL: none
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
    {"nv_inference_request_success", "Requests that were answered.", NULL, success},
    {"nv_inference_request_failure", "Requests that were not.", "REJECTED", rejected},
    {"nv_inference_request_failure", NULL, "CANCELED", cancelled},
    {"nv_inference_request_failure", NULL, "BACKEND", broken},
    {"nv_inference_request_failure", NULL, "OTHER", other},
    {"nv_inference_count", "Inferences, those of a batch one by one.", NULL, inferences},
    {"nv_inference_exec_count", "Executions.", NULL, executions},
    {"nv_inference_request_duration_us", "Requests' time.", NULL, request_us},
    {"nv_inference_queue_duration_us", "Time in queues.", NULL, queue_us},
    {"nv_inference_compute_input_duration_us", "Time decoding.", NULL, input_us},
    {"nv_inference_compute_infer_duration_us", "Time computing.", NULL, infer_us},
    {"nv_inference_compute_output_duration_us", "Time answering.", NULL, output_us},
};

static void put_labels(Sheet *s, const char *name, const MetricsRow *r) {
    sheet_text(s, name);
    sheet_text(s, "{model=\"");
    sheet_label(s, r->model);
    sheet_text(s, "\",version=\"");
    sheet_label(s, r->version);
    sheet_text(s, "\"");
}

static void put_family(Sheet *s, const Metrics *m, const Family *f) {
    if (f->help != NULL) metrics_family(s, f->name, "counter", f->help);
    for (uint32_t i = 0; i < m->n_seats; i++)
        for (uint32_t v = 0; v < m->seats[i].n_versions; v++) {
            const MetricsRow *r = &m->seats[i].versions[v];
            put_labels(s, f->name, r);
            if (f->reason != NULL) sheet_printf(s, ",reason=\"%s\"", f->reason);
            sheet_text(s, "} ");
            sheet_int(s, f->value(r));
            sheet_text(s, "\n");
        }
}

// Queues are a model's: the version seated last has them.
static void put_pending(MetricsText *t) {
    const char *name = "nv_inference_pending_request_count";
    metrics_family(&t->s, name, "gauge", "Requests that wait.");
    for (uint32_t i = 0; i < t->m->n_seats; i++) {
        const MetricsSeat *x = &t->m->seats[i];
        uint32_t           newest = 0;
        if (x->n_versions == 0) continue;
        for (uint32_t v = 1; v < x->n_versions; v++)
            if (x->seated[v] > x->seated[newest]) newest = v;
        put_labels(&t->s, name, &x->versions[newest]);
        sheet_printf(&t->s, "} %u\n", t->loads[i].waiting);
    }
}

void metrics_triton(MetricsText *t) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        put_family(&t->s, t->m, &families[i]);
    put_pending(t);
}
