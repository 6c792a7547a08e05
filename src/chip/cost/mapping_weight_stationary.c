// Weight stationary. An element multiplies `lanes` inputs with the weights of `vectors` output
// channels each cycle; elements side by side compute other output channels or other input channels,
// with sums added up. A weight stays in its register for as many outputs as the element's sum
// buffer holds. Weights are kept in the elements' buffers and bypass the shared one, which holds
// the inputs and, if input channels come in several parts, the sums. In a depthwise convolution
// each output channel has one input: one lane of each vector works; with `spread`, elements that
// channels leave idle compute other output rows of the same channels with copies of their weights.
#include "chip/cost/mapping.h"

typedef struct WeightSplit {
    MappingSearch *x;
    Shape          s;  // of one group; of a depthwise layer all groups as one
    bool           depthwise;
    int64_t        lanes, k, c;       // active lanes; elements over channels out and in
    int64_t        p;                 // elements over output rows
    int64_t        parts_k, parts_c;  // of the channels, each as wide as the array
    double         array_cycles;
} WeightSplit;

static double word(const UnitSpec *u) { return u->word_bits / 8.0; }
static double sum(const UnitSpec *u) { return u->sum_bits / 8.0; }

// Factor by which an element reads inputs again if it cannot hold the rows of a window.
static double rereads(const WeightSplit *z, const LoopTile *t) {
    const Shape *s = &z->s;
    double       mine = (double)ceil_div(t->c, z->c) * (double)(s->r * s->w) * word(z->x->u);
    return mine <= z->x->u->input_bytes || s->r <= s->stride_h ? 1
                                                               : (double)s->r / (double)s->stride_h;
}

// Each strip of rows in the buffer is shared by the elements on its own.
static double strip_cycles(const WeightSplit *z, int64_t strip) {
    int64_t rows = z->s.p / strip * ceil_div(strip, z->p) + ceil_div(z->s.p % strip, z->p);
    return z->array_cycles / (double)ceil_div(z->s.p, z->p) * (double)rows;
}

static void offer(const WeightSplit *z, const LoopTile *t, const LoopTileTraffic *moves) {
    const Shape    *s = &z->s;
    const UnitSpec *u = z->x->u;
    double          groups = z->depthwise ? 1 : (double)z->x->s->groups;
    double          macs = shape_macs(z->x->s), places = (double)s->p * (double)s->q;
    double          entries = (double)u->sum_bytes / (sum(u) * u->vectors);
    double          rounds_c = (double)ceil_div(s->c, t->c);
    MappingCounts   m = {.mapping = {.split_k = z->k,
                                     .split_c = z->c,
                                     .split_p = z->p,
                                     .split_q = 1,
                                     .tile_n = t->n,
                                     .tile_k = t->k,
                                     .tile_c = t->c,
                                     .tile_p = t->p,
                                     .element_k = ceil_div(t->k, z->k),
                                     .element_c = ceil_div(t->c, z->c)},
                         .array_cycles = strip_cycles(z, t->p),
                         .weights = groups * moves->weights,
                         .inputs = groups * moves->inputs,
                         .outputs = groups * moves->outputs,
                         .spilled = groups * moves->spilled,
                         .in_inputs = z->depthwise ? macs : macs / u->vectors,
                         .in_weights = macs / (entries < places ? entries : places),
                         .in_sums = 2 * macs / (double)z->lanes};
    if (z->depthwise) m.inputs *= (double)s->k;
    m.buffer_words = m.inputs * rereads(z, t) + 2 * m.outputs;
    m.buffer_sums = 2 * (rounds_c - 1) * m.outputs;
    m.sent = m.buffer_words + m.buffer_sums + m.weights * (double)z->p;
    mapping_offer(z->x, &m);
}

static void offer_orders(const WeightSplit *z, LoopTile t) {
    const UnitSpec *u = z->x->u;
    LoopTileRoom    room = {u->buffer_bytes, word(u), sum(u), z->depthwise};
    for (LoopOrder o = 0; o < LOOP_ORDERS; o++) {
        LoopTileTraffic moves;
        if (loop_tile_fit(&z->s, &room, o, &t, &moves)) offer(z, &t, &moves);
    }
}

// Tiles are whole parts; of those with equal rounds the smallest is enough.
static void search_tiles(const WeightSplit *z) {
    const Shape    *s = &z->s;
    const UnitSpec *u = z->x->u;
    double          each = (double)u->vectors * (double)z->lanes * (double)(s->r * s->s) * word(u);
    for (int64_t i = z->parts_k; i > 0; i = mapping_next_part(z->parts_k, i))
        for (int64_t j = z->parts_c; j > 0; j = mapping_next_part(z->parts_c, j)) {
            if (mapping_cannot_improve(z->x, z->array_cycles)) return;
            if ((double)i * (double)j * each > u->weight_bytes) continue;
            offer_orders(z, (LoopTile){.k = min_i64(i * z->k * u->vectors, s->k),
                                       .c = min_i64(j * z->c * z->lanes, s->c)});
        }
}

void mapping_weight_stationary(MappingSearch *x) {
    const UnitSpec *u = x->u;
    int64_t         elements = (int64_t)u->rows * u->cols;
    WeightSplit     z = {.x = x, .s = *x->s, .depthwise = shape_depthwise(x->s), .lanes = u->lanes};
    z.s.groups = 1;
    if (z.depthwise) {
        z.s.k = x->s->groups * x->s->k;
        z.lanes = 1;
    }
    double  along = (double)(z.s.r * z.s.s) * (double)z.s.n * (double)z.s.q;
    int64_t all_k = ceil_div(z.s.k, u->vectors), all_c = ceil_div(z.s.c, z.lanes);
    for (z.k = mapping_part(all_k, elements); z.k > 0; z.k = mapping_next_part(all_k, z.k))
        for (z.c = mapping_part(all_c, elements / z.k); z.c > 0;
             z.c = mapping_next_part(all_c, z.c)) {
            int64_t idle = z.depthwise && u->spread ? elements / (z.k * z.c) : 1;
            z.p = mapping_part(z.s.p, idle);
            double places = along * (double)ceil_div(z.s.p, z.p);
            z.parts_k = ceil_div(z.s.k, z.k * u->vectors);
            z.parts_c = ceil_div(z.s.c, z.c * z.lanes);
            z.array_cycles = (double)z.parts_k * (double)z.parts_c * places *
                             (z.depthwise ? 1 : (double)x->s->groups);
            if (!mapping_cannot_improve(x, z.array_cycles)) search_tiles(&z);
        }
}
