// Layer times from measured profiles. The effect of interference is computed as in tuning:
// see compile/tune/pressure.h.
#include <math.h>

#include "base/err.h"
#include "compile/interp/interp.h"
#include "model/fold.h"
#include "model/zoo/zoo.h"
#include "node/node_model.h"
#include "node/node_model_int.h"

typedef struct Known {
    const ModelMeasured *m;
    const Program       *program;
    ModelTables          t;
    Arena               *arena;
} Known;

// Index of the largest measured count that is not above the requested one.
static TimeNs profile_time(const LayerProfile *p, const Candidate *c, uint32_t count) {
    TimeNs best = 0;
    for (uint32_t k = 0; k < p->n_counts; k++)
        if (c->time_ns[k] > 0 && (best == 0 || p->counts[k] <= count)) best = c->time_ns[k];
    return best;
}

static double light_bytes(const Step *s) { return (double)(s->io_bytes + s->const_bytes); }

static TimeNs light_time(const Known *w, uint32_t l, uint32_t k) {
    const Pressure *p = w->m->pressure;
    if (w->m->light_ns != NULL && w->m->light_ns[l * w->m->n_counts + k] > 0)
        return w->m->light_ns[l * w->m->n_counts + k];
    double rate = fmin(p->l3_one * w->m->counts[k], p->l3_all);
    return 1 + (TimeNs)(light_bytes(&w->program->steps[l]) / fmax(rate, 0.1));
}

// Fills a candidate's times for the model's core counts.
static Candidate candidate_of(const Known *w, uint32_t l, uint32_t v) {
    const Step         *s = &w->program->steps[l];
    const LayerProfile *p = s->profile;
    Candidate           c = {.version = s->versions[v]};
    if (p != NULL && v < p->n_kept) c = p->candidates[p->kept[v]];
    Candidate out = c;
    if (p == NULL) {
        out.tasks = s->kind->tasks(s, &s->versions[v]);
        out.traffic.l3_bytes = out.traffic.beyond_l2_bytes = s->io_bytes + s->const_bytes;
    }
    for (uint32_t k = 0; k < w->m->n_counts; k++) {
        TimeNs t = p != NULL ? profile_time(p, &c, w->m->counts[k]) : 0;
        out.time_ns[k] = t > 0 ? t : light_time(w, l, k);
    }
    return out;
}

static double memory_bytes(const Known *w, const Candidate *c, double share) {
    double room = (double)w->m->pressure->l3_bytes * share, wanted = (double)c->traffic.l3_bytes;
    double near = wanted <= room ? 1 : room / wanted;
    return (double)c->traffic.beyond_l2_bytes * (1 - near);
}

static void fill_version(Known *w, uint32_t l, uint32_t v) {
    Candidate    c = candidate_of(w, l, v);
    NodeVersion *out = &w->t.layers[l].versions[v];
    out->tasks = c.tasks;
    out->l3_bytes = (float)c.traffic.l3_bytes;
    w->t.hot_bytes[l * NODE_VERSIONS + v] = (float)c.traffic.beyond_l2_bytes;
    for (uint32_t j = 0; j < DEMAND_SHARES; j++)
        model_bytes(&w->t, l, v, 0)[j] =
            (float)memory_bytes(w, &c, (double)j / (DEMAND_SHARES - 1));
    for (uint32_t k = 0; k < w->m->n_counts; k++) {
        w->t.core_ns[(l * NODE_VERSIONS + v) * (size_t)w->m->n_counts + k] = (float)c.time_ns[k];
        out->dram_bytes[k] = model_bytes(&w->t, l, v, 0)[DEMAND_SHARES - 1];
        for (uint32_t level = 0; level < NODE_LEVELS; level++)
            model_times(&w->t, l, v, k)[level] =
                (float)pressure_time(w->m->pressure, &c, k, w->m->counts[k], pressure_share(level));
    }
}

// Version 0 is first in the step as well, so that version numbers agree.
static void fill_layer(Known *w, uint32_t l) {
    const Step *s = &w->program->steps[l];
    CHECK(s->n_versions <= NODE_VERSIONS);
    w->t.layers[l].name = s->name != NULL ? arena_str(w->arena, s->name) : "";
    w->t.layers[l].n_versions = s->n_versions;
    w->t.read_bytes[l] = (float)s->read_bytes;
    for (uint32_t v = 0; v < s->n_versions; v++) fill_version(w, l, v);
}

Err model_of_profiles(const Program *p, const char *name, const ModelMeasured *m, Arena *a,
                      NodeModel *out) {
    NodeModel  made = {.name = arena_str(a, name), .n_layers = p->n_steps, .n_counts = m->n_counts};
    NodeDemand d = {.n_slices = 1, .slices = {1}};
    Known      w = {.m = m, .program = p, .arena = a};
    CHECK(m->n_counts > 0 && m->n_counts <= PROFILE_COUNTS && m->counts[0] == 1);
    if (p->n_steps == 0)
        return err_set(ERR_UNSUPPORTED, "%s has no compiled layers to schedule", name);
    for (uint32_t k = 0; k < m->n_counts; k++) made.counts[k] = (uint16_t)m->counts[k];
    TRY(model_begin(&w.t, &made, &d, a));
    for (uint32_t l = 0; l < p->n_steps; l++) fill_layer(&w, l);
    TRY(model_end(&w.t, a));
    *out = made;
    return ERR_OK;
}

static Err make_program(const ShapedGraph *s, const char *name, const NodeMachineSpec *spec,
                        Arena *a, NodeModel *out) {
    Program        p;
    ProgramOptions o = {.caches = machine_caches(spec), .shape_only = true};
    TRY(machine_isa(spec, &o.isa));
    TRY(program_make(&p, s, &o));
    Err e = model_of_machine(&p, name, spec, a, out);
    program_finish(&p);
    return e;
}

static Err specialise(const Model *m, const char *name, const NodeMachineSpec *spec, Arena *a,
                      NodeModel *out) {
    ShapeCache         all;
    const ShapedGraph *s = NULL;
    const Graph       *g = m->graph;
    size_t             mark = a->used;
    Tensor            *types = arena_try_new(a, Tensor, g->n_inputs);
    if (types == NULL) return err_set(ERR_LIMIT, "no memory for %u inputs", g->n_inputs);
    for (uint32_t i = 0; i < g->n_inputs; i++) types[i] = g->values[g->inputs[i]].type;
    shape_cache_init(&all, m, interp_eval);
    Err e = shape_cache_get(&all, types, &s);
    arena_rewind(a, mark);
    if (e == ERR_OK) e = make_program(s, name, spec, a, out);
    shape_cache_finish(&all);
    return e;
}

Err model_of_zoo(const char *network, const NodeMachineSpec *spec, Arena *a, NodeModel *out) {
    ZooOptions z = {.batch = 1, .seed = 1};
    Model      m;
    TRY(zoo_build(network, &z, &m));
    Err e = fold_constants(&m, interp_eval);
    if (e == ERR_OK) e = specialise(&m, network, spec, a, out);
    model_finish(&m);
    return e;
}
