#include "serve/observe/metrics.h"

#include <string.h>

#include "base/clock.h"
#include "serve/observe/metrics_int.h"

Err metrics_create(Metrics **out, bool triton) {
    Arena a = {0};
    TRY(arena_init(&a, sizeof(Metrics) + REGISTRY_SLOTS * sizeof(MetricsModel) + 128));
    Metrics *m = arena_new(&a, Metrics, 1);
    m->models = arena_new(&a, MetricsModel, REGISTRY_SLOTS);
    m->triton = triton;
    m->started = (double)clock_now(clock_realtime()) / 1e9;
    m->arena = a;
    *out = m;
    return ERR_OK;
}

void metrics_destroy(Metrics *m) {
    if (m == NULL) return;
    Arena a = m->arena;
    arena_finish(&a);
}

static void place_edges(MetricsModel *s) {
    static const int64_t quarters[METRICS_EDGES] = {1, 2, 3, 4, 5, 6, 8, 16};
    static const TimeNs  plain[METRICS_EDGES] = {1000000,   3000000,   10000000,   30000000,
                                                 100000000, 300000000, 1000000000, 3000000000};
    for (uint32_t i = 0; i < METRICS_EDGES; i++)
        s->edges[i] = s->target_ns > 3 && s->target_ns < INT64_MAX / 16
                          ? s->target_ns * quarters[i] / 4
                          : plain[i];
    s->request = s->queue = s->compute = (MetricsBuckets){0};
}

static uint32_t version_of(const MetricsModel *s, const char *version) {
    for (uint32_t i = 0; version != NULL && i < s->n_versions; i++)
        if (s->versions[i].version == version || strcmp(s->versions[i].version, version) == 0)
            return i;
    return METRICS_VERSIONS;
}

static uint32_t oldest(const MetricsModel *s) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < s->n_versions; i++)
        if (s->registered[i] < s->registered[best]) best = i;
    return best;
}

static void register_version(Metrics *m, MetricsModel *s, const char *version) {
    uint32_t i = version_of(s, version);
    if (i == METRICS_VERSIONS) {
        i = s->n_versions < METRICS_VERSIONS ? s->n_versions++ : oldest(s);
        s->versions[i] = (MetricsRow){.model = s->model, .version = version};
        s->last[i] = 0;
    }
    s->registered[i] = ++m->registrations;
}

void metrics_register(Metrics *m, uint32_t slot, const char *model, const char *version,
                      TimeNs target_ns, double percentile) {
    if (slot >= REGISTRY_SLOTS) return;
    MetricsModel *s = &m->models[slot];
    bool          fresh = s->model == NULL;
    s->model = model;
    s->percentile = percentile;
    if (fresh || s->target_ns != target_ns) {
        s->target_ns = target_ns;
        place_edges(s);
    }
    if (slot >= m->n_models) m->n_models = slot + 1;
    register_version(m, s, version);
}

void metrics_tuned(Metrics *m, uint32_t slot) {
    if (slot < REGISTRY_SLOTS) m->models[slot].tunings++;
}

void metrics_engine(Metrics *m, NodeLive *engine) { m->engine = engine; }

void metrics_tenant(Metrics *m, uint32_t tenant, uint32_t slot) {
    if (tenant < LIVE_TENANTS) m->tenant_models[tenant] = slot < REGISTRY_SLOTS ? slot + 1 : 0;
}

static void observe(const MetricsModel *s, MetricsBuckets *b, Hist *h, TimeNs t) {
    uint32_t i = 0;
    if (t < 0) t = 0;
    while (i < METRICS_EDGES && t > s->edges[i]) i++;
    b->counts[i]++;
    b->sum += t;
    hist_record(h, t);
}

static void remember(MetricsModel *s, bool met) {
    uint64_t *word = &s->recent[s->recent_at / 64], bit = UINT64_C(1) << s->recent_at % 64;
    if (s->recent_n == METRICS_RECENT)
        s->recent_met -= (*word & bit) != 0;
    else
        s->recent_n++;
    s->recent_met += met;
    *word = met ? *word | bit : *word & ~bit;
    s->recent_at = (s->recent_at + 1) % METRICS_RECENT;
}

static void add(MetricsSum *sum, TimeNs t) {
    sum->count++;
    sum->ns += t > 0 ? t : 0;
}

static void note_batch(MetricsRow *v, uint32_t batch, TimeNs t) {
    uint32_t i = 0;
    while (i < v->n_batches && v->batches[i].size != batch) i++;
    if (i == METRICS_BATCHES) return;
    if (i == v->n_batches) v->batches[v->n_batches++].size = batch;
    add(&v->batches[i].compute_infer, t);
}

static void note_failure(MetricsRow *v, const Receipt *r) {
    add(&v->fail, receipt_latency(r));
    v->cancelled += r->end == RECEIPT_CANCELLED;
    v->broken += r->end == RECEIPT_FAILED || r->end == RECEIPT_STUCK;
    v->rejected += r->end == RECEIPT_FULL || r->end == RECEIPT_REJECTED ||
                   r->end == RECEIPT_EXPIRED || r->end == RECEIPT_QUARANTINED ||
                   r->end == RECEIPT_UNREADY || r->end == RECEIPT_MEMORY;
}

static void note_version(MetricsRow *v, const Receipt *r) {
    const LiveTiming *t = &r->timing;
    TimeNs            infer = t->compute_ns + t->paused_ns;
    uint32_t          batch = r->batch > 0 ? r->batch : 1;
    if (r->submitted > 0) add(&v->queue, receipt_queued(r));
    if (r->end != RECEIPT_OK) {
        note_failure(v, r);
        return;
    }
    v->inferences += batch;
    v->executions++;
    add(&v->success, receipt_latency(r));
    add(&v->compute_input, r->decoded - r->arrived);
    add(&v->compute_infer, infer);
    add(&v->compute_output, r->answered > 0 ? r->answered - r->finished : 0);
    note_batch(v, batch, infer);
}

static bool was_admitted(ReceiptEnd e) {
    return e == RECEIPT_OK || e == RECEIPT_EXPIRED || e == RECEIPT_FAILED || e == RECEIPT_STUCK;
}

void metrics_note(Metrics *m, const Receipt *r) {
    if (r->slot >= REGISTRY_SLOTS || m->models[r->slot].model == NULL) {
        m->unmatched[r->end]++;
        return;
    }
    MetricsModel  *s = &m->models[r->slot];
    ReceiptOutcome o = receipt_outcome(r);
    uint32_t       v = version_of(s, r->version);
    s->ends[r->end]++;
    if (o != RECEIPT_NO_OUTCOME) {
        s->outcomes[o]++;
        remember(s, o == RECEIPT_OUTCOME_MET);
    }
    s->causes[receipt_cause(r)]++;
    s->preemptions += r->timing.pauses;
    s->conflicts += r->timing.conflicts;
    s->yields += r->timing.yields;
    s->demotions += r->timing.demotions;
    s->degraded += r->timing.degraded;
    s->core_ns += (double)r->timing.core_ns;
    if (was_admitted(r->end)) observe(s, &s->request, &s->latency, receipt_latency(r));
    if (was_admitted(r->end) && r->submitted > 0)
        observe(s, &s->queue, &s->queueing, receipt_queued(r));
    if (r->timing.blocks > 0) observe(s, &s->compute, &s->computing, r->timing.compute_ns);
    if (v == METRICS_VERSIONS) return;
    note_version(&s->versions[v], r);
    if (r->end == RECEIPT_OK) s->last[v] = r->finished;
}

// Converts monotonic to Unix time, by their present difference.
static uint64_t wall_ms(TimeNs steady) {
    if (steady <= 0) return 0;
    TimeNs at = clock_now(clock_realtime()) - (clock_monotonic_ns() - steady);
    return at > 0 ? (uint64_t)at / 1000000 : 0;
}

bool metrics_read(const Metrics *m, uint32_t slot, const char *version, MetricsRow *out) {
    if (slot >= REGISTRY_SLOTS) return false;
    const MetricsModel *s = &m->models[slot];
    uint32_t            v = version_of(s, version);
    if (s->model == NULL || v == METRICS_VERSIONS) return false;
    *out = s->versions[v];
    out->last_ms = wall_ms(s->last[v]);
    return true;
}

static void add_tenants(const Metrics *m, const LiveStatus *live, MetricsLoad *loads) {
    for (uint32_t i = 0; i < live->n_tenants && i < LIVE_TENANTS; i++) {
        if (m->tenant_models[i] == 0 || m->tenant_models[i] > m->n_models) continue;
        MetricsLoad *load = &loads[m->tenant_models[i] - 1];
        load->waiting += live->tenants[i].waiting;
        load->running += live->tenants[i].running;
        load->cores += live->tenants[i].cores;
    }
}

static void add_versions(const Metrics *m, const ModelRegistry *f, MetricsLoad *loads) {
    for (uint32_t i = 0; i < registry_count(f); i++) {
        const ModelInfo *s = registry_at(f, i);
        if (s->slot >= m->n_models) continue;
        loads[s->slot].memory_bytes += s->memory_bytes;
        loads[s->slot].request_bytes += budget_used(&s->memory);
        loads[s->slot].request_limit += s->memory.most;
        loads[s->slot].ready = loads[s->slot].ready || s->state == MODEL_READY;
        loads[s->slot].tuning = loads[s->slot].tuning || s->tuning;
    }
}

Err metrics_loads(const Metrics *m, const LiveStatus *live, const ModelRegistry *f, Arena *a,
                  MetricsLoad **out) {
    MetricsLoad *loads = arena_try_new(a, MetricsLoad, m->n_models);
    if (loads == NULL)
        return err_set(ERR_LIMIT, "out of memory for the metrics of %u models", m->n_models);
    if (live != NULL) add_tenants(m, live, loads);
    if (f != NULL) add_versions(m, f, loads);
    *out = loads;
    return ERR_OK;
}

double metrics_hit_ratio(const MetricsModel *s) {
    return s->recent_n > 0 ? (double)s->recent_met / s->recent_n : 1;
}

bool metrics_attained(const MetricsModel *s) {
    return metrics_hit_ratio(s) * 100 >= s->percentile - 1e-9;
}

const char *metrics_end_name(uint32_t end) { return receipt_end_name((ReceiptEnd)end); }

const char *metrics_cause_name(uint32_t cause) {
    return cause == RECEIPT_CAUSE_NONE ? NULL : receipt_cause_name((ReceiptCause)cause);
}
