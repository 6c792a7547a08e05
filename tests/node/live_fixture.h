// TestRequest: a request to the live engine and its result, and a FIFO policy to run it under.
#pragma once

#include <unistd.h>

#include "base/clock.h"
#include "tests/node/random_policy.h"
#include "tests/node/tenants.h"

static const uint8_t test_slices[8];

typedef struct TestRequest {  // one request
    _Atomic uint32_t  answers;
    EngineResult      answer;  // without outputs
    bool              right;
    _Atomic bool      cancelled;
    const TestTenant *of;
    _Atomic uint32_t *order;     // counter of results of all requests; NULL: none
    uint32_t          position;  // among them
} TestRequest;

static inline TimeNs test_now(void) { return clock_now(clock_monotonic()); }

static inline NodeMachine test_machine(const NodeLive *l) {
    return (NodeMachine){
        .n_cores = node_live_cores(l), .n_slices = 1, .slice_of = test_slices, .dispatch_ns = 1000};
}

static inline void test_request_done(void *self, const EngineResult *a) {
    TestRequest *s = self;
    s->answer = *a;
    s->right = a->outputs != NULL;
    for (uint32_t i = 0; s->right && s->of != NULL && i < s->of->n_outputs; i++)
        s->right = tenant_close(&s->of->want[0][i], &a->outputs[i]);
    if (s->order != NULL) s->position = atomic_fetch_add(s->order, 1);
    atomic_fetch_add(&s->answers, 1);
}

static inline void test_request_submit(NodeLive *l, TestRequest *s, EngineRequest ask) {
    ask.arrival = test_now();
    if (ask.deadline == 0) ask.deadline = INT64_C(1000000000);
    ask.deadline += ask.arrival;
    if (ask.expire > 0) ask.expire += ask.arrival;
    ask.cancelled = &s->cancelled;
    ask.done = test_request_done;
    ask.self = s;
    assert_true(node_live_submit(l, &ask));
}

static inline const EngineResult *test_request_wait(const TestRequest *s) {
    for (uint32_t i = 0; atomic_load(&s->answers) == 0; i++) {
        if (i > 100000) fail_msg("no answer came");
        (void)usleep(100);
    }
    return &s->answer;
}

static inline LiveTenant live_tenant_of(const TestTenant *t) {
    return (LiveTenant){
        .tenant = {.model = &t->table, .name = "test", .qos_ns = 20000000, .priority = 1},
        .program = &t->program,
        .inputs = t->inputs[0]};
}

// Whole models on one core each, in order of arrival. Nothing starts while *closed is set.
typedef struct FifoSettings {
    _Atomic bool    *closed;    // NULL: never
    _Atomic uint32_t rejects;   // requests it rejects before it starts any
    uint32_t         layers;    // of a block; 0: all
    uint32_t         cores;     // of a block; 0: 1
    bool             once;      // closes after the first block
    useconds_t       pause_us;  // time a decision takes
} FifoSettings;

static inline size_t fifo_size(const NodeSetup *setup, const void *settings) {
    (void)setup, (void)settings;
    return sizeof(FifoSettings *);
}

static inline void fifo_init(void *state, const NodeSetup *setup, const void *settings) {
    (void)setup;
    memcpy(state, &settings, sizeof settings);
}

static inline Cores fifo_take(Cores *free, uint32_t n) {
    Cores out = {0};
    for (uint32_t c = cores_next(free, 0); c < CORES_MAX && n > 0; c = cores_next(free, c + 1), n--)
        cores_add(&out, c);
    *free = cores_difference(*free, &out);
    return out;
}

static inline uint32_t fifo_decide(void *state, const NodeView *v, NodeAction *out, uint32_t max) {
    static const uint8_t versions[RANDOM_LAYERS];
    FifoSettings        *p = *(FifoSettings **)state;
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
                                .cores = fifo_take(&free, p->cores > 0 ? p->cores : 1),
                                .versions = versions};
        if (p->once) atomic_store(p->closed, true);
    }
    return n;
}

static const NodePolicy fifo_policy = {
    .name = "plain", .state_size = fifo_size, .init = fifo_init, .decide = fifo_decide};
