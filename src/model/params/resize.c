#include "model/params/resize.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/tensor.h"
#include "model/attr.h"
#include "model/infer/infer.h"

static const char *const coordinates[RESIZE_COORDINATES] = {
    [RESIZE_HALF_PIXEL] = "half_pixel",
    [RESIZE_HALF_PIXEL_SYMMETRIC] = "half_pixel_symmetric",
    [RESIZE_PYTORCH_HALF_PIXEL] = "pytorch_half_pixel",
    [RESIZE_ALIGN_CORNERS] = "align_corners",
    [RESIZE_ASYMMETRIC] = "asymmetric",
    [RESIZE_TF_HALF_PIXEL_FOR_NN] = "tf_half_pixel_for_nn",
    [RESIZE_TF_CROP_AND_RESIZE] = "tf_crop_and_resize",
};

static const char *const nearests[RESIZE_NEARESTS] = {
    [RESIZE_ROUND_PREFER_FLOOR] = "round_prefer_floor",
    [RESIZE_ROUND_PREFER_CEIL] = "round_prefer_ceil",
    [RESIZE_FLOOR] = "floor",
    [RESIZE_CEIL] = "ceil",
    [RESIZE_SIMPLE] = "simple",
};

static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear"};

static Err read_modes(const Node *n, Resize *r) {
    int mode = 0, coordinate = RESIZE_ASYMMETRIC, nearest = RESIZE_SIMPLE;
    TRY(attr_enum(n, "mode", modes, 4, &mode));
    if (n->op == OP_Resize && n->version >= 11) {
        TRY(attr_enum(n, "coordinate_transformation_mode", coordinates, RESIZE_COORDINATES,
                      &coordinate));
        TRY(attr_enum(n, "nearest_mode", nearests, RESIZE_SIMPLE, &nearest));
    }
    r->mode = mode == 3 ? RESIZE_LINEAR : (ResizeMode)mode;
    r->coordinate = (ResizeCoordinate)coordinate;
    r->nearest = (ResizeNearest)nearest;
    r->antialias = attr_int(n, "antialias", 0) != 0;
    r->exclude_outside = attr_int(n, "exclude_outside", 0) != 0;
    r->cubic_a = attr_float(n, "cubic_coeff_a", -0.75F);
    r->extrapolation = attr_float(n, "extrapolation_value", 0);
    if (!isfinite(r->cubic_a)) return err_set(ERR_INVALID, "cubic_coeff_a is not finite");
    return ERR_OK;
}

// The axes that scales, sizes and roi list, in their order.
static Err read_axes(const OpCall *c, int32_t *axes, int32_t *count) {
    IntList  list;
    uint32_t n = 0;
    TRY(infer_int_list(c, UINT32_MAX, "axes", &list));
    TRY(infer_axes(&list, c->in[0]->rank, axes, &n));
    *count = (int32_t)n;
    return ERR_OK;
}

static Err set_scale(Resize *r, const Tensor *x, int32_t axis, float scale) {
    float length = (float)x->dims[axis] * scale;
    if (!(scale > 0) || !isfinite(scale))
        return err_set(ERR_INVALID, "scale %g of dimension %d must be above 0", (double)scale,
                       axis);
    if (!(length < 0x1p62F))
        return err_set(ERR_LIMIT, "scale %g makes dimension %d too large", (double)scale, axis);
    r->scale[axis] = scale;
    r->out[axis] = (int64_t)length;
    r->length[axis] = (double)scale * (double)x->dims[axis];
    return ERR_OK;
}

static Err set_size(Resize *r, const Tensor *x, int32_t axis, int64_t size) {
    int64_t in = x->dims[axis];
    if (size < 0 || (in == 0 && size != 0))
        return err_set(ERR_INVALID, "dimension %d of %" PRId64 " cannot become %" PRId64, axis, in,
                       size);
    r->out[axis] = size;
    r->length[axis] = (double)size;
    r->scale[axis] = in != 0 && size != 0 ? (float)size / (float)in : 1;
    return ERR_OK;
}

// One scale for all axes: the smallest (not_larger) or largest (not_smaller) of theirs.
static Err keep_aspect(Resize *r, const Tensor *x, const int32_t *axes, int32_t n, bool larger) {
    float scale = 0;
    for (int32_t i = 0; i < n; i++) {
        float s = r->scale[axes[i]];
        if (i == 0 || (larger ? s > scale : s < scale)) scale = s;
    }
    for (int32_t i = 0; i < n; i++) {
        TRY(set_scale(r, x, axes[i], scale));
        r->out[axes[i]] = (int64_t)floor(r->length[axes[i]] + 0.5);
    }
    return ERR_OK;
}

static Err check_policy(const Node *n) {
    const char *policy = attr_str(n, "keep_aspect_ratio_policy", "stretch");
    if (strcmp(policy, "stretch") == 0 || strcmp(policy, "not_smaller") == 0 ||
        strcmp(policy, "not_larger") == 0)
        return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "keep_aspect_ratio_policy '%.32s' is not supported", policy);
}

static Err apply_sizes(const Node *n, const Tensor *sizes, const Tensor *x, const int32_t *axes,
                       int32_t count, Resize *r) {
    int64_t  v[TENSOR_MAX_RANK];
    uint32_t have = 0;
    TRY(infer_read_ints(sizes, v, TENSOR_MAX_RANK, &have));
    if (have != (uint32_t)count)
        return err_set(ERR_INVALID, "sizes has %u elements, needs %d", have, count);
    for (int32_t i = 0; i < count; i++) TRY(set_size(r, x, axes[i], v[i]));
    if (attr_is(n, "keep_aspect_ratio_policy", "stretch", true)) return ERR_OK;
    bool larger = attr_is(n, "keep_aspect_ratio_policy", "not_smaller", false);
    return keep_aspect(r, x, axes, count, larger);
}

static Err apply_scales(const Tensor *scales, const Tensor *x, const int32_t *axes, int32_t count,
                        Resize *r) {
    if (scales->rank != 1 || scales->dims[0] != count)
        return err_set(ERR_INVALID, "scales must have %d elements", count);
    for (int32_t i = 0; i < count; i++)
        TRY(set_scale(r, x, axes[i], ((const float *)scales->data)[i]));
    return ERR_OK;
}

static Err apply_roi(const Tensor *roi, const int32_t *axes, int32_t count, Resize *r) {
    if (roi == NULL || roi->rank != 1 || roi->dims[0] != (int64_t)2 * count)
        return err_set(ERR_INVALID, "tf_crop_and_resize needs a roi of %d elements", 2 * count);
    for (int32_t i = 0; i < count; i++) {
        r->roi[axes[i]][0] = tensor_get_f64(roi, i);
        r->roi[axes[i]][1] = tensor_get_f64(roi, count + i);
    }
    return ERR_OK;
}

static bool given(const Tensor *t) { return t != NULL && !(t->rank == 1 && t->dims[0] == 0); }

// Upsample, and Resize before version 11: scales only, as attribute or second input.
static Err read_upsample(const OpCall *c, const int32_t *axes, int32_t count, Resize *r) {
    const Node   *n = c->node;
    const Tensor *x = c->in[0];
    uint32_t      have = 0;
    const float  *v = attr_floats(n, "scales", &have);
    if (n->op == OP_Upsample && attr_has(n, "width_scale") && x->rank == 4) {
        TRY(set_scale(r, x, 2, attr_float(n, "height_scale", 1)));
        return set_scale(r, x, 3, attr_float(n, "width_scale", 1));
    }
    if (infer_input(c, 1) != NULL) {
        r->known = c->in[1]->data != NULL;
        TRY(infer_check_type(c->in[1], dtype_bit(DT_F32), "scales"));
        return r->known ? apply_scales(c->in[1], x, axes, count, r) : ERR_OK;
    }
    if (have != (uint32_t)count)
        return err_set(ERR_INVALID, "scales has %u elements, needs %d", have, count);
    for (int32_t i = 0; i < count; i++) TRY(set_scale(r, x, axes[i], v[i]));
    return ERR_OK;
}

static Err read_resize(const OpCall *c, const int32_t *axes, int32_t count, Resize *r) {
    const Tensor *x = c->in[0], *roi = infer_input(c, 1);
    const Tensor *scales = infer_input(c, 2), *sizes = infer_input(c, 3);
    bool          crop = r->coordinate == RESIZE_TF_CROP_AND_RESIZE;
    if (given(scales) == given(sizes))
        return err_set(ERR_INVALID, "exactly one of scales and sizes must be given");
    const Tensor *how = given(sizes) ? sizes : scales;
    r->known = how->data != NULL && !(crop && roi != NULL && roi->data == NULL);
    TRY(infer_check_type(how, how == sizes ? TYPES_INDEX : dtype_bit(DT_F32),
                         how == sizes ? "sizes" : "scales"));
    if (crop && roi != NULL) TRY(infer_check_type(roi, TYPES_FLOAT, "roi"));
    if (how == sizes) TRY(check_policy(c->node));
    if (!r->known) return ERR_OK;
    if (crop) TRY(apply_roi(roi, axes, count, r));
    return given(sizes) ? apply_sizes(c->node, sizes, x, axes, count, r)
                        : apply_scales(scales, x, axes, count, r);
}

Err resize_read(const OpCall *c, Resize *r) {
    const Tensor *x = c->in[0];
    int32_t       axes[TENSOR_MAX_RANK], count = 0;
    *r = (Resize){.known = true};
    TRY(read_modes(c->node, r));
    TRY(read_axes(c, axes, &count));
    for (int32_t i = 0; i < x->rank; i++) {
        r->out[i] = x->dims[i];
        r->length[i] = (double)x->dims[i];
        r->scale[i] = 1;
        r->roi[i][1] = 1;
    }
    bool old = c->node->op == OP_Upsample || c->node->version < 11;
    return old ? read_upsample(c, axes, count, r) : read_resize(c, axes, count, r);
}
