#include <inttypes.h>
#include <string.h>

#include "model/infer.h"

static Err one_of(const Node *n, const char *name, const char *const *allowed, int count) {
    const char *s = attr_str(n, name, allowed[0]);
    for (int i = 0; i < count; i++)
        if (strcmp(s, allowed[i]) == 0) return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "%s '%.32s' is not known", name, s);
}

Err infer_grid_sample(const OpCall *c, Tensor *out) {
    static const char *const modes[] = {"bilinear", "linear", "nearest", "bicubic", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const Tensor            *x = c->in[0], *grid = c->in[1];
    TRY(infer_need(x, TYPES_NUMBER, "X"));
    TRY(infer_need(grid, TYPES_FLOAT, "grid"));
    TRY(one_of(c->node, "mode", modes, 5));
    TRY(one_of(c->node, "padding_mode", paddings, 3));
    if (x->rank < 3 || grid->rank != x->rank || grid->dims[0] != x->dims[0] ||
        grid->dims[x->rank - 1] != x->rank - 2)
        return err_set(ERR_INVALID, "the grid does not fit an input of rank %d", x->rank);
    out->dtype = x->dtype;
    out->rank = x->rank;
    out->dims[0] = x->dims[0];
    out->dims[1] = x->dims[1];
    for (int32_t i = 2; i < x->rank; i++) {
        if (x->dims[i] < 1) return err_set(ERR_INVALID, "the input has no pixels");
        out->dims[i] = grid->dims[i - 1];
    }
    return ERR_OK;
}

Err infer_affine_grid(const OpCall *c, Tensor *out) {
    const Tensor *theta = c->in[0], *size = c->in[1];
    int64_t       v[5] = {0};
    uint32_t      n = 0;
    TRY(infer_need(theta, TYPES_FLOAT, "theta"));
    TRY(infer_need(size, dtype_bit(DT_I64), "size"));
    *out = (Tensor){.dtype = theta->dtype, .rank = RANK_UNKNOWN};
    if (size->data == NULL) return ERR_OK;
    TRY(infer_read_ints(size, v, 5, &n));
    int32_t rank = (int32_t)n - 2;
    if (rank < 2 || theta->rank != 3 || theta->dims[0] != v[0] || theta->dims[1] != rank ||
        theta->dims[2] != rank + 1)
        return err_set(ERR_INVALID, "theta does not fit a size of %u numbers", n);
    out->rank = rank + 2;
    out->dims[0] = v[0];
    for (int32_t i = 0; i < rank; i++) {
        if (v[i + 2] < 1) return err_set(ERR_INVALID, "size holds %" PRId64, v[i + 2]);
        out->dims[i + 1] = v[i + 2];
    }
    out->dims[rank + 1] = rank;
    return ERR_OK;
}

static Err roi_attrs(const Node *n, Tensor *out) {
    static const char *const modes[] = {"avg", "max"};
    static const char *const coordinates[] = {"half_pixel", "output_half_pixel"};
    TRY(one_of(n, "mode", modes, 2));
    TRY(one_of(n, "coordinate_transformation_mode", coordinates, 2));
    out->dims[2] = attr_int(n, "output_height", 1);
    out->dims[3] = attr_int(n, "output_width", 1);
    if (out->dims[2] < 1 || out->dims[3] < 1 || out->dims[2] > INT32_MAX ||
        out->dims[3] > INT32_MAX)
        return err_set(ERR_INVALID, "an output of %" PRId64 "x%" PRId64, out->dims[2],
                       out->dims[3]);
    int64_t sampling = attr_int(n, "sampling_ratio", 0);
    if (sampling < 0 || sampling > 4096)
        return err_set(ERR_INVALID, "sampling_ratio %" PRId64 " is outside 0..4096", sampling);
    return ERR_OK;
}

Err infer_roi_align(const OpCall *c, Tensor *out) {
    const Tensor *x = c->in[0], *rois = c->in[1], *images = c->in[2];
    TRY(infer_need(x, TYPES_FLOAT, "X"));
    TRY(infer_need(rois, dtype_bit(x->dtype), "rois"));
    TRY(infer_need(images, TYPES_INDEX, "batch_indices"));
    if (x->rank != 4 || rois->rank != 2 || rois->dims[1] != 4 || images->rank != 1 ||
        images->dims[0] != rois->dims[0])
        return err_set(ERR_INVALID, "needs X of rank 4, rois of shape Nx4 and N batch_indices");
    if (x->dims[2] < 1 || x->dims[3] < 1) return err_set(ERR_INVALID, "the input has no pixels");
    out->dtype = x->dtype;
    out->rank = 4;
    out->dims[0] = rois->dims[0];
    out->dims[1] = x->dims[1];
    return roi_attrs(c->node, out);
}
