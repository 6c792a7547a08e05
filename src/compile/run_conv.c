#include "base/number.h"
#include "compile/run.h"
#include "compile/run_view.h"
#include "compile/run_window.h"
#include "kernel/ref_conv.h"
#include "kernel/ref_quant.h"

static Err conv_params(const OpCall *c, const Tensor *x, const Tensor *w, RefConv *p) {
    Window win;
    TRY(window_read(c->node, x, w->dims + 2, &win));
    *p = (RefConv){.window = run_window(&win), .group = attr_int(c->node, "group", 1)};
    return ERR_OK;
}

Err run_conv(const OpCall *c, Tensor *out) {
    RefConv p;
    TRY(conv_params(c, c->in[0], c->in[1], &p));
    return ref_conv(&p, c->in[0], c->in[1], infer_in(c, 2), &out[0], c->scratch);
}

Err run_conv_transpose(const OpCall *c, Tensor *out) {
    Window win;
    TRY(window_read_transposed(c->node, c->in[0], c->in[1]->dims + 2, &win));
    RefConv p = {.window = run_window(&win), .group = attr_int(c->node, "group", 1)};
    return ref_conv_transpose(&p, c->in[0], c->in[1], infer_in(c, 2), &out[0], c->scratch);
}

Err run_conv_integer(const OpCall *c, Tensor *out) {
    RefConv p;
    TRY(conv_params(c, c->in[0], c->in[1], &p));
    if (infer_in(c, 2) != NULL) p.x_zero = number_f64(c->in[2], 0);
    p.w_zero = infer_in(c, 3);
    return ref_conv(&p, c->in[0], c->in[1], NULL, &out[0], c->scratch);
}

Err run_conv_qlinear(const OpCall *c, Tensor *out) {
    RefConv p;
    Tensor  sum;
    TRY(conv_params(c, c->in[0], c->in[3], &p));
    p.x_zero = number_f64(c->in[2], 0);
    p.w_zero = c->in[5];
    TRY(run_wide(c, &out[0], &sum));
    TRY(ref_conv(&p, c->in[0], c->in[3], infer_in(c, 8), &sum, c->scratch));
    Tensor w_scale = run_column(c->in[4], out[0].rank - 2);
    ref_requantize(&sum, c->in[1], &w_scale, c->in[6], c->in[7], &out[0]);
    return ERR_OK;
}

Err run_conv_deform(const OpCall *c, Tensor *out) {
    RefConvDeform p = {.offset_group = attr_int(c->node, "offset_group", 1),
                       .offset = c->in[2],
                       .mask = infer_in(c, 4)};
    TRY(conv_params(c, c->in[0], c->in[1], &p.conv));
    return ref_conv_deform(&p, c->in[0], c->in[1], infer_in(c, 3), &out[0], c->scratch);
}

Err run_col2im(const OpCall *c, Tensor *out) {
    Window  win;
    int64_t channels = 0;
    TRY(window_read_col2im(c->node, c->in[0], c->in[1], c->in[2], &win, &channels));
    RefWindow w = run_window(&win);
    return ref_col2im(&w, c->in[0], &out[0], c->scratch);
}
