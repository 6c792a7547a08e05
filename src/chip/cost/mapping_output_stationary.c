// Output stationary. Each element computes one output at a time and keeps its sum. The array covers
// rows and columns of one output channel's map; neighbours pass inputs to each other while a
// weight is broadcast; or output channels replace rows, columns or both. The shared buffer holds
// the inputs, a second one the weights.
#include "chip/cost/mapping.h"

typedef struct Outputs {
    MappingSearch *x;
    Shape          s;                     // of one group
    int64_t        rows, cols, channels;  // of outputs computed in parallel
    double         array_cycles;
} Outputs;

static double word(const UnitSpec *u) { return u->word_bits / 8.0; }

// Inputs that the array reads from the shared buffer, over all rounds.
static double array_inputs(const Outputs *z) {
    const Shape *s = &z->s;
    int64_t      h = shape_span(z->rows, s->r, s->stride_h, s->dilation_h, s->h);
    int64_t      w = shape_span(z->cols, s->s, s->stride_w, s->dilation_w, s->w);
    double       rounds = (double)ceil_div(s->p, z->rows) * (double)ceil_div(s->q, z->cols) *
                    (double)ceil_div(s->k, z->channels);
    return rounds * (double)(s->n * s->c) * (double)(h * w);
}

static void offer(const Outputs *z, const LoopTile *t, const LoopTileTraffic *moves) {
    const Shape  *s = &z->s;
    double        groups = (double)z->x->s->groups, macs = shape_macs(z->x->s);
    double        rounds_c = (double)ceil_div(s->c, t->c);
    double        places = (double)(z->rows * z->cols);
    MappingCounts m = {.mapping = {.split_k = z->channels,
                                   .split_c = 1,
                                   .split_p = z->rows,
                                   .split_q = z->cols,
                                   .tile_n = t->n,
                                   .tile_k = t->k,
                                   .tile_c = t->c,
                                   .tile_p = t->p,
                                   .element_k = 1,
                                   .element_c = 1},
                       .array_cycles = z->array_cycles,
                       .weights = groups * moves->weights,
                       .inputs = groups * moves->inputs,
                       .outputs = groups * moves->outputs,
                       .spilled = groups * moves->spilled,
                       .in_inputs = macs,
                       .in_weights = macs / places,
                       .in_sums = 2 * macs};
    m.buffer_words = groups * array_inputs(z) + 2 * m.outputs;
    m.buffer_sums = 2 * (rounds_c - 1) * m.outputs;
    m.sent = m.buffer_words + m.in_weights;
    mapping_offer(z->x, &m);
}

static void offer_orders(const Outputs *z, LoopTile t) {
    const UnitSpec *u = z->x->u;
    LoopTileRoom    room = {u->buffer_bytes, word(u), u->sum_bits / 8.0, false};
    for (LoopOrder o = 0; o < LOOP_ORDERS; o++) {
        LoopTileTraffic moves;
        if (loop_tile_fit(&z->s, &room, o, &t, &moves)) offer(z, &t, &moves);
    }
}

static void search_tiles(const Outputs *z) {
    const Shape    *s = &z->s;
    const UnitSpec *u = z->x->u;
    int64_t         parts = ceil_div(s->k, z->channels);
    double          all = (double)u->rows * u->cols * u->weight_bytes;
    for (int64_t i = parts; i > 0; i = mapping_next_part(parts, i))
        for (int64_t c = s->c; c > 0; c = mapping_next_part(s->c, c)) {
            if (mapping_cannot_improve(z->x, z->array_cycles)) return;
            LoopTile t = {.k = min_i64(i * z->channels, s->k), .c = c};
            if ((double)(t.k * t.c) * (double)(s->r * s->s) * word(u) <= all) offer_orders(z, t);
        }
}

void mapping_output_stationary(MappingSearch *x) {
    const UnitSpec *u = x->u;
    for (int way = 0; way < 4; way++) {
        bool    over_rows = (way & 1) != 0, over_cols = (way & 2) != 0;
        Outputs z = {.x = x, .s = *x->s, .rows = u->rows, .cols = u->cols, .channels = 1};
        z.s.groups = 1;
        if (over_rows) z.channels *= u->rows, z.rows = 1;
        if (over_cols) z.channels *= u->cols, z.cols = 1;
        double channels = (double)ceil_div(z.s.k, z.channels) * (double)z.s.c;
        double places = (double)ceil_div(z.s.p, z.rows) * (double)ceil_div(z.s.q, z.cols);
        double images = (double)z.s.n * (double)x->s->groups;
        z.array_cycles = channels * places * images * (double)(z.s.r * z.s.s);
        if (!mapping_cannot_improve(x, z.array_cycles)) search_tiles(&z);
    }
}
