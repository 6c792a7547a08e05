// TestTenant: a small compiled network with inputs, expected outputs and a synthetic table of layer
// times.
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "compile/program.h"
#include "model/net_builder.h"
#include "model/zoo/zoo.h"
#include "node/live/node_live.h"

enum { TENANT_INPUTS = 2 };

typedef struct TestTenant {
    Model        model;
    ShapedGraph *shaped;
    Program      program;
    NodeModel    table;
    Tensor      *inputs[TENANT_INPUTS];  // two sets
    Tensor      *want[TENANT_INPUTS];    // expected outputs, from program_run
    uint32_t     n_outputs;
} TestTenant;

static inline void tenant_check(Err e) {
    if (e != ERR_OK) fail_msg("%s", err_why());
}

// Convolutions with a branch, a pool and a product: several tasks each, and some with one.
static inline void tenant_tiny(Graph *g, uint64_t seed) {
    NetBuilder n;
    net_init(&n, g, seed);
    uint32_t x = net_input(&n, "x", DT_F32, 4, (int64_t[]){1, 8, 20, 20});
    uint32_t a = net_conv(&n, "a", x, (NetConv){.out = 32, .kernel = 3, .pad = 1, .bias = true});
    a = net_activation(&n, NET_RELU, a);
    uint32_t b = net_conv(&n, "b", a, (NetConv){.out = 32, .kernel = 1});
    uint32_t c = net_conv(&n, "c", a, (NetConv){.out = 32, .kernel = 3, .pad = 1, .groups = 32});
    b = net_add(&n, b, net_activation(&n, NET_TANH, c));
    b = net_max_pool(&n, b, (NetPool){.kernel = 2, .stride = 2});
    b = net_conv(&n, "d", b, (NetConv){.out = 48, .kernel = 3, .stride = 2, .pad = 1});
    b = net_flatten(&n, net_global_pool(&n, b));
    net_output(&n, net_softmax(&n, net_linear(&n, "e", b, 10)), "y");
}

static inline Tensor *tenant_inputs(const Graph *g, Arena *a, Rng *r) {
    Tensor *in = arena_new(a, Tensor, g->n_inputs);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        in[i] = g->values[g->inputs[i]].type;
        tenant_check(tensor_alloc(&in[i], a));
        for (int64_t k = 0; k < tensor_count(&in[i]); k++)
            if (in[i].dtype == DT_F32) ((float *)in[i].data)[k] = (float)rng_normal(r);
    }
    return in;
}

// Up to three random versions per step: different parameters, the same results.
static inline void tenant_versions(Program *p, Rng *r) {
    static Version all[PROFILE_CANDIDATES];
    for (uint32_t i = 0; i < p->n_steps; i++) {
        Step *s = &p->steps[i];
        if (s->key == NULL || s->kind->versions == NULL) continue;
        uint32_t n = s->kind->versions(s, &p->caches, all, PROFILE_CANDIDATES);
        for (uint32_t v = 1; v < 3 && n > 1; v++) {
            s->versions[v] = all[rng_below(r, n)];
            s->n_versions = v + 1;
        }
    }
}

static inline void tenant_table(TestTenant *t, const char *name) {
    Arena     *a = &t->model.arena;
    uint32_t   n = t->program.n_steps;
    NodeLayer *layers = arena_new(a, NodeLayer, n);
    t->table = (NodeModel){.name = name, .n_layers = n, .n_counts = 1, .counts = {1}};
    t->table.layers = layers;
    float *times = arena_new(a, float, (size_t)n *NODE_VERSIONS *NODE_LEVELS);
    for (uint32_t i = 0; i < n * NODE_VERSIONS * NODE_LEVELS; i++) times[i] = 20000;
    for (uint32_t i = 0; i < n; i++)
        layers[i] = (NodeLayer){.name = "", .n_versions = t->program.steps[i].n_versions};
    t->table.times = times;
    t->table.rest_best = t->table.rest_solo = arena_new(a, float, (size_t)(n + 1) * NODE_LEVELS);
    t->table.picks = arena_new(a, uint8_t, (size_t)n * NODE_LEVELS);
}

static inline void tenant_want_one(TestTenant *t, uint32_t set) {
    RunMemory space;
    tenant_check(run_memory_init(&space, &t->program, 1));
    t->want[set] = arena_new(&t->model.arena, Tensor, t->n_outputs);
    tenant_check(
        program_run(&t->program, &space, NULL, t->inputs[set], &t->model.arena, t->want[set]));
    run_memory_finish(&space);
}

// The model is built; versions: more than one of each heavy step.
static inline void tenant_make(TestTenant *t, bool versions) {
    Rng r = {7};
    tenant_check(model_materialise(&t->model));
    t->n_outputs = t->model.graph->n_outputs;
    for (uint32_t i = 0; i < TENANT_INPUTS; i++)
        t->inputs[i] = tenant_inputs(t->model.graph, &t->model.arena, &r);
    tenant_check(
        shaped_graph_make(t->model.graph, t->inputs[0], interp_eval, &t->model.arena, &t->shaped));
    tenant_check(
        program_make(&t->program, t->shaped, &(ProgramOptions){.pack_all_versions = versions}));
    if (versions) tenant_versions(&t->program, &r);
    tenant_table(t, "test");
}

static inline void tenant_build(TestTenant *t, const char *zoo, uint64_t seed) {
    *t = (TestTenant){0};
    if (zoo != NULL) {
        tenant_check(zoo_build(zoo, NULL, &t->model));
    } else {
        tenant_check(model_init(&t->model, "tiny"));
        tenant_tiny(t->model.graph, seed);
    }
    tenant_make(t, true);
    for (uint32_t i = 0; i < TENANT_INPUTS; i++) tenant_want_one(t, i);
}

static inline void tenant_finish(TestTenant *t) {
    program_finish(&t->program);
    model_finish(&t->model);
}

static inline bool tenant_close(const Tensor *want, const Tensor *got) {
    if (!tensor_same_shape(want, got) || want->dtype != got->dtype) return false;
    if (want->dtype != DT_F32) return tensor_equal(want, got);
    const float *a = want->data, *b = got->data;
    float        most = 1e-3f;
    for (int64_t i = 0; i < tensor_count(want); i++) most = fmaxf(most, fabsf(a[i]));
    for (int64_t i = 0; i < tensor_count(want); i++)
        if (!(fabsf(a[i] - b[i]) <= 5e-4f * most)) return false;
    return true;
}
