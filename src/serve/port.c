#include "serve/port.h"

#include <inttypes.h>
#include <string.h>

static Err slots_of(const Graph *g, const uint32_t *values, uint32_t n, const char *what, Arena *a,
                    const InferSlot **out) {
    InferSlot *slots = n <= INFER_TENSORS ? arena_try_new(a, InferSlot, n) : NULL;
    if (slots == NULL) return err_set(ERR_LIMIT, "it has too many %ss: %u", what, n);
    for (uint32_t i = 0; i < n; i++) {
        const Value *v = &g->values[values[i]];
        slots[i] = (InferSlot){.name = v->name, .type = v->type};
        slots[i].type.data = NULL;
        for (int32_t d = 0; d < v->type.rank; d++)
            if (slots[i].type.dims[d] < 0) slots[i].type.dims[d] = DIM_UNKNOWN;
        if (v->type.dtype != DT_NONE && infer_type_name(v->type.dtype) == NULL)
            return err_set(ERR_UNSUPPORTED, "%s '%s' is of type %s, for which clients have no word",
                           what, v->name, dtype_name(v->type.dtype));
    }
    *out = slots;
    return ERR_OK;
}

Err port_of(const Graph *g, Arena *a, InferPort *out) {
    InferPort p = {.n_inputs = g->n_inputs, .n_outputs = g->n_outputs};
    TRY(slots_of(g, g->inputs, g->n_inputs, "input", a, &p.inputs));
    TRY(slots_of(g, g->outputs, g->n_outputs, "output", a, &p.outputs));
    *out = p;
    return ERR_OK;
}

static Err narrow_dim(const PbtxtTensor *d, int32_t i, const char *what, int64_t *dim) {
    if (d->dims[i] < 0) return ERR_OK;
    if (*dim >= 0 && *dim != d->dims[i])
        return err_set(ERR_CONFIG,
                       "config.pbtxt:%u: dimension %d of %s '%s' is %" PRId64
                       " in the model, not %" PRId64,
                       d->line, i, what, d->name, *dim, d->dims[i]);
    *dim = d->dims[i];
    return ERR_OK;
}

// Where there is a batch, config.pbtxt leaves its dimension out.
static Err narrow(const PbtxtTensor *d, bool batch, const char *what, InferSlot *slot) {
    Tensor *t = &slot->type;
    if (d->dtype != DT_NONE && t->dtype != DT_NONE && d->dtype != t->dtype)
        return err_set(ERR_CONFIG, "config.pbtxt:%u: %s '%s' is %s in the model, not %s", d->line,
                       what, d->name, dtype_name(t->dtype), dtype_name(d->dtype));
    if (d->rank < 0 || t->rank < 0) return ERR_OK;
    if (t->rank != d->rank + batch)
        return err_set(
            ERR_CONFIG, "config.pbtxt:%u: %s '%s' has %d dimensions in the model%s, not %d",
            d->line, what, d->name, t->rank, batch ? ", the batch included" : "", d->rank + batch);
    for (int32_t i = 0; i < d->rank; i++) TRY(narrow_dim(d, i, what, &t->dims[i + batch]));
    return ERR_OK;
}

static Err narrow_all(const PbtxtTensor *all, uint32_t n, bool batch, const char *what,
                      const InferSlot *slots, uint32_t n_slots) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < n_slots && strcmp(slots[k].name, all[i].name) != 0) k++;
        if (k == n_slots)
            return err_set(ERR_CONFIG, "config.pbtxt:%u: the model has no %s '%s'", all[i].line,
                           what, all[i].name);
        TRY(narrow(&all[i], batch, what, (InferSlot *)(uintptr_t)&slots[k]));
    }
    return ERR_OK;
}

Err port_declare(InferPort *port, const Pbtxt *p) {
    bool batch = p->max_batch_size > 0;
    TRY(narrow_all(p->inputs, p->n_inputs, batch, "input", port->inputs, port->n_inputs));
    return narrow_all(p->outputs, p->n_outputs, batch, "output", port->outputs, port->n_outputs);
}
