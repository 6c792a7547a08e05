#include "learn/lstm_cell.h"

#include "learn/act.h"
#include "learn/wide.h"

// One pointer for each gate, for the compiler must know that they do not overlap.
WIDE_LINES forward_lines(size_t n, const float *restrict b, float *restrict gi, float *restrict gf,
                         float *restrict gg, float *restrict go, const float *restrict before,
                         float *restrict c, float *restrict bent, float *restrict h) {
    for (size_t k = 0; k < n; k++) {
        gi[k] = act_sigmoid(gi[k] + b[k]);
        gf[k] = act_sigmoid(gf[k] + b[n + k]);
        gg[k] = act_tanh(gg[k] + b[2 * n + k]);
        go[k] = act_sigmoid(go[k] + b[3 * n + k]);
        c[k] = gf[k] * before[k] + gi[k] * gg[k];
        bent[k] = act_tanh(c[k]);
        h[k] = go[k] * bent[k];
    }
}
WIDE(static, forward,
     (size_t n, const float *b, float *gi, float *gf, float *gg, float *go, const float *before,
      float *c, float *bent, float *h),
     (n, b, gi, gf, gg, go, before, c, bent, h))

WIDE_LINES backward_lines(size_t n, float *restrict gi, float *restrict gf, float *restrict gg,
                          float *restrict go, const float *restrict before,
                          const float *restrict bent, const float *restrict dh,
                          const float *restrict carried, float *restrict dc) {
    for (size_t k = 0; k < n; k++) {
        float i = gi[k], f = gf[k], g = gg[k], o = go[k], d = dh[k] + carried[k];
        float all = dc[k] + d * o * (1 - bent[k] * bent[k]);
        gi[k] = all * g * i * (1 - i);
        gf[k] = all * before[k] * f * (1 - f);
        gg[k] = all * i * (1 - g * g);
        go[k] = d * bent[k] * o * (1 - o);
        dc[k] = all * f;
    }
}
WIDE(static, backward,
     (size_t n, float *gi, float *gf, float *gg, float *go, const float *before, const float *bent,
      const float *dh, const float *carried, float *dc),
     (n, gi, gf, gg, go, before, bent, dh, carried, dc))

void lstm_cell_forward(size_t n, const float *b, float *gates, const float *before, float *c,
                       float *bent, float *h) {
    forward(n, b, gates, gates + n, gates + 2 * n, gates + 3 * n, before, c, bent, h);
}

void lstm_cell_backward(size_t n, float *gates, const float *before, const float *bent,
                        const float *dh, const float *carried, float *dc) {
    backward(n, gates, gates + n, gates + 2 * n, gates + 3 * n, before, bent, dh, carried, dc);
}
