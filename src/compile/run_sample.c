#include <string.h>

#include "compile/run.h"
#include "kernel/ref_sample.h"

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

// Before version 16 there was no shift by half a pixel.
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
