// What a model takes and gives, as clients see it.
#include <inttypes.h>
#include <string.h>

#include "serve/fleet_int.h"
#include "serve/pbtxt.h"

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

// What config.pbtxt says of a tensor narrows what the file leaves open, and contradicts nothing.
static Err declare(const PbtxtTensor *d, bool batch, const char *what, InferSlot *slot) {
    Tensor *t = &slot->type;
    int32_t first = batch ? 1 : 0;
    if (d->dtype != DT_NONE && t->dtype != DT_NONE && d->dtype != t->dtype)
        return err_set(ERR_CONFIG, "config.pbtxt:%u: %s '%s' is %s in the model, not %s", d->line,
                       what, d->name, dtype_name(t->dtype), dtype_name(d->dtype));
    if (d->rank < 0 || t->rank < 0) return ERR_OK;
    if (t->rank != d->rank + first)
        return err_set(ERR_CONFIG, "config.pbtxt:%u: %s '%s' has %d dimensions in the model%s",
                       d->line, what, d->name, t->rank, batch ? ", the batch included" : "");
    for (int32_t i = 0; i < d->rank; i++) {
        int64_t *dim = &t->dims[i + first];
        if (d->dims[i] < 0) continue;
        if (*dim >= 0 && *dim != d->dims[i])
            return err_set(ERR_CONFIG,
                           "config.pbtxt:%u: dimension %d of %s '%s' is %" PRId64
                           " in the model, not %" PRId64,
                           d->line, i, what, d->name, *dim, d->dims[i]);
        *dim = d->dims[i];
    }
    return ERR_OK;
}

static Err declare_all(const PbtxtTensor *all, uint32_t n, bool batch, const char *what,
                       const InferSlot *slots, uint32_t n_slots) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < n_slots && strcmp(slots[k].name, all[i].name) != 0) k++;
        if (k == n_slots)
            return err_set(ERR_CONFIG, "config.pbtxt:%u: the model has no %s '%s'", all[i].line,
                           what, all[i].name);
        TRY(declare(&all[i], batch, what, (InferSlot *)(uintptr_t)&slots[k]));
    }
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
    const Pbtxt *d = u->pub.config->declared;
    if (d == NULL) return ERR_OK;
    TRY(declare_all(d->inputs, d->n_inputs, d->max_batch_size > 0, "input", p.inputs, p.n_inputs));
    return declare_all(d->outputs, d->n_outputs, d->max_batch_size > 0, "output", p.outputs,
                       p.n_outputs);
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
