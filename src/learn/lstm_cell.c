#include "learn/lstm_cell.h"

#include "learn/act.h"
#include "learn/wide.h"

WIDE_LINES lstm_cell_forward_lines(size_t       n, const float *restrict b, float *restrict gates,
                                   const float *before, float *restrict c, float *restrict bent,
                                   float *restrict h) {
    float *i = gates, *f = gates + n, *g = gates + 2 * n, *o = gates + 3 * n;
    for (size_t k = 0; k < 2 * n; k++) gates[k] = act_sigmoid(gates[k] + b[k]);
    for (size_t k = 0; k < n; k++) g[k] = act_tanh(g[k] + b[2 * n + k]);
    for (size_t k = 0; k < n; k++) o[k] = act_sigmoid(o[k] + b[3 * n + k]);
    for (size_t k = 0; k < n; k++) c[k] = before ? f[k] * before[k] + i[k] * g[k] : i[k] * g[k];
    for (size_t k = 0; k < n; k++) bent[k] = act_tanh(c[k]);
    for (size_t k = 0; k < n; k++) h[k] = o[k] * bent[k];
}
WIDE(extern, lstm_cell_forward,
     (size_t n, const float *b, float *gates, const float *before, float *c, float *bent, float *h),
     (n, b, gates, before, c, bent, h))

WIDE_LINES lstm_cell_backward_lines(size_t n, float *restrict gi, float *restrict gf,
                                    float *restrict gg, float *restrict go,
                                    const float *restrict before, const float *restrict bent,
                                    const float *restrict dh, const float *restrict carried,
                                    float *restrict dc) {
    for (size_t k = 0; k < n; k++) {
        float i = gi[k], f = gf[k], g = gg[k], o = go[k], d = dh[k] + carried[k];
        float all = dc[k] + d * o * (1 - bent[k] * bent[k]);
        gi[k] = all * g * i * (1 - i);
        gf[k] = before ? all * before[k] * f * (1 - f) : 0;
        gg[k] = all * i * (1 - g * g);
        go[k] = d * bent[k] * o * (1 - o);
        dc[k] = all * f;
    }
}
WIDE(extern, lstm_cell_backward,
     (size_t n, float *gi, float *gf, float *gg, float *go, const float *before, const float *bent,
      const float *dh, const float *carried, float *dc),
     (n, gi, gf, gg, go, before, bent, dh, carried, dc))
