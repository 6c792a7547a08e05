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

// 1, 2, 3, 4, 6, 8, 12, 16, 24, ...: two sizes per power of two.
int64_t prepared_shape_round(int64_t size) {
    int64_t power = 1;
    if (size < 1 || size > INT64_MAX / 4) return size;
    while (power < size) power *= 2;
    int64_t between = power / 4 * 3;
    return power >= 4 && between >= size ? between : power;
}

void prepared_shape_finish(PreparedShape *s) {
    program_finish(&s->program);
    arena_finish(&s->arena);
    *s = (PreparedShape){0};
}
