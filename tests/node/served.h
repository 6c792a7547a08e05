// Served: requests to an engine and what came of them, for tests of what a server does with it.
#pragma once

#include <unistd.h>

#include "base/clock.h"
#include "tests/node/chaos.h"
#include "tests/node/tenants.h"

static const uint8_t served_slices[8];

typedef struct Served {  // one request
    _Atomic uint32_t  answers;
    EngineResult      answer;  // without outputs
    bool              right;
    _Atomic bool      cancelled;
    const TestTenant *of;
    _Atomic uint32_t *order;     // counts answers; NULL: nobody does
    uint32_t          position;  // among them
} Served;

static inline TimeNs served_now(void) { return clock_now(clock_monotonic()); }

static inline NodeMachine served_machine(const NodeLive *l) {
    return (NodeMachine){.n_cores = node_live_cores(l),
                         .n_slices = 1,
                         .slice_of = served_slices,
                         .dispatch_ns = 1000};
}

static inline void served_note(void *self, const EngineResult *a) {
    Served *s = self;
    s->answer = *a;
    s->right = a->outputs != NULL;
    for (uint32_t i = 0; s->right && s->of != NULL && i < s->of->n_outputs; i++)
        s->right = tenant_close(&s->of->want[0][i], &a->outputs[i]);
    if (s->order != NULL) s->position = atomic_fetch_add(s->order, 1);
    atomic_fetch_add(&s->answers, 1);
}

static inline void served_ask(NodeLive *l, Served *s, EngineRequest ask) {
    ask.arrival = served_now();
    if (ask.deadline == 0) ask.deadline = INT64_C(1000000000);
    ask.deadline += ask.arrival;
    if (ask.expire > 0) ask.expire += ask.arrival;
    ask.cancelled = &s->cancelled;
    ask.done = served_note;
    ask.self = s;
    assert_true(node_live_submit(l, &ask));
}

static inline const EngineResult *served_wait(const Served *s) {
    for (uint32_t i = 0; atomic_load(&s->answers) == 0; i++) {
        if (i > 100000) fail_msg("no answer came");
        (void)usleep(100);
    }
    return &s->answer;
}

static inline LiveTenant served_tenant(const TestTenant *t) {
    return (LiveTenant){
        .tenant = {.model = &t->table, .name = "test", .qos_ns = 20000000, .priority = 1},
        .program = &t->program,
        .inputs = t->inputs[0]};
}

// Whole models on one core each, whoever came first. Settings: it starts nothing while that is set.
typedef struct PlainRule {
    _Atomic bool    *closed;    // NULL: never
    _Atomic uint32_t rejects;   // so many more, before it starts anything
    uint32_t         layers;    // of a block; 0: all
    uint32_t         cores;     // of a block; 0: 1
    bool             once;      // closes after the first block
    useconds_t       pause_us;  // that it takes to decide
} PlainRule;

static inline size_t served_size(const NodeSetup *setup, const void *settings) {
    (void)setup, (void)settings;
    return sizeof(PlainRule *);
}

static inline void served_init(void *state, const NodeSetup *setup, const void *settings) {
    (void)setup;
    memcpy(state, &settings, sizeof settings);
}

static inline Cores served_take(Cores *free, uint32_t n) {
    Cores out = {0};
    for (uint32_t c = cores_next(free, 0); c < CORES_MAX && n > 0; c = cores_next(free, c + 1), n--)
        cores_add(&out, c);
    *free = cores_difference(*free, &out);
    return out;
}

static inline uint32_t served_decide(void *state, const NodeView *v, NodeAction *out,
                                     uint32_t max) {
    static const uint8_t versions[CHAOS_LAYERS];
    PlainRule           *p = *(PlainRule **)state;
    uint32_t             n = 0;
    Cores                free = v->free;
    if (p->closed != NULL && atomic_load(p->closed)) return 0;
    if (p->pause_us > 0 && v->n_waiting > 0) (void)usleep(p->pause_us);
    for (uint32_t k = 0; k < v->n_waiting && n < max && cores_count(&free) > 0; k++) {
        const NodeRequest *r = &v->requests[v->waiting[k]];
        uint32_t           left = v->setup->tenants[r->tenant].model->n_layers - r->next;
        if (atomic_load(&p->rejects) > 0) {
            atomic_fetch_sub(&p->rejects, 1);
            out[n++] = (NodeAction){.verb = NODE_REJECT, .request = v->waiting[k]};
            continue;
        }
        out[n++] = (NodeAction){.verb = NODE_START,
                                .request = v->waiting[k],
                                .n_layers = p->layers > 0 && p->layers < left ? p->layers : left,
                                .wanted = p->cores > 0 ? p->cores : 1,
                                .cores = served_take(&free, p->cores > 0 ? p->cores : 1),
                                .versions = versions};
        if (p->once) atomic_store(p->closed, true);
    }
    return n;
}

static const NodePolicy served_plain = {
    .name = "plain", .state_size = served_size, .init = served_init, .decide = served_decide};
