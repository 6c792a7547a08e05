// Row stationary. A set of elements, as high as the filter and `a` wide, computes `a` rows of
// outputs: each element convolves one row of inputs with one row of weights, for q input channels
// and p output channels, and partial sums move up the column. Sets above each other compute other
// input channels (r of them, with sums added up) or other output channels, sets side by side
// other output channels (t in all). The shared buffer holds the sums of m output channels of a
// strip of e rows of n images until all input channels are added, and the inputs of these rows: of
// q r channels, which are read again for the next m, or of all. Weights are streamed to the
// elements.
#include <math.h>

#include "chip/cost/mapping.h"

typedef struct Rows {
    MappingSearch *x;
    int64_t        high, high_parts;      // rows of the filter in a set, and how often
    int64_t        wide, wide_parts;      // its columns in an element
    int64_t        words, weights, sums;  // that an element holds
    int64_t        a, r, t, q, p, e, n;
    double         array_cycles;
    bool           strict;  // by the rules that reproduce the published Eyeriss mappings
} Rows;

static int64_t holds(int bytes, int bits) { return (int64_t)bytes * 8 / bits; }

static double banks(double bytes, const UnitSpec *u) { return ceil(bytes / u->bank_bytes); }

static double sums_bytes(const Rows *z) {  // of an output channel
    return (double)(z->n * z->e) * (double)z->x->s->q * z->x->u->sum_bits / 8;
}

// Bytes of the shared buffer left for sums beside the inputs of c channels.
static double room(const Rows *z, int64_t c) {
    const Shape    *s = z->x->s;
    const UnitSpec *u = z->x->u;
    double          map = shape_touched(s, z->e);
    double          in = (double)(z->n * c) * map * u->word_bits / 8;
    double          all = floor((double)u->buffer_bytes / u->bank_bytes);
    double          left = all - banks(in, u);
    if (!z->strict || z->e >= s->p) return left * u->bank_bytes;
    double twice = all - 2 * banks(in, u);  // double buffering: the next strip is loaded meanwhile
    double one = banks((double)(z->p * z->t) * sums_bytes(z), u);
    return (twice < one && c == 1 ? left : twice) * u->bank_bytes;
}

// The most output channels with sums that fit, in whole passes; 0: none.
static int64_t most_channels(const Rows *z, double bytes) {
    const Shape *s = z->x->s;
    int64_t      pass = z->p * z->t, passes = ceil_div(s->k, pass);
    double       fit = floor(bytes / (sums_bytes(z) * (double)pass));
    if (!(fit >= 1)) return 0;
    int64_t m = fit >= (double)passes ? passes : (int64_t)fit;
    if (z->strict)
        while (m > 0 && s->k % (m * pass) != 0) m--;
    return m * pass;
}

typedef struct RowPlan {
    int64_t m, c;           // channels out and in that the shared buffer holds
    double  weights, rows;  // how often weights are read; rows of inputs that are read
} RowPlan;

static void offer(const Rows *z, const RowPlan *plan) {
    const Shape *s = z->x->s;
    double       macs = shape_macs(s), images = (double)(s->n * s->groups);
    double       in_row = images * (double)s->c * (double)s->w;
    double       passes = (double)ceil_div(s->k, z->p * z->t) * (double)z->high_parts;
    double adds = (double)ceil_div(s->c, z->q * z->r) * (double)(z->high_parts * z->wide_parts);
    MappingCounts m = {
        .mapping = {.split_k = z->t,
                    .split_c = z->r,
                    .split_p = z->a,
                    .split_q = 1,
                    .tile_n = z->n,
                    .tile_k = min_i64(plan->m, s->k),
                    .tile_c = plan->c,
                    .tile_p = z->e,
                    .element_k = z->p,
                    .element_c = z->q},
        .array_cycles = z->array_cycles,
        .weights = shape_weights(s) * plan->weights,
        .inputs = in_row * plan->rows,
        .outputs = shape_outputs(s),
        .buffer_words = in_row * (double)shape_sweep(s, z->e) * passes + 2 * shape_outputs(s),
        .buffer_sums = 2 * shape_outputs(s) * (adds - 1),
        .in_inputs = macs,
        .in_weights = macs,
        .in_sums = 2 * macs,
    };
    m.sent = m.buffer_words + m.buffer_sums + m.weights;
    if (z->x->u->buffer_weights) m.buffer_words += m.weights;
    mapping_offer(z->x, &m);
}

// Whether no finer division of the bytes needs fewer blocks of output channels.
static bool finest(const Rows *z, int64_t m, double bytes) {
    const Shape *s = z->x->s;
    double       fit = floor(bytes / sums_bytes(z));
    return m > 0 ? (double)ceil_div(s->k, m) <= ceil((double)s->k / fit) : fit < (double)z->t;
}

// Three loop orders: inputs by channel; weights stay, if elements hold all that m channels need;
// inputs stay for all output channels. False: smaller parts may be better.
static bool offer_all(const Rows *z) {
    const Shape *s = z->x->s;
    int64_t      c = min_i64(z->q * z->r, s->c), pass = min_i64(z->p * z->t, s->k);
    double       strips = (double)ceil_div(s->p, z->e) * (double)ceil_div(s->n, z->n);
    double       bytes = room(z, c);
    int64_t      m = most_channels(z, bytes);
    if (m > 0)
        offer(z,
              &(RowPlan){m, c, strips, (double)ceil_div(s->k, m) * (double)shape_sweep(s, z->e)});
    if (z->x->u->lean) return finest(z, m, bytes);
    if (m > 0 && z->q * z->r >= s->c && z->high_parts * z->wide_parts == 1)
        offer(z, &(RowPlan){pass, c, 1, (double)ceil_div(s->k, pass) * (double)s->h});
    double  left = room(z, s->c);
    int64_t all = most_channels(z, left);
    if (all > 0) offer(z, &(RowPlan){all, s->c, strips, (double)shape_sweep(s, z->e)});
    return all > 0 || (finest(z, m, bytes) && finest(z, 0, left));
}

// Fewer output channels in an element divide the shared buffer more finely, but cost it more reads:
// useless once inputs are read no more often than necessary.
static void search_element(Rows *z) {
    const Shape *s = z->x->s;
    int64_t      each = ceil_div(s->k, z->t);
    for (z->q = min_i64(min_i64(ceil_div(s->c, z->r), z->words / z->wide), z->weights / z->wide);
         z->q > 0; z->q--) {
        int64_t p = min_i64(min_i64(each, z->sums), z->weights / (z->q * z->wide));
        for (p = p > 0 ? ceil_div(each, ceil_div(each, p)) : 0; p > 0;
             p = mapping_next_part(each, p)) {
            z->p = p;
            if (offer_all(z)) break;
        }
    }
}

// How often a set computes its rows, over all strips.
static int64_t segments(const Rows *z) {
    int64_t full = z->x->s->p / z->e, rest = z->x->s->p % z->e;
    return full * ceil_div(z->e, z->a) + ceil_div(rest, z->a);
}

static double array_cycles(const Rows *z, int64_t times) {
    const Shape *s = z->x->s;
    double       images = (double)(s->n * s->groups);
    double       channels = (double)ceil_div(s->k, z->t) * (double)ceil_div(s->c, z->r);
    double       rows = (double)times * (double)z->high_parts;
    return images * channels * rows * (double)s->q * (double)s->s;
}

static void search_images(Rows *z) {
    int64_t all = z->x->s->n;
    for (z->n = all; z->n > 0 && !mapping_cannot_improve(z->x, z->array_cycles);
         z->n = mapping_next_part(all, z->n))
        search_element(z);
}

// For each number of strips the lowest strip, and higher ones that sets divide better.
static void search_strips(Rows *z) {
    int64_t p = z->x->s->p;
    for (int64_t even = p; even > 0; even = mapping_next_part(p, even)) {
        int64_t fewest = INT64_MAX;
        for (z->e = even; z->e <= p && ceil_div(p, z->e) == ceil_div(p, even); z->e++) {
            int64_t times = segments(z);
            bool    odd = z->e % z->a != 0 && z->e < p;
            if (times >= fewest || (z->strict && odd)) continue;
            fewest = times;
            z->array_cycles = array_cycles(z, times);
            search_images(z);
            if (times == ceil_div(p, z->a)) break;
        }
    }
}

typedef void SetFn(Rows *z, int64_t *most);

static void count_active(Rows *z, int64_t *most) {
    int64_t active = z->high * z->a * z->r * z->t;
    if (active > *most) *most = active;
}

static void search_set(Rows *z, int64_t *most) {
    if (z->strict && 10 * z->high * z->a * z->r * z->t < 9 * *most) return;
    if (!mapping_cannot_improve(z->x, array_cycles(z, ceil_div(z->x->s->p, z->a))))
        search_strips(z);
}

// The next smaller number of sets over n channels. Of those with equal rounds only the smallest
// counts, unless the number of active elements matters.
static int64_t fewer(const Rows *z, int64_t n, int64_t sets) {
    return z->strict ? sets - 1 : mapping_next_part(n, sets);
}

static int64_t most_sets(const Rows *z, int64_t n, int64_t sets) {
    return z->strict ? min_i64(sets, n) : mapping_part(n, sets);
}

// Large sets and many of them first: later ones are mostly skipped by mapping_cannot_improve.
static void each_set(Rows *z, SetFn *fn, int64_t *most) {
    const Shape    *s = z->x->s;
    const UnitSpec *u = z->x->u;
    int64_t         above = u->rows / z->high;
    for (z->a = min_i64(s->p, u->cols); z->a > 0; z->a--)
        for (z->r = most_sets(z, s->c, above); z->r > 0; z->r = fewer(z, s->c, z->r)) {
            z->t = most_sets(z, s->k, above / z->r * (u->cols / z->a));
            for (; z->t > 0; z->t = fewer(z, s->k, z->t)) fn(z, most);
        }
}

void mapping_row_stationary(MappingSearch *x) {
    const Shape    *s = x->s;
    const UnitSpec *u = x->u;
    int64_t         most = 0;
    Rows            z = {.x = x,
                         .words = holds(u->input_bytes, u->word_bits),
                         .weights = holds(u->weight_bytes, u->word_bits),
                         .sums = holds(u->sum_bytes, u->sum_bits)};
    if (z.words < 1 || z.weights < 1) return;
    z.high_parts = ceil_div(s->r, u->rows);
    z.high = ceil_div(s->r, z.high_parts);
    z.wide_parts = ceil_div(s->s, min_i64(z.words, z.weights));
    z.wide = ceil_div(s->s, z.wide_parts);
    z.strict = u->lean;
    if (z.strict) each_set(&z, count_active, &most);
    each_set(&z, search_set, &most);
    if (!z.strict || !isinf(x->best.cycles)) return;
    z.strict = false;
    each_set(&z, search_set, &most);
}
