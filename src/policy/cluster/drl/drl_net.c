#include <stdlib.h>
#include <string.h>

#include "learn/activation.h"
#include "learn/dense.h"
#include "policy/cluster/drl/drl.h"
#include "policy/embedded_weights.h"

enum { LAYERS = 3 };

static Dense layer(DrlNet net, uint32_t i) {
    return (Dense){i == 0 ? (uint32_t)DRL_IN : net.hidden,
                   i + 1 == LAYERS ? (uint32_t)DRL_OUT : net.hidden};
}

static size_t begin(DrlNet net, uint32_t i) {
    size_t at = 0;
    for (uint32_t k = 0; k < i; k++) at += dense_params(layer(net, k));
    return at;
}

size_t drl_net_params(DrlNet net) { return begin(net, LAYERS); }
size_t drl_net_output_layer(DrlNet net) { return begin(net, LAYERS - 1); }
size_t drl_net_cache(DrlNet net, size_t rows) { return 4 * rows * net.hidden; }

void drl_net_init(DrlNet net, float *w, Rng *rng) {
    for (uint32_t i = 0; i + 1 < LAYERS; i++)
        dense_init(layer(net, i), w + begin(net, i), 1.4142f, rng);
    memset(w + drl_net_output_layer(net), 0, dense_params(layer(net, LAYERS - 1)) * sizeof *w);
}

void drl_net_forward(DrlNet net, const float *w, size_t rows, const float *x, float *y,
                     float *cache) {
    MatBackend   was = mat_set_backend(MAT_REPRODUCIBLE);
    size_t       n = rows * net.hidden;
    const float *from = x;
    for (uint32_t i = 0; i < LAYERS; i++) {
        Dense  d = layer(net, i);
        float *to = i + 1 == LAYERS ? y : cache + i * n;
        dense_forward(d, w + begin(net, i), rows, mat(from, d.in), mat_out(to, d.out));
        if (i + 1 < LAYERS) activation_forward(ACTIVATION_RELU, n, to, to);
        from = to;
    }
    mat_set_backend(was);
}

void drl_net_backward(DrlNet net, const float *w, float *gw, size_t rows, const float *x,
                      const float *dy, float *cache) {
    MatBackend   was = mat_set_backend(MAT_REPRODUCIBLE);
    size_t       n = rows * net.hidden;
    const float *d_out = dy;
    for (uint32_t i = LAYERS; i-- > 0;) {
        Dense        d = layer(net, i);
        const float *in = i == 0 ? x : cache + (i - 1) * n;
        float       *dx = i == 0 ? NULL : cache + (1 + i) * n;
        dense_backward(d, w + begin(net, i), gw + begin(net, i), rows, mat(in, d.in),
                       mat(d_out, d.out), mat_out(dx, d.in));
        if (i > 0) activation_backward(ACTIVATION_RELU, n, in, dx, dx);
        d_out = dx;
    }
    mat_set_backend(was);
}

char *drl_weights_facts(DrlNet net, Arena *a) {
    return arena_printf(a, "policy=drl_single\ninputs=%d\noutputs=%d\nhidden=%u\n", DRL_IN, DRL_OUT,
                        net.hidden);
}

Err drl_weights_load(const char *what, Arena *a, DrlLoaded *out) {
    WeightsFile w;
    const char *expect =
        arena_printf(a, "policy=drl_single\ninputs=%d\noutputs=%d\n", DRL_IN, DRL_OUT);
    if (strcmp(what, "none") == 0) {
        *out = (DrlLoaded){.w = NULL};
        return ERR_OK;
    }
    TRY(embedded_weights_load(what, "drl_single", "cluster", expect, a, &w));
    const char *fact = weights_metadata(&w, "hidden", a);
    DrlNet      net = {fact != NULL ? (uint32_t)strtoul(fact, NULL, 10) : 0};
    if (net.hidden < 1 || net.hidden > DRL_HIDDEN_MAX || drl_net_params(net) != w.params.n)
        return err_set(ERR_INVALID,
                       "weights of drl_single %s: %zu numbers do not fit a network of %u hidden "
                       "units; train with 'cotenant cluster train --policy drl_single'",
                       what, w.params.n, net.hidden);
    *out = (DrlLoaded){.net = net, .w = w.params.at};
    return ERR_OK;
}
