#include "learn/trunk.h"

#include <math.h>

#include "learn/act.h"
#include "learn/block.h"

static size_t dense_part(Trunk t) { return t.embed > 0 ? dense_params(trunk_dense(t)) : 0; }

size_t trunk_params(Trunk t) {
    return dense_part(t) + (t.both_ways ? 2 : 1) * lstm_params(trunk_lstm(t, false));
}

size_t trunk_cache_size(Trunk t, size_t rows, size_t seqs) {
    return (t.both_ways ? 2 : 1) * lstm_cache_size(trunk_lstm(t, false), rows, seqs);
}

void trunk_init(Trunk t, float *w, Rng *rng) {
    Lstm l = trunk_lstm(t, false);
    if (t.embed > 0) dense_init(trunk_dense(t), w, 1.414f, rng);
    w += dense_part(t);
    lstm_init(l, w, rng);
    if (t.both_ways) lstm_init(l, w + lstm_params(l), rng);
}

void trunk_forward(Trunk t, const float *w, const Ragged *r, Mat x, float *y, float *cache) {
    size_t width = trunk_width(t), base = trunk_base(t), rows = r->n_rows;
    Lstm   ahead = trunk_lstm(t, false), back = trunk_lstm(t, true);
    if (t.embed > 0) {
        dense_forward(trunk_dense(t), w, rows, x, mat_out(y, width));
        for (size_t i = 0; i < rows; i++) act_forward(ACT_RELU, base, y + i * width, y + i * width);
    } else {
        mat_copy(rows, base, x, mat_out(y, width));
    }
    w += dense_part(t);
    lstm_forward(ahead, w, r, mat(y, width), NULL, mat_out(y + base, width), NULL, cache);
    if (t.both_ways)
        lstm_forward(back, w + lstm_params(ahead), r, mat(y, width), NULL,
                     mat_out(y + base + t.hidden, width), NULL,
                     cache + lstm_cache_size(ahead, rows, r->n_seqs));
}

void trunk_backward(Trunk t, const float *w, float *gw, const Ragged *r, Mat x, const float *y,
                    float *dy, MatOut dx, float *cache) {
    size_t width = trunk_width(t), base = trunk_base(t), rows = r->n_rows, dense = dense_part(t);
    Lstm   ahead = trunk_lstm(t, false), back = trunk_lstm(t, true);
    MatOut dbase = mat_out(dy, width);
    lstm_backward(ahead, w + dense, block_after(gw, dense), r, mat(y, width), NULL,
                  mat(dy + base, width), NULL, dbase, NULL, cache);
    if (t.both_ways)
        lstm_backward(back, w + dense + lstm_params(ahead),
                      block_after(gw, dense + lstm_params(ahead)), r, mat(y, width), NULL,
                      mat(dy + base + t.hidden, width), NULL, dbase, NULL,
                      cache + lstm_cache_size(ahead, rows, r->n_seqs));
    if (t.embed > 0) {
        for (size_t i = 0; i < rows; i++)
            act_backward(ACT_RELU, base, y + i * width, dy + i * width, dy + i * width);
        dense_backward(trunk_dense(t), w, gw, rows, x, mat(dy, width), dx);
    } else if (dx.at != NULL) {
        mat_copy(rows, base, mat(dy, width), dx);
    }
}
