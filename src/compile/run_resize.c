#include "compile/run_resize.h"

#include "compile/run.h"
#include "model/resize.h"

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
