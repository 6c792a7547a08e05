#include "compile/run_window.h"

RefWindow run_window(const Window *w) {
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
