#include "compile/interp.h"
#include "model/fold.h"
#include "model/zoo.h"
#include "node/model.h"

static Err make_program(const Special *s, const char *name, const NodeMachineSpec *spec, Arena *a,
                        NodeModel *out) {
    Program        p;
    ProgramOptions o = {.caches = machine_caches(spec), .hollow = true};
    TRY(machine_isa(spec, &o.isa));
    TRY(program_make(&p, s, &o));
    Err e = model_of_machine(&p, name, spec, a, out);
    program_finish(&p);
    return e;
}

static Err specialise(const Model *m, const char *name, const NodeMachineSpec *spec, Arena *a,
                      NodeModel *out) {
    Specials       all;
    const Special *s = NULL;
    const Graph   *g = m->graph;
    size_t         mark = a->used;
    Tensor        *types = arena_try_new(a, Tensor, g->n_inputs);
    if (types == NULL) return err_set(ERR_LIMIT, "no memory for %u inputs", g->n_inputs);
    for (uint32_t i = 0; i < g->n_inputs; i++) types[i] = g->values[g->inputs[i]].type;
    specials_init(&all, m, interp_eval);
    Err e = specials_get(&all, types, &s);
    arena_rewind(a, mark);
    if (e == ERR_OK) e = make_program(s, name, spec, a, out);
    specials_finish(&all);
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
