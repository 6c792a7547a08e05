#include "learn/actor_plain.h"

#include <string.h>

#include "base/fpu.h"
#include "learn/act.h"
#include "learn/lstm_cell.h"
#include "learn/plain.h"

static PlainView view(Mat x) { return (PlainView){x.at, x.ld, 1}; }

static const float *dense(Dense d, const float *w, uint32_t rows, Mat x, MatOut y) {
    mat_set_rows(rows, d.out, w + (size_t)d.in * d.out, y);
    plain_product(rows, d.out, d.in, view(x), view(mat(w, d.out)), y);
    return w + dense_params(d);
}

// scratch: gates [items][4 hidden], c of two steps, tanh c. Gates start at 0: bias comes last.
static const float *lstm(Lstm l, const float *w, uint32_t items, Mat x, MatOut h, float *scratch) {
    size_t       n = l.hidden, wide = 4 * n;
    const float *wh = w + l.in * wide, *b = wh + n * wide, *before;
    float       *gates = scratch, *c = gates + items * wide, *bent = c + 2 * n, *last = NULL;
    memset(scratch, 0, (items * wide + 2 * n) * sizeof *scratch);
    before = c + n;
    plain_product(items, wide, l.in, view(x), view(mat(w, wide)), mat_out(gates, wide));
    for (uint32_t i = 0; i < items; i++) {
        uint32_t at = l.backwards ? items - 1 - i : i;
        float   *g = gates + at * wide, *out = h.at + at * h.ld, *now = c + (i & 1) * n;
        if (last != NULL) plain_row(wide, n, last, wh, g);
        lstm_cell_forward(n, b, g, before, now, bent, out);
        before = now;
        last = out;
    }
    return b + wide;
}

size_t actor_plain_scratch(Actor a, uint32_t items) {
    size_t n = a.trunk.hidden;
    return items * ((size_t)trunk_width(a.trunk) + 4 * n) + 3 * n;
}

// Where denormals are flushed differs between threads; here they always are.
void actor_plain(Actor a, const float *w, uint32_t items, const float *x, float *out,
                 float *scratch) {
    Trunk    t = a.trunk;
    size_t   width = trunk_width(t), base = trunk_base(t);
    float   *mix = scratch, *rest = scratch + items * width;
    FpuState was = fpu_flush_denormals();
    if (t.embed > 0) {
        w = dense(trunk_dense(t), w, items, mat(x, t.in), mat_out(mix, width));
        for (uint32_t i = 0; i < items; i++)
            act_forward(ACT_RELU, base, mix + i * width, mix + i * width);
    } else {
        mat_copy(items, base, mat(x, t.in), mat_out(mix, width));
    }
    w = lstm(trunk_lstm(t, false), w, items, mat(mix, width), mat_out(mix + base, width), rest);
    if (t.both_ways)
        w = lstm(trunk_lstm(t, true), w, items, mat(mix, width),
                 mat_out(mix + base + t.hidden, width), rest);
    dense(actor_head(a), w, items, mat(mix, width), mat_out(out, a.actions));
    act_forward(ACT_TANH, (size_t)items * a.actions, out, out);
    fpu_restore(was);
}
