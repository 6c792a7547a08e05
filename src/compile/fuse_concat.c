// A concatenation that begins with what an earlier one joined reads that one's result instead, so
// that a growing list of features needs one buffer and no copies.
#include "compile/fuse.h"
#include "model/attr.h"

static int64_t axis_of(const Ir *ir, const IrLayer *l) {
    int64_t axis = attr_int(l->node, "axis", 1);
    return axis < 0 ? axis + ir_type(ir, l->out[0])->rank : axis;
}

static bool begins_with(const Ir *ir, const IrLayer *l, const IrLayer *first) {
    if (first->dead || first->kind != IR_CONCAT || first->n_in < 2 || first->n_in >= l->n_in)
        return false;
    for (uint32_t i = 0; i < first->n_in; i++)
        if (first->in[i] != l->in[i]) return false;
    return axis_of(ir, first) == axis_of(ir, l);
}

static void take_prefix(IrLayer *l, const IrLayer *first) {
    uint32_t gone = first->n_in - 1;
    l->in[0] = first->out[0];
    for (uint32_t i = 1; i + gone < l->n_in; i++) l->in[i] = l->in[i + gone];
    l->n_in -= gone;
}

enum { LOOK_BACK = 512 };  // layers; lists that grow do so step by step

// Later lists are looked at first, so that they still show all their parts.
void fuse_concats(Ir *ir) {
    for (uint32_t i = ir->n_layers; i-- > 0;) {
        IrLayer *l = &ir->layers[i], *best = NULL;
        if (l->dead || l->kind != IR_CONCAT) continue;
        for (uint32_t k = i > LOOK_BACK ? i - LOOK_BACK : 0; k < i; k++)
            if (begins_with(ir, l, &ir->layers[k]) &&
                (best == NULL || ir->layers[k].n_in > best->n_in))
                best = &ir->layers[k];
        if (best != NULL) take_prefix(l, best);
    }
    ir_count(ir);
}
