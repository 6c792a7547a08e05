// What a model takes and gives, as clients see it.
#include "serve/fleet_int.h"
#include "serve/port.h"

Err unit_port(Unit *u) {
    const Pbtxt *d = u->pub.config->declared;
    TRY(port_of(u->source.model.graph, &u->arena, &u->port));
    return d != NULL ? port_declare(&u->port, d) : ERR_OK;
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
