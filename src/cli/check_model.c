#include "cli/check_model.h"

#include <string.h>

#include "cli/model_args.h"
#include "compile/interp/interp.h"
#include "model/shaped_graph.h"
#include "model/work.h"
#include "serve/models/model_signature.h"

typedef struct Reading {
    Arena      arena;
    Model      model;
    ShapeCache all;
} Reading;

static Err specialise(Reading *r, int64_t otherwise, const ShapedGraph **out) {
    ModelArgs o = MODEL_ARGS_DEFAULT;
    Tensor   *in = arena_try_new(&r->arena, Tensor, (size_t)r->model.graph->n_inputs + 1);
    if (in == NULL) return err_set(ERR_LIMIT, "no memory for its inputs");
    TRY(model_args_input_types(&r->model, &o, otherwise, in));
    return shape_cache_get(&r->all, in, out);
}

// Values alive at once, the most of it.
static uint64_t peak_bytes(const ShapedGraph *s) {
    const Graph *g = s->graph;
    uint64_t     live = 0, most = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const Node *n = &g->nodes[i];
        size_t      bytes = 0;
        for (uint32_t k = 0; k < n->n_out && !s->folded[i]; k++)
            if (n->out[k] != NO_VALUE && tensor_known(&s->values[n->out[k]]) &&
                tensor_measure(&s->values[n->out[k]], &bytes) == ERR_OK)
                live += bytes;
        if (live > most) most = live;
        for (uint32_t k = 0; k < n->n_in; k++) {
            uint32_t v = n->in[k];
            bool     ends = v != NO_VALUE && s->last_use[v] == i && !g->values[v].constant &&
                        g->values[v].producer != NO_NODE && !s->folded[g->values[v].producer];
            if (ends && tensor_known(&s->values[v]) &&
                tensor_measure(&s->values[v], &bytes) == ERR_OK)
                live -= bytes < live ? bytes : live;
        }
    }
    return most;
}

// Weights as they came and as kernels want them, and room for as many runs as `concurrency` allows.
static uint64_t estimate(Reading *r, const Config *c) {
    const ShapedGraph *one = NULL;
    Work               w = {0};
    if (specialise(r, 1, &one) != ERR_OK || work_total(one, &r->arena, &w) != ERR_OK) return 0;
    uint64_t weights = w.weight_bytes > 0 ? (uint64_t)w.weight_bytes : 0;
    return 2 * weights + (uint64_t)c->serve.concurrency * peak_bytes(one);
}

static Err check_port(Reading *r, const ConfigModel *m) {
    ModelSignature port = {0};
    TRY(signature_from_graph(r->model.graph, &r->arena, &port));
    return m->declared != NULL ? signature_narrow(&port, m->declared) : ERR_OK;
}

static Err read_model(Reading *r, const ConfigModel *m) {
    ModelArgs          o = MODEL_ARGS_DEFAULT;
    const ShapedGraph *s = NULL;
    bool               zoo = strncmp(m->path, "zoo:", 4) == 0;
    TRY(arena_init(&r->arena, (size_t)1 << 34));
    TRY(model_args_load(zoo ? m->path + 4 : m->path, &o, &r->model));
    shape_cache_init(&r->all, &r->model, interp_eval);
    TRY(specialise(r, DIM_UNKNOWN, &s));
    return check_port(r, m);
}

static void judge(Findings *f, const ConfigModel *m, const Reading *r, uint64_t bytes) {
    uint64_t mib = (bytes >> 20) + 1;
    if (m->set.memory_mb > 0 && mib > (uint64_t)m->set.memory_mb)
        findings_add(f, FINDING_PROBLEM, "model",
                     "%s %s needs about %llu MiB, but memory_mb is %d; raise it", m->name,
                     m->version, (unsigned long long)mib, m->set.memory_mb);
    else if (bytes == 0)
        findings_add(f, FINDING_OK, "model", "%s %s: %u nodes, memory not known before it runs",
                     m->name, m->version, r->model.graph->n_nodes);
    else
        findings_add(f, FINDING_OK, "model", "%s %s: %u nodes, about %llu MiB", m->name, m->version,
                     r->model.graph->n_nodes, (unsigned long long)mib);
}

void check_model(Findings *f, const Config *c, const ConfigModel *m, uint64_t *bytes) {
    Reading r = {0};
    *bytes = 0;
    if (m->broken != NULL) {
        findings_add(f, FINDING_PROBLEM, "model", "%s: %s", m->name, m->broken);
        return;
    }
    Err e = read_model(&r, m);
    if (e == ERR_OK) {
        *bytes = estimate(&r, c);
        judge(f, m, &r, *bytes);
    } else {
        findings_failed(f, "model", err_add(e, "%s %s", m->name, m->version));
    }
    shape_cache_finish(&r.all);
    model_finish(&r.model);
    arena_finish(&r.arena);
}
