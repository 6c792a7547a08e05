#include "model/model.h"

#include "base/err.h"

enum { MODEL_FIRST = 1 << 26 };  // bytes of address space; pages are committed on use

static const size_t MODEL_MOST = (size_t)1 << 38;

Err model_init(Model *m, const char *name) {
    *m = (Model){.ir_version = 8, .producer = "cotenant"};
    TRY(arena_init_growing(&m->arena, MODEL_FIRST, MODEL_MOST));
    m->name = arena_str(&m->arena, name);
    m->graph = graph_create(&m->arena, NULL, m->name);
    return ERR_OK;
}

void model_finish(Model *m) {
    Arena a = m->arena;
    *m = (Model){0};
    arena_finish(&a);
}

Err model_materialise(Model *m) {
    Graph *g = m->graph;
    for (uint32_t i = 0; i < g->n_values; i++) {
        Value *v = &g->values[i];
        if (v->fill == NULL || v->type.data != NULL) continue;
        Err e = tensor_alloc(&v->type, &m->arena);
        if (e != ERR_OK) return err_add(e, "weight '%s'", v->name);
        random_fill_make(v->fill, &v->type, v->type.data);
    }
    return ERR_OK;
}
