#include <math.h>

#include "chip/map.h"

static double bytes(double elements, int bits) { return elements * bits / 8; }

static double energy(const Shape *s, const Unit *u, const Map *m, const Cost *c) {
    return shape_macs(s) * u->mac_pj + m->in_inputs * u->input_pj + m->in_weights * u->weight_pj +
           m->in_sums * u->sum_pj + m->sent * u->hop_pj + c->buffer_bytes * u->buffer_pj +
           (c->read_bytes + c->write_bytes) * u->memory_pj;
}

// Arithmetic, the shared buffer and memory work at once; what of the shorter is not hidden behind
// the longer is added.
static Cost price(const Shape *s, const Unit *u, const Map *m) {
    double least_in = shape_inputs(s), spilled = bytes(m->spilled, u->sum_bits);
    Cost   c = {.mapping = m->how};
    c.read_bytes = bytes(m->weights + fmax(m->inputs, least_in), u->word_bits) + spilled / 2;
    c.write_bytes = bytes(m->outputs, u->word_bits) + spilled / 2;
    c.buffer_bytes = bytes(m->buffer_words, u->word_bits) + bytes(m->buffer_sums, u->sum_bits);
    c.element_bytes =
        bytes(m->in_inputs + m->in_weights, u->word_bits) + bytes(m->in_sums, u->sum_bits);
    c.array_cycles = m->array_cycles / u->efficiency;
    c.buffer_cycles = c.buffer_bytes / (u->buffer_port * u->buffer_efficiency);
    c.memory_cycles = (c.read_bytes + c.write_bytes) / u->port;
    double busy = fmax(c.array_cycles, c.buffer_cycles);
    c.cycles = fmax(busy, c.memory_cycles) + (1 - u->overlap) * fmin(busy, c.memory_cycles);
    c.bytes_cycle = (c.read_bytes + c.write_bytes) / c.cycles;
    c.utilization = shape_macs(s) / unit_macs(u) / c.cycles;
    c.energy_pj = energy(s, u, m, &c);
    return c;
}

// A mapping that is a little quicker but moves much more is no gain where memory is shared: a small
// part of the memory's time counts on top.
static double score(const Cost *c) { return c->cycles + COST_TRAFFIC * c->memory_cycles; }

static int order(double a, double b) { return (a > b) - (a < b); }

static bool quicker(const Cost *a, const Cost *b) {
    int by = order(score(a), score(b));
    if (by == 0) by = order(a->energy_pj, b->energy_pj);
    return by < 0;
}

// The least traffic, then the least work of the shared buffer.
static bool leaner(const Cost *a, const Cost *b) {
    int by = order(a->read_bytes + a->write_bytes, b->read_bytes + b->write_bytes);
    if (by == 0) by = order(a->buffer_bytes, b->buffer_bytes);
    if (by == 0) by = order(a->cycles, b->cycles);
    return by < 0;
}

void map_offer(MapSearch *x, const Map *m) {
    Cost c = price(x->s, x->u, m);
    bool better = x->u->lean ? leaner(&c, &x->best) : quicker(&c, &x->best);
    if (isinf(x->best.cycles) || better) x->best = c;
}

bool map_hopeless(const MapSearch *x, double array_cycles) {
    if (x->u->lean || isinf(x->best.cycles)) return false;
    Cost   least = {.memory_cycles = x->memory_cycles};
    double array = array_cycles / x->u->efficiency;
    least.cycles = fmax(array, x->memory_cycles);
    double gain = score(&x->best) - score(&least);
    return gain < 0 || (gain <= 0 && array <= x->memory_cycles);
}

Cost cost_of(const Shape *s, const Unit *u) {
    double    least = shape_inputs(s) + shape_weights(s) + shape_outputs(s);
    MapSearch x = {s, u, bytes(least, u->word_bits) / u->port, {.cycles = INFINITY}};
    if (shape_depthwise(s) && !u->depthwise) return x.best;
    switch (u->dataflow) {
    case ROW_STATIONARY: map_rows(&x); break;
    case WEIGHT_STATIONARY: map_weights(&x); break;
    case OUTPUT_STATIONARY: map_outputs(&x); break;
    }
    return x.best;
}
