// NodeSample: tenants with random cost tables and random views of a server, for tests and
// benchmarks of policies.
#pragma once

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "policy/policies.h"

enum { NODE_SAMPLE_TENANTS = 3 };

typedef struct NodeSample {
    NodeMachine machine;
    NodeTenant  tenants[NODE_SAMPLE_TENANTS];
    NodeSetup   setup;
} NodeSample;

typedef struct NodeSampleView {
    NodeView     view;
    NodeRequest *requests;
} NodeSampleView;

// Higher versions of a layer are slower alone and use less of the shared cache.
static inline void node_sample_layer(Rng *rng, NodeModel *m, NodeLayer *layer, float *times,
                                     uint32_t l) {
    double work = 2e6 * (0.2 + rng_unit64(rng)), fixed = 4e3 * rng_unit64(rng);
    *layer =
        (NodeLayer){.name = "layer", .n_versions = 1 + (uint32_t)rng_below(rng, NODE_VERSIONS)};
    for (uint32_t v = 0; v < layer->n_versions; v++) {
        double slower = 1.0 + 0.1 * v, tender = 0.3 / (1.0 + v);
        layer->versions[v] = (NodeVersion){.tasks = 256, .l3_bytes = (float)(4e6 / (1.0 + v))};
        for (uint32_t k = 0; k < m->n_counts; k++) {
            double c = m->counts[k], ns = slower * work / c + fixed + 200.0 * c;
            layer->versions[v].dram_bytes[k] = (float)(2e6 / (1.0 + v));
            for (uint32_t level = 0; level < NODE_LEVELS; level++)
                times[((l * NODE_VERSIONS + v) * m->n_counts + k) * NODE_LEVELS + level] =
                    (float)(ns * (1.0 + tender * level));
        }
    }
}

static inline void node_sample_sums(Arena *a, NodeModel *m) {
    size_t   room = (size_t)m->n_layers * m->n_counts * NODE_LEVELS;
    float   *best = arena_new(a, float, room), *solo = arena_new(a, float, room);
    uint8_t *picks = arena_new(a, uint8_t, room);
    for (uint32_t l = m->n_layers; l-- > 0;)
        for (uint32_t k = 0; k < m->n_counts; k++)
            for (uint32_t level = 0; level < NODE_LEVELS; level++) {
                uint8_t v = 0;
                for (uint8_t u = 1; u < m->layers[l].n_versions; u++)
                    if (node_time(m, l, u, k, level) < node_time(m, l, v, k, level)) v = u;
                size_t at = (l * m->n_counts + k) * NODE_LEVELS + level;
                size_t after = at + (size_t)m->n_counts * NODE_LEVELS;
                bool   last = l + 1 == m->n_layers;
                picks[(level * m->n_counts + k) * m->n_layers + l] = v;
                best[at] = node_time(m, l, v, k, level) + (last ? 0 : best[after]);
                solo[at] = node_time(m, l, 0, k, level) + (last ? 0 : solo[after]);
            }
    m->rest_best = best;
    m->rest_solo = solo;
    m->picks = picks;
}

static inline NodeModel *node_sample_model(Arena *a, Rng *rng, uint32_t n_layers,
                                           uint32_t n_cores) {
    NodeModel *m = arena_new(a, NodeModel, 1);
    m->name = "sample";
    m->n_layers = n_layers;
    for (uint32_t c = 1; c <= n_cores && m->n_counts < NODE_COUNTS; c += c < 4 ? 1 : 4)
        m->counts[m->n_counts++] = (uint16_t)c;
    NodeLayer *layers = arena_new(a, NodeLayer, n_layers);
    float *times = arena_new(a, float, (size_t)n_layers *NODE_VERSIONS * m->n_counts * NODE_LEVELS);
    m->layers = layers;
    m->times = times;
    for (uint32_t l = 0; l < n_layers; l++) node_sample_layer(rng, m, &layers[l], times, l);
    node_sample_sums(a, m);
    return m;
}

// Models of about 20, 50 and 100 layers; a QoS that needs a few cores.
static inline void node_sample_init(NodeSample *s, Arena *a, Rng *rng, uint32_t n_cores) {
    uint8_t *slice_of = arena_new(a, uint8_t, n_cores);
    for (uint32_t c = 0; c < n_cores; c++) slice_of[c] = (uint8_t)(c / 4);
    s->machine = (NodeMachine){.n_cores = n_cores,
                               .n_slices = (n_cores + 3) / 4,
                               .slice_of = slice_of,
                               .slice_bytes = 16e6F,
                               .dram_bytes_ns = 80.0F,
                               .dispatch_ns = 15e3F};
    static const uint32_t layers[NODE_SAMPLE_TENANTS] = {20, 53, 101};
    for (uint32_t i = 0; i < NODE_SAMPLE_TENANTS; i++) {
        NodeModel *m = node_sample_model(a, rng, layers[i], n_cores);
        uint32_t   k = node_count_index(m, n_cores < 12 ? n_cores : 12);
        float      alone = node_rest(m, m->rest_solo, 0, k, 0);
        s->tenants[i] = (NodeTenant){m, "tenant", (TimeNs)(1.5 * (double)alone), 1.0};
    }
    s->setup = (NodeSetup){&s->machine, s->tenants, NODE_SAMPLE_TENANTS};
}

static inline NodeRequest node_sample_request(const NodeSample *s, Rng *rng, TimeNs now,
                                              uint64_t id) {
    NodeRequest       r = {.id = id, .tenant = (uint32_t)rng_below(rng, NODE_SAMPLE_TENANTS)};
    const NodeTenant *t = &s->tenants[r.tenant];
    r.arrival = now - (TimeNs)(1.3 * rng_unit64(rng) * (double)t->qos_ns);
    r.deadline = r.arrival + t->qos_ns;
    if (rng_below(rng, 2) == 0) r.next = (uint32_t)rng_below(rng, t->model->n_layers);
    r.first = r.next > 0 ? r.next - 1 : 0;
    r.layer = r.first;
    r.since = r.arrival;
    r.computed = (TimeNs)((double)(now - r.arrival) * (r.next > 0 ? 2.0 : 0.0));
    r.versions = t->model->picks;
    return r;
}

static inline void node_sample_run(const NodeSample *s, Rng *rng, NodeSampleView *out,
                                   NodeRequest *r) {
    uint32_t n = 1 + (uint32_t)rng_below(rng, 12);
    if (n > out->view.n_free) n = out->view.n_free;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = (uint32_t)rng_below(rng, s->machine.n_cores);
        while (!cores_has(&out->view.free, c)) c = (c + 1) % s->machine.n_cores;
        cores_remove(&out->view.free, c);
        cores_add(&r->cores, c);
    }
    out->view.n_free -= n;
    r->state = NODE_RUNNING;
    r->wanted = n + (uint32_t)rng_below(rng, 4);
    r->next += 1 + (uint32_t)rng_below(rng, s->tenants[r->tenant].model->n_layers - r->next);
}

// A random view with n requests, some of them running.
static inline NodeSampleView node_sample_view(const NodeSample *s, Arena *a, Rng *rng,
                                              uint32_t n_waiting, uint32_t n_running) {
    NodeSampleView out = {0};
    uint32_t       n = n_waiting + n_running;
    uint32_t      *waiting = arena_new(a, uint32_t, n), *running = arena_new(a, uint32_t, n);
    NodeView      *v = &out.view;
    out.requests = arena_new(a, NodeRequest, n);
    *v = (NodeView){.now = 1000000000,
                    .setup = &s->setup,
                    .requests = out.requests,
                    .waiting = waiting,
                    .running = running,
                    .n_requests = n,
                    .free = cores_all(s->machine.n_cores),
                    .n_free = s->machine.n_cores,
                    .pressure = rng_unit(rng) * (NODE_LEVELS - 1)};
    v->level = (uint32_t)(v->pressure + 0.5F);
    for (uint32_t i = 0; i < n; i++) {
        NodeRequest *r = &out.requests[i];
        *r = node_sample_request(s, rng, v->now, i);
        bool runs = v->n_running < n_running && v->n_free > 0 &&
                    (rng_below(rng, 2) == 0 || v->n_waiting >= n_waiting);
        if (runs) {
            node_sample_run(s, rng, &out, r);
            running[v->n_running++] = i;
        } else {
            waiting[v->n_waiting++] = i;
        }
    }
    return out;
}

typedef struct NodeSamplePolicy {
    const NodePolicy *policy;
    void             *settings, *state;
} NodeSamplePolicy;

static inline NodeSamplePolicy node_sample_policy(const NodeSample *s, Arena *a,
                                                  const NodePolicy *policy) {
    NodeSamplePolicy out = {.policy = policy};
    out.settings = arena_alloc(a, 1, policy->settings_size, 64);
    Settings with = {policy->rows, policy->n_rows, out.settings, a};
    settings_default(&with);
    size_t bytes = policy->state_size != NULL ? policy->state_size(&s->setup, out.settings) : 0;
    out.state = arena_alloc(a, 1, bytes + 1, 64);
    if (policy->init != NULL) policy->init(out.state, &s->setup, out.settings);
    return out;
}
