#include "learn/lstm.h"

#include <math.h>
#include <string.h>

#include "learn/activation.h"
#include "learn/multiversion.h"

// One restrict pointer per gate, so that the compiler can vectorise.
MULTIVERSION_BODY forward_body(size_t n, const float *restrict b, float *restrict gi,
                               float *restrict gf, float *restrict gg, float *restrict go,
                               const float *restrict before, float *restrict c,
                               float *restrict tanh_c, float *restrict h) {
    for (size_t k = 0; k < n; k++) {
        gi[k] = repro_sigmoid(gi[k] + b[k]);
        gf[k] = repro_sigmoid(gf[k] + b[n + k]);
        gg[k] = repro_tanh(gg[k] + b[2 * n + k]);
        go[k] = repro_sigmoid(go[k] + b[3 * n + k]);
        c[k] = gf[k] * before[k] + gi[k] * gg[k];
        tanh_c[k] = repro_tanh(c[k]);
        h[k] = go[k] * tanh_c[k];
    }
}
MULTIVERSION(static, forward,
             (size_t n, const float *b, float *gi, float *gf, float *gg, float *go,
              const float *before, float *c, float *tanh_c, float *h),
             (n, b, gi, gf, gg, go, before, c, tanh_c, h))

MULTIVERSION_BODY backward_body(size_t n, float *restrict gi, float *restrict gf,
                                float *restrict gg, float *restrict go,
                                const float *restrict before, const float *restrict tanh_c,
                                const float *restrict dh, const float *restrict carried,
                                float *restrict dc) {
    for (size_t k = 0; k < n; k++) {
        float i = gi[k], f = gf[k], g = gg[k], o = go[k], d = dh[k] + carried[k];
        float all = dc[k] + d * o * (1 - tanh_c[k] * tanh_c[k]);
        gi[k] = all * g * i * (1 - i);
        gf[k] = all * before[k] * f * (1 - f);
        gg[k] = all * i * (1 - g * g);
        go[k] = d * tanh_c[k] * o * (1 - o);
        dc[k] = all * f;
    }
}
MULTIVERSION(static, backward,
             (size_t n, float *gi, float *gf, float *gg, float *go, const float *before,
              const float *tanh_c, const float *dh, const float *carried, float *dc),
             (n, gi, gf, gg, go, before, tanh_c, dh, carried, dc))

void lstm_cell_forward(size_t n, const float *b, float *gates, const float *before, float *c,
                       float *tanh_c, float *h) {
    forward(n, b, gates, gates + n, gates + 2 * n, gates + 3 * n, before, c, tanh_c, h);
}

void lstm_cell_backward(size_t n, float *gates, const float *before, const float *tanh_c,
                        const float *dh, const float *carried, float *dc) {
    backward(n, gates, gates + n, gates + 2 * n, gates + 3 * n, before, tanh_c, dh, carried, dc);
}

// Per row: activations of the gates (after backward: gradients of the pre-activations), c, tanh c
// and the previous h. Then the gradients that backward carries from step to step, and Wh
// transposed.
typedef struct Cache {
    float *gates, *c, *tanh_c, *before, *dh, *dc, *wh_t, *zero;
} Cache;

static Cache cache_of(Lstm l, const Ragged *r, float *at) {
    size_t n = (size_t)r->n_rows * l.hidden, carried = (size_t)r->n_seqs * l.hidden;
    Cache  k = {
         .gates = at, .c = at + 4 * n, .tanh_c = at + 5 * n, .before = at + 6 * n, .dh = at + 7 * n};
    k.dc = k.dh + carried;
    k.wh_t = k.dc + carried;
    k.zero = k.wh_t + 4 * (size_t)l.hidden * l.hidden;
    return k;
}

void lstm_init(Lstm l, float *w, Rng *rng) {
    size_t n = ((size_t)l.in + l.hidden) * 4 * l.hidden;
    float  limit = 1 / sqrtf((float)(l.hidden > 0 ? l.hidden : 1));
    for (size_t i = 0; i < n; i++) w[i] = limit * (2 * rng_unit(rng) - 1);
    for (size_t i = 0; i < 4 * (size_t)l.hidden; i++)
        w[n + i] = i >= l.hidden && i < 2 * (size_t)l.hidden ? 1 : 0;
}

// The step processed before t: rows of the first *n ranks from *row on. Other sequences begin at t.
static void step_before(Lstm l, const Ragged *r, uint32_t t, uint32_t *row, uint32_t *n) {
    *row = *n = 0;
    if (!l.backwards && t > 0) {
        *row = r->start[t - 1];
        *n = ragged_alive(r, t);
    } else if (l.backwards && t + 1 < r->n_steps) {
        *row = r->start[t + 1];
        *n = ragged_alive(r, t + 1);
    }
}

static uint32_t step_at(Lstm l, const Ragged *r, uint32_t turn) {
    return l.backwards ? r->n_steps - 1 - turn : turn;
}

static const float *c_before(Lstm l, const Cache *k, const LstmState *first, uint32_t row,
                             uint32_t n, uint32_t rank) {
    if (rank < n) return k->c + ((size_t)row + rank) * l.hidden;
    return first ? first->c + (size_t)rank * l.hidden : k->zero;
}

static void step_forward(Lstm l, const float *w, const Ragged *r, uint32_t t,
                         const LstmState *first, MatOut h, const Cache *k) {
    uint32_t row, n, at = r->start[t], alive = ragged_alive(r, t);
    size_t   hidden = l.hidden, wide = 4 * hidden;
    step_before(l, r, t, &row, &n);
    float *before = k->before + at * hidden, *gates = k->gates + at * wide;
    mat_copy(n, hidden, mat(h.at + row * h.ld, h.ld), mat_out(before, hidden));
    if (first != NULL)
        mat_copy(alive - n, hidden, mat(first->h + n * hidden, hidden),
                 mat_out(before + n * hidden, hidden));
    else
        memset(before + n * hidden, 0, (alive - n) * hidden * sizeof *before);
    mat_mul(first ? alive : n, wide, hidden, mat(before, hidden), mat(w + l.in * wide, wide), 1,
            mat_out(gates, wide));
    for (uint32_t i = 0; i < alive; i++)
        lstm_cell_forward(hidden, w + (l.in + hidden) * wide, gates + i * wide,
                          c_before(l, k, first, row, n, i), k->c + (at + i) * hidden,
                          k->tanh_c + (at + i) * hidden, h.at + (at + i) * h.ld);
}

static void save_last(Lstm l, const Ragged *r, const LstmState *first, MatOut h,
                      const LstmState *last, const Cache *k) {
    size_t bytes = l.hidden * sizeof(float);
    for (uint32_t i = 0; i < r->n_seqs; i++) {
        size_t to = (size_t)i * l.hidden;
        if (r->len[i] > 0) {
            size_t row = (size_t)r->start[l.backwards ? 0 : r->len[i] - 1] + i;
            memcpy(last->h + to, h.at + row * h.ld, bytes);
            memcpy(last->c + to, k->c + row * l.hidden, bytes);
        } else if (first != NULL) {
            memmove(last->h + to, first->h + to, bytes);
            memmove(last->c + to, first->c + to, bytes);
        } else {
            memset(last->h + to, 0, bytes);
            memset(last->c + to, 0, bytes);
        }
    }
}

void lstm_forward(Lstm l, const float *w, const Ragged *r, Mat x, const LstmState *first, MatOut h,
                  const LstmState *last, float *cache) {
    Cache  k = cache_of(l, r, cache);
    size_t wide = 4 * (size_t)l.hidden;
    memset(k.zero, 0, l.hidden * sizeof *k.zero);
    mat_mul(r->n_rows, wide, l.in, x, mat(w, wide), 0, mat_out(k.gates, wide));
    for (uint32_t turn = 0; turn < r->n_steps; turn++)
        step_forward(l, w, r, step_at(l, r, turn), first, h, &k);
    if (last != NULL) save_last(l, r, first, h, last, &k);
}

static void step_backward(Lstm l, const Ragged *r, uint32_t t, const LstmState *first, Mat dh,
                          const Cache *k) {
    uint32_t row, n, at = r->start[t], alive = ragged_alive(r, t);
    size_t   hidden = l.hidden, wide = 4 * hidden;
    step_before(l, r, t, &row, &n);
    for (uint32_t i = 0; i < alive; i++)
        lstm_cell_backward(hidden, k->gates + (at + i) * wide, c_before(l, k, first, row, n, i),
                           k->tanh_c + (at + i) * hidden, dh.at + (at + i) * dh.ld,
                           k->dh + i * hidden, k->dc + i * hidden);
    mat_mul(alive, hidden, wide, mat(k->gates + at * wide, wide), mat(k->wh_t, hidden), 0,
            mat_out(k->dh, hidden));
}

static void start_carried(Lstm l, const Ragged *r, const LstmState *dlast, const Cache *k) {
    size_t bytes = (size_t)r->n_seqs * l.hidden * sizeof(float);
    if (dlast != NULL) {
        memcpy(k->dh, dlast->h, bytes);
        memcpy(k->dc, dlast->c, bytes);
    } else {
        memset(k->dh, 0, bytes);
        memset(k->dc, 0, bytes);
    }
}

void lstm_backward(Lstm l, const float *w, float *gw, const Ragged *r, Mat x,
                   const LstmState *first, Mat dh, const LstmState *dlast, MatOut dx,
                   const LstmState *dfirst, float *cache) {
    Cache  k = cache_of(l, r, cache);
    size_t hidden = l.hidden, wide = 4 * hidden, rows = r->n_rows;
    start_carried(l, r, dlast, &k);
    mat_transpose(hidden, wide, mat(w + l.in * wide, wide), mat_out(k.wh_t, hidden));
    for (uint32_t turn = r->n_steps; turn-- > 0;)
        step_backward(l, r, step_at(l, r, turn), first, dh, &k);
    if (dfirst != NULL) {
        memcpy(dfirst->h, k.dh, r->n_seqs * hidden * sizeof(float));
        memcpy(dfirst->c, k.dc, r->n_seqs * hidden * sizeof(float));
    }
    Mat gates = mat(k.gates, wide);
    if (gw != NULL) {
        mat_mul_tn(l.in, wide, rows, x, gates, 1, mat_out(gw, wide));
        mat_mul_tn(hidden, wide, rows, mat(k.before, hidden), gates, 1,
                   mat_out(gw + l.in * wide, wide));
        mat_add_rows(rows, wide, gates, gw + (l.in + hidden) * wide);
    }
    if (dx.at != NULL) mat_mul_nt(rows, l.in, wide, gates, mat(w, wide), 1, dx);
}
