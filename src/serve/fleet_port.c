// What a model takes and gives, as clients see it.
#include "serve/fleet_int.h"

static bool has_word(const Tensor *t) {
    return t->dtype == DT_NONE || infer_type_name(t->dtype) != NULL;
}

static Err fill_slots(Unit *u, const uint32_t *values, uint32_t n, const char *what,
                      const InferSlot **out) {
    const Graph *g = u->source.model.graph;
    InferSlot   *slots = arena_try_new(&u->arena, InferSlot, n);
    if (slots == NULL) return err_set(ERR_LIMIT, "it has too many %ss", what);
    for (uint32_t i = 0; i < n; i++) {
        const Value *v = &g->values[values[i]];
        slots[i] = (InferSlot){.name = v->name, .type = v->type};
        slots[i].type.data = NULL;
        for (int32_t d = 0; d < v->type.rank; d++)
            if (slots[i].type.dims[d] < 0) slots[i].type.dims[d] = DIM_UNKNOWN;
        if (!has_word(&v->type))
            return err_set(ERR_UNSUPPORTED, "%s '%s' is of type %s, for which clients have no word",
                           what, v->name, dtype_name(v->type.dtype));
    }
    *out = slots;
    return ERR_OK;
}

Err unit_port(Unit *u) {
    const Graph *g = u->source.model.graph;
    InferPort    p = {.n_inputs = g->n_inputs, .n_outputs = g->n_outputs};
    if (g->n_inputs > INFER_TENSORS || g->n_outputs > INFER_TENSORS)
        return err_set(ERR_LIMIT, "it has more than %d inputs or outputs", INFER_TENSORS);
    TRY(fill_slots(u, g->inputs, g->n_inputs, "input", &p.inputs));
    TRY(fill_slots(u, g->outputs, g->n_outputs, "output", &p.outputs));
    u->port = p;
    return ERR_OK;
}

// What the file leaves open about outputs is known once the shapes of inputs are. Where those may
// differ, so may the dimensions.
void unit_port_outputs(Unit *u, const Stage *s) {
    const Graph *g = u->source.model.graph;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        InferSlot    *slot = (InferSlot *)(uintptr_t)&u->port.outputs[i];
        const Tensor *t = &s->special->values[g->outputs[i]];
        if (slot->type.dtype == DT_NONE) slot->type.dtype = t->dtype;
        if (slot->type.rank < 0 && t->rank >= 0) {
            slot->type = tensor_of(slot->type.dtype, t->rank, t->dims, NULL);
            for (int32_t d = 0; d < t->rank; d++)
                if (u->source.open || t->dims[d] < 0) slot->type.dims[d] = DIM_UNKNOWN;
        }
        for (int32_t d = 0; d < slot->type.rank && d < t->rank && !u->source.open; d++)
            if (slot->type.dims[d] < 0 && t->dims[d] >= 0) slot->type.dims[d] = t->dims[d];
    }
}
