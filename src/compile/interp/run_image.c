// Pooling, resizing, sampling, and regions of interest.
#include <string.h>

#include "compile/interp/run_ops.h"
#include "kernel/ref/ref_pool.h"
#include "kernel/ref/ref_sample.h"
#include "model/params/resize.h"

static RefPoolKind pool_kind(OpId op) {
    switch (op) {
    case OP_AveragePool:
    case OP_GlobalAveragePool: return REF_POOL_AVERAGE;
    case OP_LpPool:
    case OP_GlobalLpPool: return REF_POOL_LP;
    default: return REF_POOL_MAX;
    }
}

static RefPool pool_params(const OpCall *c, const SlidingWindow *w) {
    const Attr *p = attr_find(c->node, "p");
    double      norm = (double)attr_int(c->node, "p", 2);
    if (p != NULL && p->kind == ATTR_FLOAT) norm = (double)p->v.f;
    return (RefPool){
        .kind = pool_kind(c->node->op),
        .window = run_window(w),
        .p = norm,
        .count_pad = attr_int(c->node, "count_include_pad", 0) != 0,
        .column_major = attr_int(c->node, "storage_order", 0) != 0,
    };
}

Err run_pool(const OpCall *c, Tensor *out) {
    SlidingWindow w;
    TRY(sliding_window_read(c->node, c->in[0], NULL, &w));
    RefPool p = pool_params(c, &w);
    return ref_pool(&p, c->in[0], &out[0], c->node->n_out > 1 ? &out[1] : NULL, c->scratch);
}

Err run_pool_global(const OpCall *c, Tensor *out) {
    SlidingWindow w;
    sliding_window_whole(c->in[0], &w);
    RefPool p = pool_params(c, &w);
    return ref_pool(&p, c->in[0], &out[0], NULL, c->scratch);
}

Err run_unpool(const OpCall *c, Tensor *out) {
    SlidingWindow w;
    TRY(sliding_window_read_unpool(c->node, c->in[0], &w));
    return ref_unpool(c->in[0], c->in[1], w.in, &out[0]);
}

Err run_pool_roi(const OpCall *c, Tensor *out) {
    double scale = (double)attr_float(c->node, "spatial_scale", 1);
    return ref_roi_max(scale, c->in[0], c->in[1], &out[0]);
}

static const RefResizeMode modes[] = {
    [RESIZE_NEAREST] = REF_RESIZE_NEAREST,
    [RESIZE_LINEAR] = REF_RESIZE_LINEAR,
    [RESIZE_CUBIC] = REF_RESIZE_CUBIC,
};

static const RefResizeCoordinate coordinates[] = {
    [RESIZE_HALF_PIXEL] = REF_RESIZE_HALF_PIXEL,
    [RESIZE_HALF_PIXEL_SYMMETRIC] = REF_RESIZE_HALF_PIXEL_SYMMETRIC,
    [RESIZE_PYTORCH_HALF_PIXEL] = REF_RESIZE_PYTORCH_HALF_PIXEL,
    [RESIZE_ALIGN_CORNERS] = REF_RESIZE_ALIGN_CORNERS,
    [RESIZE_ASYMMETRIC] = REF_RESIZE_ASYMMETRIC,
    [RESIZE_TF_HALF_PIXEL_FOR_NN] = REF_RESIZE_TF_HALF_PIXEL_FOR_NN,
    [RESIZE_TF_CROP_AND_RESIZE] = REF_RESIZE_TF_CROP_AND_RESIZE,
};

static const RefResizeNearest nearests[] = {
    [RESIZE_ROUND_PREFER_FLOOR] = REF_RESIZE_ROUND_PREFER_FLOOR,
    [RESIZE_ROUND_PREFER_CEIL] = REF_RESIZE_ROUND_PREFER_CEIL,
    [RESIZE_FLOOR] = REF_RESIZE_FLOOR,
    [RESIZE_CEIL] = REF_RESIZE_CEIL,
    [RESIZE_SIMPLE] = REF_RESIZE_SIMPLE,
};

Err run_resize_params(const OpCall *c, int32_t rank, RefResize *p) {
    Resize r;
    TRY(resize_read(c, &r));
    *p = (RefResize){
        .mode = modes[r.mode],
        .coordinate = coordinates[r.coordinate],
        .nearest = nearests[r.nearest],
        .antialias = r.antialias,
        .exclude_outside = r.exclude_outside,
        .cubic_a = (double)r.cubic_a,
        .extrapolation = (double)r.extrapolation,
    };
    for (int32_t i = 0; i < rank; i++)
        p->axis[i] = (RefResizeAxis){r.scale[i], r.length[i], {r.roi[i][0], r.roi[i][1]}};
    return ERR_OK;
}

Err run_resize(const OpCall *c, Tensor *out) {
    RefResize p;
    TRY(run_resize_params(c, out[0].rank, &p));
    return ref_resize(&p, c->in[0], &out[0], c->scratch);
}

Err run_grid_sample(const OpCall *c, Tensor *out) {
    const char   *mode = attr_str(c->node, "mode", "linear");
    RefGridSample p = {.mode = REF_SAMPLE_LINEAR,
                       .align_corners = attr_int(c->node, "align_corners", 0) != 0};
    if (strcmp(mode, "nearest") == 0) p.mode = REF_SAMPLE_NEAREST;
    if (strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0) p.mode = REF_SAMPLE_CUBIC;
    if (attr_is(c->node, "padding_mode", "border", false)) p.padding = REF_SAMPLE_BORDER;
    if (attr_is(c->node, "padding_mode", "reflection", false)) p.padding = REF_SAMPLE_REFLECTION;
    ref_grid_sample(&p, c->in[0], c->in[1], &out[0]);
    return ERR_OK;
}

Err run_affine_grid(const OpCall *c, Tensor *out) {
    ref_affine_grid(attr_int(c->node, "align_corners", 0) != 0, c->in[0], &out[0]);
    return ERR_OK;
}

// The half-pixel shift exists since version 16.
Err run_roi_align(const OpCall *c, Tensor *out) {
    const char *name = "coordinate_transformation_mode";
    RefRoiAlign p = {
        .max = attr_is(c->node, "mode", "max", false),
        .half_pixel = attr_is(c->node, name, "half_pixel", c->node->version >= 16),
        .sampling = attr_int(c->node, "sampling_ratio", 0),
        .scale = (double)attr_float(c->node, "spatial_scale", 1),
    };
    return ref_roi_align(&p, c->in[0], c->in[1], c->in[2], &out[0]);
}

RefWindow run_window(const SlidingWindow *w) {
    RefWindow r = {.rank = w->rank};
    for (int32_t i = 0; i < w->rank; i++) {
        r.in[i] = w->in[i];
        r.out[i] = w->out[i];
        r.kernel[i] = w->kernel[i];
        r.stride[i] = w->stride[i];
        r.dilation[i] = w->dilation[i];
        r.pad[i] = w->pad[i];
        r.pad_end[i] = w->pad_end[i];
    }
    return r;
}
