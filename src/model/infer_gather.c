// Reading and writing by index: Gather, GatherElements, GatherND, ScatterElements, ScatterND.
#include <inttypes.h>
#include <string.h>

#include "model/move.h"

static Err start(const OpCall *c) {
    TRY(infer_need(c->in[0], TYPES_TENSOR, "data"));
    return infer_need(c->in[1], TYPES_INDEX, "indices");
}

static void append(Tensor *out, const int64_t *dims, int32_t n) {
    for (int32_t i = 0; i < n; i++) out->dims[out->rank++] = dims[i];
}

Err infer_gather(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *at = c->in[1];
    int32_t       axis = 0;
    TRY(start(c));
    TRY(infer_axis(attr_int(c->node, "axis", 0), x->rank, &axis));
    TRY(move_rank((int64_t)x->rank - 1 + at->rank));
    *out = (Tensor){.dtype = x->dtype};
    append(out, x->dims, axis);
    append(out, at->dims, at->rank);
    append(out, x->dims + axis + 1, x->rank - axis - 1);
    return ERR_OK;
}

// The index tensor may be smaller than the data, but never larger beside the axis.
static Err check_elements(const Tensor *x, const Tensor *at, int32_t axis) {
    if (at->rank != x->rank)
        return err_set(ERR_INVALID, "indices have rank %d, the data has rank %d", at->rank,
                       x->rank);
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis && at->dims[i] > x->dims[i])
            return err_set(ERR_INVALID,
                           "indices have size %" PRId64 " in dimension %d, the data %" PRId64,
                           at->dims[i], i, x->dims[i]);
    return ERR_OK;
}

Err infer_gather_elements(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    TRY(start(c));
    TRY(infer_axis(attr_int(c->node, "axis", 0), c->in[0]->rank, &axis));
    TRY(check_elements(c->in[0], c->in[1], axis));
    *out = tensor_of(c->in[0]->dtype, c->in[1]->rank, c->in[1]->dims, NULL);
    return ERR_OK;
}

Err infer_gather_nd(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *at = c->in[1];
    int64_t       batch = attr_int(c->node, "batch_dims", 0);
    TRY(start(c));
    if (batch < 0 || batch >= x->rank || batch >= at->rank)
        return err_set(ERR_INVALID, "batch_dims %" PRId64 " does not fit ranks %d and %d", batch,
                       x->rank, at->rank);
    int32_t b = (int32_t)batch, last = at->rank - 1;
    for (int32_t i = 0; i < b; i++)
        if (x->dims[i] != at->dims[i])
            return err_set(ERR_INVALID, "batch dimension %d differs: %" PRId64 " and %" PRId64, i,
                           x->dims[i], at->dims[i]);
    if (at->dims[last] < 1 || at->dims[last] > x->rank - b)
        return err_set(ERR_INVALID, "an index has %" PRId64 " parts, the data has %d dimensions",
                       at->dims[last], x->rank - b);
    int32_t used = b + (int32_t)at->dims[last];
    TRY(move_rank((int64_t)last + x->rank - used));
    *out = (Tensor){.dtype = x->dtype};
    append(out, at->dims, last);
    append(out, x->dims + used, x->rank - used);
    return ERR_OK;
}

// Checks the reduction, its type, and copies the shape.
static Err scatter_start(const OpCall *c, Tensor *out) {
    static const char *const known[] = {"none", "add", "mul", "max", "min"};
    const char              *name = attr_str(c->node, "reduction", "none");
    bool                     found = false;
    TRY(start(c));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        found = found || strcmp(known[i], name) == 0;
    if (!found) return err_set(ERR_UNSUPPORTED, "reduction '%s' is not supported", name);
    if (strcmp(name, "none") != 0) TRY(infer_need(c->in[0], TYPES_NUMBER, "data to reduce"));
    if (c->in[2]->dtype != c->in[0]->dtype)
        return err_set(ERR_INVALID, "updates have type %s, the data has type %s",
                       dtype_name(c->in[2]->dtype), dtype_name(c->in[0]->dtype));
    *out = *c->in[0];
    out->data = NULL;
    return ERR_OK;
}

Err infer_scatter_elements(const OpCall *c, Tensor *out) {
    int32_t axis = 0;
    TRY(scatter_start(c, out));
    TRY(infer_axis(attr_int(c->node, "axis", 0), out->rank, &axis));
    if (!tensor_same_shape(c->in[1], c->in[2]))
        return err_set(ERR_INVALID, "indices and updates differ in shape");
    return check_elements(c->in[0], c->in[1], axis);
}

Err infer_scatter_nd(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *at = c->in[1], *updates = c->in[2];
    TRY(scatter_start(c, out));
    int32_t last = at->rank - 1;
    if (x->rank < 1 || last < 0 || at->dims[last] < 1 || at->dims[last] > x->rank)
        return err_set(ERR_INVALID, "the indices do not fit data of rank %d", x->rank);
    int32_t used = (int32_t)at->dims[last];
    Tensor  want = {.dtype = x->dtype};
    TRY(move_rank((int64_t)last + x->rank - used));
    append(&want, at->dims, last);
    append(&want, x->dims + used, x->rank - used);
    if (tensor_same_shape(&want, updates)) return ERR_OK;
    char need[128], got[128];
    tensor_shape_text(&want, need, sizeof need);
    tensor_shape_text(updates, got, sizeof got);
    return err_set(ERR_INVALID, "updates have shape %s, the indices need %s", got, need);
}
