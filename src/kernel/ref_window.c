#include "kernel/ref_window.h"

int64_t ref_window_count(int32_t rank, const int64_t *dims) {
    int64_t n = 1;
    for (int32_t i = 0; i < rank; i++) n *= dims[i];
    return n;
}

bool ref_window_next(int32_t rank, const int64_t *dims, int64_t *at) {
    for (int32_t i = rank - 1; i >= 0; i--) {
        if (++at[i] < dims[i]) return true;
        at[i] = 0;
    }
    return false;
}

void ref_window_split(int32_t rank, const int64_t *dims, int64_t linear, int64_t *at) {
    for (int32_t i = rank - 1; i >= 0; i--) {
        at[i] = linear % dims[i];
        linear /= dims[i];
    }
}

static int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

// The whole x in [0, count) with low <= x * step + shift < high.
static RefSpan span(int64_t step, int64_t shift, int64_t low, int64_t high, int64_t count) {
    int64_t from = ceil_div(low - shift, step), to = ceil_div(high - shift, step);
    return (RefSpan){from > 0 ? from : 0, to < count ? to : count};
}

RefSpan ref_window_outputs(const RefWindow *w, int32_t d, int64_t tap) {
    return span(w->stride[d], tap * w->dilation[d] - w->pad[d], 0, w->in[d], w->out[d]);
}

RefSpan ref_window_taps(const RefWindow *w, int32_t d, int64_t o, int64_t low, int64_t high) {
    return span(w->dilation[d], o * w->stride[d] - w->pad[d], low, high, w->kernel[d]);
}

RefWindow ref_window_flatten(const RefWindow *w) {
    for (int32_t i = 0; i < w->rank; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->pad[i] != 0 || w->in[i] != w->out[i])
            return *w;
    int64_t n = ref_window_count(w->rank, w->in);
    return (RefWindow){
        .rank = 1, .in = {n}, .out = {n}, .kernel = {1}, .stride = {1}, .dilation = {1}};
}

void ref_window_scatter(const RefWindow *w, const int64_t *tap, int64_t at, int64_t n,
                        const double *v, double *plane) {
    int64_t pos[REF_WINDOW_MAX] = {0};
    ref_window_split(w->rank, w->out, at, pos);
    for (int64_t j = 0; j < n; j++) {
        int64_t to = 0;
        bool    inside = true;
        for (int32_t d = 0; d < w->rank; d++) {
            int64_t i = pos[d] * w->stride[d] + tap[d] * w->dilation[d] - w->pad[d];
            if (i < 0 || i >= w->in[d]) inside = false;
            to = to * w->in[d] + (inside ? i : 0);
        }
        if (inside) plane[to] += v[j];
        (void)ref_window_next(w->rank, w->out, pos);
    }
}
