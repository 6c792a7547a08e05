#include "node/prepared_shape.h"

enum { ARENA_FIRST = 1 << 18 };  // bytes of address space

static const size_t ARENA_MOST = (size_t)1 << 34;

static Err make(PreparedShape *s, const PreparedModel *of, const Tensor *shapes, Arena *scratch) {
    const Graph   *g = of->source->model.graph;
    ProgramOptions o = {.isa = of->program.isa,
                        .caches = of->program.caches,
                        .packed = of->source->packed,
                        .weights = of->program.weights,
                        .like = &of->program,
                        .scratch = scratch,
                        .at_least_one_step = true,
                        .limits = of->program.limits};
    TRY(shaped_graph_check_inputs(g, shapes));
    TRY(shaped_graph_make(g, shapes, interp_eval, &s->arena, &s->shaped));
    return program_make(&s->program, s->shaped, &o);
}

Err prepared_shape_make(PreparedShape *s, const PreparedModel *of, const Tensor *shapes,
                        Arena *scratch, bool *fits) {
    *s = (PreparedShape){0};
    *fits = false;
    TRY(arena_init_growing(&s->arena, ARENA_FIRST, ARENA_MOST));
    Err e = make(s, of, shapes, scratch);
    *fits = e == ERR_OK && program_fits(&s->program, &of->program);
    if (!*fits) prepared_shape_finish(s);
    if (e != ERR_OK || !*fits) return e;
    arena_trim(&s->arena);
    s->bytes = s->program.weight_bytes + arena_in_use(&s->arena);
    return ERR_OK;
}

void prepared_shape_finish(PreparedShape *s) {
    program_finish(&s->program);
    arena_finish(&s->arena);
    *s = (PreparedShape){0};
}
