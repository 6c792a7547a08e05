// Weight stationary. An element multiplies `lanes` inputs with the weights of `vectors` output
// channels each cycle; elements side by side take other output channels or other input channels,
// whose sums are added. A weight stays in its register while outputs go by, as many as the
// element's sums allow. Weights wait in the elements' own buffers and do not pass through the
// shared one, which has the inputs and, while input channels come in several parts, the sums. A
// depthwise convolution gives each output channel one input: one lane of each vector works.
#include "chip/map.h"
#include "chip/tile.h"

typedef struct Weights {
    MapSearch *x;
    Shape      s;  // of one group; of depthwise ones all, as if they were one
    bool       depthwise;
    int64_t    lanes, k, c;       // that work in an element; elements over channels out and in
    int64_t    parts_k, parts_c;  // of the channels, each as wide as the array
    double     array_cycles;
} Weights;

static double word(const Unit *u) { return u->word_bits / 8.0; }
static double sum(const Unit *u) { return u->sum_bits / 8.0; }

// Inputs that an element reads again because it cannot keep the rows of a window.
static double rereads(const Weights *z, const Tile *t) {
    const Shape *s = &z->s;
    double       mine = (double)map_up(t->c, z->c) * (double)(s->r * s->w) * word(z->x->u);
    return mine <= z->x->u->input_bytes || s->r <= s->stride_h ? 1
                                                               : (double)s->r / (double)s->stride_h;
}

static void offer(const Weights *z, const Tile *t, const TileMoves *moves) {
    const Shape *s = &z->s;
    const Unit  *u = z->x->u;
    double       groups = z->depthwise ? 1 : (double)z->x->s->groups;
    double       macs = shape_macs(z->x->s), places = (double)s->p * (double)s->q;
    double       entries = (double)u->sum_bytes / (sum(u) * u->vectors);
    double       rounds_c = (double)map_up(s->c, t->c);
    Map          m = {.how = {.split_k = z->k,
                              .split_c = z->c,
                              .split_p = 1,
                              .split_q = 1,
                              .tile_n = t->n,
                              .tile_k = t->k,
                              .tile_c = t->c,
                              .tile_p = t->p,
                              .element_k = map_up(t->k, z->k),
                              .element_c = map_up(t->c, z->c)},
                      .array_cycles = z->array_cycles,
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
    m.sent = m.buffer_words + m.buffer_sums + m.weights;
    map_offer(z->x, &m);
}

static void offer_orders(const Weights *z, Tile t) {
    const Unit *u = z->x->u;
    TileRoom    room = {u->buffer_bytes, word(u), sum(u), z->depthwise};
    for (TileOrder o = 0; o < TILE_ORDERS; o++) {
        TileMoves moves;
        if (tile_fit(&z->s, &room, o, &t, &moves)) offer(z, &t, &moves);
    }
}

// Tiles are whole parts; of those that need as many rounds the smallest is enough.
static void search_tiles(const Weights *z) {
    const Shape *s = &z->s;
    const Unit  *u = z->x->u;
    double       each = (double)u->vectors * (double)z->lanes * (double)(s->r * s->s) * word(u);
    for (int64_t i = z->parts_k; i > 0; i = map_next(z->parts_k, i))
        for (int64_t j = z->parts_c; j > 0; j = map_next(z->parts_c, j)) {
            if (map_hopeless(z->x, z->array_cycles)) return;
            if ((double)i * (double)j * each > u->weight_bytes) continue;
            offer_orders(z, (Tile){.k = map_least(i * z->k * u->vectors, s->k),
                                   .c = map_least(j * z->c * z->lanes, s->c)});
        }
}

void map_weights(MapSearch *x) {
    const Unit *u = x->u;
    int64_t     elements = (int64_t)u->rows * u->cols;
    Weights     z = {.x = x, .s = *x->s, .depthwise = shape_depthwise(x->s), .lanes = u->lanes};
    z.s.groups = 1;
    if (z.depthwise) {
        z.s.k = x->s->groups * x->s->k;
        z.lanes = 1;
    }
    double  places = (double)(z.s.r * z.s.s) * (double)z.s.n * (double)(z.s.p * z.s.q);
    int64_t all_k = map_up(z.s.k, u->vectors), all_c = map_up(z.s.c, z.lanes);
    for (z.k = map_fit(all_k, elements); z.k > 0; z.k = map_next(all_k, z.k))
        for (z.c = map_fit(all_c, elements / z.k); z.c > 0; z.c = map_next(all_c, z.c)) {
            z.parts_k = map_up(z.s.k, z.k * u->vectors);
            z.parts_c = map_up(z.s.c, z.c * z.lanes);
            z.array_cycles = (double)z.parts_k * (double)z.parts_c * places *
                             (z.depthwise ? 1 : (double)x->s->groups);
            if (!map_hopeless(x, z.array_cycles)) search_tiles(&z);
        }
}
