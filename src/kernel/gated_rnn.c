#include "kernel/gated_rnn.h"

#include <string.h>

#include "kernel/blocking.h"

GatedRnnPlan gated_rnn_plan(const GatedRnnShape *s, uint32_t lanes) {
    GatedRnnPlan p = {.blocks = (s->hidden + lanes - 1) / lanes};
    p.padded = p.blocks * lanes;
    p.gates = s->kind == GATED_RNN_LSTM ? 4 : s->kind == GATED_RNN_GRU ? 3 : 1;
    p.columns = p.gates * p.padded;
    p.late = s->kind == GATED_RNN_GRU ? p.padded : 0;
    p.early = p.columns - p.late;
    p.r = (size_t)p.columns * s->input;
    p.bias = p.r + (size_t)p.columns * s->hidden;
    p.late_bias = p.bias + p.columns;
    p.peep = p.late_bias + p.late;
    p.stride = round_to_lines(p.peep + (s->peepholes ? 3 * (size_t)p.padded : 0));
    return p;
}

size_t gated_rnn_pack_bytes(const GatedRnnShape *s, const Isa *isa) {
    return gated_rnn_plan(s, isa->lanes).stride * s->directions * sizeof(float);
}

// Position of the columns of one block of one gate, in vectors.
static uint32_t place(const GatedRnnPlan *p, uint32_t lanes, uint32_t block, uint32_t gate) {
    uint32_t together = p->late == 0 ? p->gates : p->gates - 1;
    return gate < together ? block * together + gate : p->early / lanes + block;
}

// Packs m [g h][k] to panels of columns.
static void pack_matrix(const GatedRnnShape *s, const GatedRnnPlan *p, const Isa *isa,
                        const float *m, uint32_t k, float *out) {
    uint32_t lanes = isa->lanes;
    for (uint32_t b = 0; b < p->blocks; b++)
        for (uint32_t g = 0; g < p->gates; g++) {
            const float *from = m + ((size_t)g * s->hidden + (size_t)b * lanes) * k;
            float       *to = out + (size_t)place(p, lanes, b, g) * k * lanes;
            gemm_pack(min_u32(lanes, s->hidden - b * lanes), k, from, k, true, 1, isa, to);
        }
}

// b [2 g h]: input and recurrent biases are summed, except for a GRU's last gate with
// linear_before_reset, where the reset gate scales the recurrent part.
static void pack_bias(const GatedRnnShape *s, const GatedRnnPlan *p, uint32_t lanes, const float *b,
                      float *out) {
    size_t gates = (size_t)p->gates * s->hidden;
    for (uint32_t i = 0; i < gates; i++) {
        uint32_t g = i / s->hidden, j = i % s->hidden;
        bool     apart = s->linear_before_reset && g == 2 && s->kind == GATED_RNN_GRU;
        size_t   at = (size_t)place(p, lanes, j / lanes, g) * lanes + j % lanes;
        out[p->bias + at] = apart ? b[i] : b[i] + b[gates + i];
        if (apart) out[p->late_bias + j] = b[gates + i];
    }
}

void gated_rnn_pack(const GatedRnnShape *s, const GatedRnnWeights *w, const Isa *isa, float *out) {
    const GatedRnnPlan p = gated_rnn_plan(s, isa->lanes);
    size_t             gates = (size_t)p.gates * s->hidden;
    memset(out, 0, gated_rnn_pack_bytes(s, isa));
    for (uint32_t d = 0; d < s->directions; d++, out += p.stride) {
        pack_matrix(s, &p, isa, w->w + d * gates * s->input, s->input, out);
        pack_matrix(s, &p, isa, w->r + d * gates * s->hidden, s->hidden, out + p.r);
        if (w->b != NULL) pack_bias(s, &p, isa->lanes, w->b + (size_t)2 * d * gates, out);
        for (uint32_t i = 0; i < 3 && s->peepholes && w->p != NULL; i++)
            memcpy(out + p.peep + (size_t)i * p.padded, w->p + (3 * (size_t)d + i) * s->hidden,
                   s->hidden * sizeof(float));
    }
}

GatedRnnScratch gated_rnn_scratch_layout(const GatedRnnShape *s, const Version *v,
                                         const GatedRnnPlan *p, uint32_t rows) {
    GatedRnnScratch r = {0};
    size_t          state = round_to_lines((size_t)p->padded * rows);
    r.h = round_to_lines((size_t)min_u32(v->rows, s->steps) * rows * p->columns);
    r.c = r.h + state;
    r.late = r.c + state;
    r.end = r.late + (s->kind == GATED_RNN_GRU ? state : 0);
    return r;
}

// One task per sequence and direction; neighbouring tasks of a part share the weights.
uint32_t gated_rnn_tasks(const GatedRnnShape *s, const Isa *isa, const Version *v) {
    (void)isa;
    (void)v;
    return s->directions * s->batch;
}

size_t gated_rnn_scratch(const GatedRnnShape *s, const Isa *isa, const Version *v) {
    const GatedRnnPlan p = gated_rnn_plan(s, isa->lanes);
    return gated_rnn_scratch_layout(s, v, &p, s->batch).end * sizeof(float);
}

// Steps per block such that the input projections of a block take `bytes`.
static Version with_share(const GatedRnnShape *s, const Isa *isa, size_t bytes) {
    const GatedRnnPlan p = gated_rnn_plan(s, isa->lanes);
    size_t             step = (size_t)max_u32(p.columns, 1) * max_u32(s->batch, 1) * sizeof(float);
    size_t             fits = bytes / step < UINT16_MAX ? bytes / step : UINT16_MAX;
    uint32_t           blocks = ceil_div(s->steps, max_u32((uint32_t)fits, 8));
    uint32_t           rows = ceil_div(s->steps, max_u32(blocks, 1));
    return (Version){.algo = ALGO_RNN, .split = SPLIT_ROWS, .rows = (uint16_t)max_u32(rows, 1)};
}

uint32_t gated_rnn_versions(const GatedRnnShape *s, const Isa *isa, const CacheSizes *caches,
                            Version *out, uint32_t max) {
    static const uint8_t shares[] = {4, 1, 16};
    uint32_t             n = 0;
    for (uint32_t i = 0; i < sizeof shares && n < max; i++)
        version_add(with_share(s, isa, caches->l2 / shares[i]), out, &n, max);
    return n;
}

Traffic gated_rnn_traffic(const GatedRnnShape *s, const Isa *isa, const Version *v,
                          const CacheSizes *caches, uint32_t parts) {
    const GatedRnnPlan p = gated_rnn_plan(s, isa->lanes);
    size_t             scratch = gated_rnn_scratch(s, isa, v), r = (p.bias - p.r) * sizeof(float);
    size_t             held = r + scratch / max_u32(min_u32(parts, s->batch), 1);
    size_t numbers = (size_t)s->steps * s->batch * (s->input + (size_t)s->directions * s->hidden);
    size_t moved = numbers * sizeof(float) + gated_rnn_pack_bytes(s, isa);
    // Recurrent weights that do not stay in L2 are reread every step.
    if (held > caches->l2) moved += r * s->steps * s->directions;
    return (Traffic){held > caches->l2 ? r * s->directions : 0, moved};
}
