#include "serve/metrics.h"

#include <string.h>

#include "base/clock.h"
#include "serve/metrics_int.h"

Err metrics_create(Metrics **out, bool triton) {
    Arena a = {0};
    TRY(arena_init(&a, sizeof(Metrics) + FLEET_SEATS * sizeof(MetricsSeat) + 128));
    Metrics *m = arena_new(&a, Metrics, 1);
    m->seats = arena_new(&a, MetricsSeat, FLEET_SEATS);
    m->triton = triton;
    m->started = (double)clock_now(clock_wall()) / 1e9;
    m->arena = a;
    *out = m;
    return ERR_OK;
}

void metrics_destroy(Metrics *m) {
    if (m == NULL) return;
    Arena a = m->arena;
    arena_finish(&a);
}

static void place_edges(MetricsSeat *s) {
    static const int64_t quarters[METRICS_EDGES] = {1, 2, 3, 4, 5, 6, 8, 16};
    static const TimeNs  plain[METRICS_EDGES] = {1000000,   3000000,   10000000,   30000000,
                                                 100000000, 300000000, 1000000000, 3000000000};
    for (uint32_t i = 0; i < METRICS_EDGES; i++)
        s->edges[i] = s->target_ns > 3 && s->target_ns < INT64_MAX / 16
                          ? s->target_ns * quarters[i] / 4
                          : plain[i];
    s->request = s->queue = s->compute = (MetricsBuckets){0};
}

static uint32_t version_of(const MetricsSeat *s, const char *version) {
    for (uint32_t i = 0; version != NULL && i < s->n_versions; i++)
        if (s->versions[i].version == version || strcmp(s->versions[i].version, version) == 0)
            return i;
    return METRICS_VERSIONS;
}

static uint32_t oldest(const MetricsSeat *s) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < s->n_versions; i++)
        if (s->seated[i] < s->seated[best]) best = i;
    return best;
}

static void seat_version(Metrics *m, MetricsSeat *s, const char *version) {
    uint32_t i = version_of(s, version);
    if (i == METRICS_VERSIONS) {
        i = s->n_versions < METRICS_VERSIONS ? s->n_versions++ : oldest(s);
        s->versions[i] = (MetricsRow){.model = s->model, .version = version};
        s->last[i] = 0;
    }
    s->seated[i] = ++m->seatings;
}

void metrics_seat(Metrics *m, uint32_t seat, const char *model, const char *version,
                  TimeNs target_ns, double percentile) {
    if (seat >= FLEET_SEATS) return;
    MetricsSeat *s = &m->seats[seat];
    bool         fresh = s->model == NULL;
    s->model = model;
    s->percentile = percentile;
    if (fresh || s->target_ns != target_ns) {
        s->target_ns = target_ns;
        place_edges(s);
    }
    if (seat >= m->n_seats) m->n_seats = seat + 1;
    seat_version(m, s, version);
}

void metrics_engine(Metrics *m, NodeLive *engine) { m->engine = engine; }

void metrics_tenant(Metrics *m, uint32_t tenant, uint32_t seat) {
    if (tenant < LIVE_TENANTS) m->owners[tenant] = seat < FLEET_SEATS ? seat + 1 : 0;
}

static void observe(const MetricsSeat *s, MetricsBuckets *b, Hist *h, TimeNs t) {
    uint32_t i = 0;
    if (t < 0) t = 0;
    while (i < METRICS_EDGES && t > s->edges[i]) i++;
    b->counts[i]++;
    b->sum += t;
    hist_record(h, t);
}

static void remember(MetricsSeat *s, bool met) {
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
    v->rejected += r->end == RECEIPT_FULL || r->end == RECEIPT_REFUSED ||
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

static bool was_served(ReceiptEnd e) {
    return e == RECEIPT_OK || e == RECEIPT_EXPIRED || e == RECEIPT_FAILED || e == RECEIPT_STUCK;
}

void metrics_note(Metrics *m, const Receipt *r) {
    if (r->seat >= FLEET_SEATS || m->seats[r->seat].model == NULL) {
        m->strangers[r->end]++;
        return;
    }
    MetricsSeat   *s = &m->seats[r->seat];
    ReceiptOutcome o = receipt_outcome(r);
    uint32_t       v = version_of(s, r->version);
    s->ends[r->end]++;
    if (o != RECEIPT_NO_OUTCOME) {
        s->outcomes[o]++;
        remember(s, o == RECEIPT_MET);
    }
    s->causes[receipt_cause(r)]++;
    s->preemptions += r->timing.pauses;
    s->conflicts += r->timing.conflicts;
    s->core_ns += (double)r->timing.core_ns;
    if (was_served(r->end)) observe(s, &s->request, &s->latency, receipt_latency(r));
    if (was_served(r->end) && r->submitted > 0)
        observe(s, &s->queue, &s->queueing, receipt_queued(r));
    if (r->timing.blocks > 0) observe(s, &s->compute, &s->computing, r->timing.compute_ns);
    if (v == METRICS_VERSIONS) return;
    note_version(&s->versions[v], r);
    if (r->end == RECEIPT_OK) s->last[v] = r->finished;
}

// Steady to wall: what was a while ago then is so long ago now.
static uint64_t wall_ms(TimeNs steady) {
    if (steady <= 0) return 0;
    TimeNs at = clock_now(clock_wall()) - (clock_now(clock_steady()) - steady);
    return at > 0 ? (uint64_t)at / 1000000 : 0;
}

bool metrics_read(const Metrics *m, uint32_t seat, const char *version, MetricsRow *out) {
    if (seat >= FLEET_SEATS) return false;
    const MetricsSeat *s = &m->seats[seat];
    uint32_t           v = version_of(s, version);
    if (s->model == NULL || v == METRICS_VERSIONS) return false;
    *out = s->versions[v];
    out->last_ms = wall_ms(s->last[v]);
    return true;
}

static void add_tenants(const Metrics *m, const LiveStatus *live, MetricsLoad *loads) {
    for (uint32_t i = 0; i < live->n_tenants && i < LIVE_TENANTS; i++) {
        if (m->owners[i] == 0 || m->owners[i] > m->n_seats) continue;
        MetricsLoad *load = &loads[m->owners[i] - 1];
        load->waiting += live->tenants[i].waiting;
        load->running += live->tenants[i].running;
        load->cores += live->tenants[i].cores;
    }
}

static void add_versions(const Metrics *m, const Fleet *f, MetricsLoad *loads) {
    for (uint32_t i = 0; i < fleet_count(f); i++) {
        const Served *s = fleet_at(f, i);
        if (s->seat >= m->n_seats) continue;
        loads[s->seat].memory_bytes += s->memory_bytes;
        loads[s->seat].ready = loads[s->seat].ready || s->state == FLEET_READY;
    }
}

Err metrics_loads(const Metrics *m, const LiveStatus *live, const Fleet *f, Arena *a,
                  MetricsLoad **out) {
    MetricsLoad *loads = arena_try_new(a, MetricsLoad, m->n_seats);
    if (loads == NULL) return err_set(ERR_LIMIT, "no memory to count %u models", m->n_seats);
    if (live != NULL) add_tenants(m, live, loads);
    if (f != NULL) add_versions(m, f, loads);
    *out = loads;
    return ERR_OK;
}

double metrics_hit_ratio(const MetricsSeat *s) {
    return s->recent_n > 0 ? (double)s->recent_met / s->recent_n : 1;
}

bool metrics_attained(const MetricsSeat *s) {
    return metrics_hit_ratio(s) * 100 >= s->percentile - 1e-9;
}
