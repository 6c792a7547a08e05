// The specialisations kept for one model, and what may be bound to its open dimensions.
#include <inttypes.h>
#include <string.h>

#include "model/special.h"

enum { ARENA_SHIFT = 36 };

typedef struct Bound {
    const char *symbol, *input;
    int64_t     size;
} Bound;

static Err bind_symbol(Bound *bound, uint32_t *n, Bound now) {
    for (uint32_t i = 0; i < *n; i++)
        if (strcmp(bound[i].symbol, now.symbol) == 0 && bound[i].size != now.size)
            return err_set(ERR_INVALID,
                           "dimension '%s' is %" PRId64 " in input '%s' but %" PRId64
                           " in input '%s'; give both the same size",
                           now.symbol, bound[i].size, bound[i].input, now.size, now.input);
    if (*n < 64) bound[(*n)++] = now;
    return ERR_OK;
}

static Err check_input(const Value *v, const Tensor *given) {
    const Tensor *want = &v->type;
    char          got[128], need[128];
    if (want->dtype != DT_NONE && given->dtype != want->dtype)
        return err_set(ERR_INVALID, "input '%s' has type %s, the model takes %s", v->name,
                       dtype_name(given->dtype), dtype_name(want->dtype));
    if (want->rank == RANK_UNKNOWN || given->rank == RANK_UNKNOWN) return ERR_OK;
    bool fits = given->rank == want->rank;
    for (int32_t i = 0; fits && i < want->rank; i++)
        fits = want->dims[i] < 0 || given->dims[i] < 0 || given->dims[i] == want->dims[i];
    if (fits) return ERR_OK;
    tensor_shape_text(given, got, sizeof got);
    tensor_shape_text(want, need, sizeof need);
    return err_set(ERR_INVALID, "input '%s' has shape %s, the model takes %s", v->name, got, need);
}

Err special_check_inputs(const Graph *g, const Tensor *inputs) {
    for (uint32_t i = 0; i < g->n_inputs; i++)
        TRY(check_input(&g->values[g->inputs[i]], &inputs[i]));
    return ERR_OK;
}

Err special_check_symbols(const Graph *g, const Tensor *inputs) {
    Bound    bound[64];
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const Value *v = &g->values[g->inputs[i]];
        if (v->symbols == NULL || v->type.rank != inputs[i].rank) continue;
        for (int32_t d = 0; d < v->type.rank; d++)
            if (v->symbols[d] != NULL)
                TRY(bind_symbol(bound, &n, (Bound){v->symbols[d], v->name, inputs[i].dims[d]}));
    }
    return ERR_OK;
}

void specials_init(Specials *s, const Model *m, EvalFn *eval) {
    *s = (Specials){.model = m, .eval = eval};
}

void specials_finish(Specials *s) {
    for (size_t i = 0; i < sizeof s->slots / sizeof *s->slots; i++)
        arena_finish(&s->slots[i].arena);
    *s = (Specials){0};
}

static bool same_inputs(const Graph *g, const Tensor *a, const Tensor *b) {
    for (uint32_t i = 0; i < g->n_inputs; i++)
        if (a[i].dtype != b[i].dtype || !tensor_same_shape(&a[i], &b[i])) return false;
    return true;
}

static Err fill_slot(Specials *s, struct SpecialSlot *slot, const Tensor *inputs) {
    const Graph *g = s->model->graph;
    arena_finish(&slot->arena);
    slot->special = NULL;
    TRY(arena_init(&slot->arena, (size_t)1 << ARENA_SHIFT));
    slot->inputs = arena_new(&slot->arena, Tensor, g->n_inputs);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        slot->inputs[i] = inputs[i];
        slot->inputs[i].data = NULL;
    }
    return special_make(g, slot->inputs, s->eval, &slot->arena, &slot->special);
}

Err specials_get(Specials *s, const Tensor *inputs, const Special **out) {
    struct SpecialSlot *oldest = &s->slots[0];
    for (size_t i = 0; i < sizeof s->slots / sizeof *s->slots; i++) {
        struct SpecialSlot *slot = &s->slots[i];
        if (slot->special != NULL && same_inputs(s->model->graph, slot->inputs, inputs)) {
            slot->used = ++s->clock;
            *out = slot->special;
            return ERR_OK;
        }
        if (slot->used < oldest->used) oldest = slot;
    }
    oldest->used = ++s->clock;
    TRY(fill_slot(s, oldest, inputs));
    *out = oldest->special;
    return ERR_OK;
}
