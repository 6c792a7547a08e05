#include "policy/chip/relmas_net.h"

#include <string.h>

#include "base/check.h"
#include "learn/act.h"
#include "learn/wide.h"

enum { HIDDEN_MAX = 256 };

size_t relmas_net_params(RelmasNet n) {
    size_t lstm = ((size_t)n.in + n.hidden + 1) * 4 * n.hidden;
    return lstm + ((size_t)n.hidden + n.in + 1) * n.out;
}

double relmas_net_macs(RelmasNet n) {
    double both = (double)n.in + n.hidden;
    return 4.0 * n.hidden * both + n.out * both;
}

// y [cols] += x [rows] w [rows][cols], four rows at a time in the order in which they stand.
WIDE_LINES add_product_lines(size_t rows, size_t cols, const float *restrict x,
                             const float *restrict w, float *restrict y) {
    size_t i = 0;
    for (; i + 4 <= rows; i += 4, w += 4 * cols)
        for (size_t j = 0; j < cols; j++)
            y[j] = (((y[j] + x[i] * w[j]) + x[i + 1] * w[cols + j]) + x[i + 2] * w[2 * cols + j]) +
                   x[i + 3] * w[3 * cols + j];
    for (; i < rows; i++, w += cols)
        for (size_t j = 0; j < cols; j++) y[j] += x[i] * w[j];
}
WIDE(static, add_product, (size_t rows, size_t cols, const float *x, const float *w, float *y),
     (rows, cols, x, w, y))

// Gates i, f, g, o; see Lstm.
WIDE_LINES turn_lines(size_t n, float *restrict gates, float *restrict c, float *restrict h) {
    for (size_t k = 0; k < 2 * n; k++) gates[k] = act_sigmoid(gates[k]);
    for (size_t k = 2 * n; k < 3 * n; k++) gates[k] = act_tanh(gates[k]);
    for (size_t k = 3 * n; k < 4 * n; k++) gates[k] = act_sigmoid(gates[k]);
    for (size_t k = 0; k < n; k++) c[k] = gates[n + k] * c[k] + gates[k] * gates[2 * n + k];
    for (size_t k = 0; k < n; k++) h[k] = gates[3 * n + k] * act_tanh(c[k]);
}
WIDE(static, turn, (size_t n, float *gates, float *c, float *h), (n, gates, c, h))

void relmas_net_forward(RelmasNet n, const float *w, uint32_t rows, const float *x, float *y) {
    float        gates[4 * HIDDEN_MAX], c[HIDDEN_MAX] = {0}, h[HIDDEN_MAX] = {0};
    size_t       wide = 4 * (size_t)n.hidden;
    const float *wh = w + n.in * wide, *b = wh + n.hidden * wide;
    const float *head = b + wide, *head_x = head + (size_t)n.hidden * n.out;
    const float *head_b = head_x + (size_t)n.in * n.out;
    CHECK(n.hidden <= HIDDEN_MAX);
    for (uint32_t r = 0; r < rows; r++, x += n.in, y += n.out) {
        memcpy(gates, b, wide * sizeof *b);
        add_product(n.in, wide, x, w, gates);
        add_product(n.hidden, wide, h, wh, gates);
        turn(n.hidden, gates, c, h);
        memcpy(y, head_b, n.out * sizeof *y);
        add_product(n.hidden, n.out, h, head, y);
        add_product(n.in, n.out, x, head_x, y);
        for (uint32_t k = 0; k < n.out; k++) y[k] = act_tanh(y[k]);
    }
}
