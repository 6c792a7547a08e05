// cotenant: two run memories take turns, so that the caches that one run computed are the inputs of
// the next without a copy between them.
#include <string.h>

#include "base/team.h"
#include "bench/decoder/generator.h"
#include "compile/program.h"
#include "model/fold.h"

typedef struct Ours {
    const DecoderFile *file;
    Model              model;
    Program            program;
    RunMemory          mem[2];
    Team              *team;
    Tensor             in[GENERATOR_MAX_IO], out[GENERATOR_MAX_IO];
    int64_t            id;
} Ours;

static Err make_inputs(Ours *o, Arena *a) {
    const Graph *g = o->model.graph;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        o->in[i] = g->values[g->inputs[i]].type;
        TRY(tensor_alloc(&o->in[i], a));
    }
    o->in[o->file->ids].data = &o->id;
    return ERR_OK;
}

static Err ours_open(const DecoderFile *f, const char *lib, int threads, Arena *a, void **state) {
    (void)lib;
    Ours        *o = arena_new(a, Ours, 1);
    ShapedGraph *shaped = NULL;
    Tensor       types[GENERATOR_MAX_IO];
    o->file = f;
    o->model = f->model;
    const Graph *g = o->model.graph;
    for (uint32_t i = 0; i < g->n_inputs; i++) types[i] = g->values[g->inputs[i]].type;
    TRY(make_inputs(o, a));
    TRY(shaped_graph_make(g, types, interp_eval, a, &shaped));
    TRY(program_make(&o->program, shaped, &(ProgramOptions){0}));
    TRY(run_memory_init(&o->mem[0], &o->program, (uint32_t)threads));
    TRY(run_memory_init(&o->mem[1], &o->program, (uint32_t)threads));
    TRY(team_create(&o->team, (uint32_t)threads, NULL));
    *state = o;
    return ERR_OK;
}

static Err ours_step(void *state, int64_t token, int64_t position, const float **logits) {
    Ours              *o = state;
    const DecoderFile *f = o->file;
    int64_t           *mask = o->in[f->mask].data;
    o->id = token;
    for (int64_t i = 0; i < f->capacity; i++) mask[i] = i <= position;
    TRY(program_run(&o->program, &o->mem[position % 2], o->team, o->in, NULL, o->out));
    for (uint32_t i = 0; i < f->n_caches; i++) o->in[f->past[i]] = o->out[f->present[i]];
    *logits = o->out[f->logits].data;
    return ERR_OK;
}

static void ours_close(void *state) {
    Ours *o = state;
    team_destroy(o->team);
    run_memory_finish(&o->mem[0]);
    run_memory_finish(&o->mem[1]);
    program_finish(&o->program);
}

const Generator generator_ours = {"cotenant", ours_open, ours_step, ours_close};
