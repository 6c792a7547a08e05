#include "chip/cost.h"

#include <math.h>

static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Elements split over output and input channels; depthwise uses one lane of each vector.
static double weight_cycles(const Shape *s, const Unit *u) {
    int64_t elements = (int64_t)u->rows * u->cols, best = INT64_MAX;
    if (shape_depthwise(s)) {
        double channels = (double)up(s->groups * s->k, elements * u->vectors);
        return channels * (double)(s->n * s->r * s->s) * (double)(s->p * s->q);
    }
    for (int64_t k = 1; k <= elements; k++) {
        int64_t rounds = up(s->k, k * u->vectors) * up(s->c, elements / k * u->lanes);
        if (rounds < best) best = rounds;
    }
    return (double)best * (double)(s->groups * s->n) * (double)(s->r * s->s) *
           (double)(s->p * s->q);
}

static double row_cycles(const Shape *s, const Unit *u) {
    int64_t r = s->r < u->rows ? s->r : u->rows, best = INT64_MAX;
    for (int64_t e = 1; e <= u->cols; e++) {
        int64_t sets = (u->rows / r) * (u->cols / e);
        int64_t rounds = up(s->p, e) * up(s->k * s->c, sets) * up(s->r, r);
        if (rounds < best) best = rounds;
    }
    return (double)best * (double)(s->groups * s->n) * (double)(s->q * s->s);
}

static double output_cycles(const Shape *s, const Unit *u) {
    int64_t rounds = up(s->p * s->q, u->rows) * up(s->k, u->cols);
    return (double)rounds * (double)(s->groups * s->n) * (double)(s->c * s->r * s->s);
}

static double array_cycles(const Shape *s, const Unit *u) {
    switch (u->dataflow) {
    case ROW_STATIONARY: return row_cycles(s, u);
    case WEIGHT_STATIONARY: return weight_cycles(s, u);
    default: return output_cycles(s, u);
    }
}

Cost cost_of(const Shape *s, const Unit *u) {
    double macs = shape_macs(s), word = u->word_bits / 8.0;
    if (shape_depthwise(s) && !u->depthwise) return (Cost){.cycles = INFINITY};
    Cost c = {.read_bytes = word * (shape_inputs(s) + shape_weights(s)),
              .write_bytes = word * shape_outputs(s)};
    c.buffer_bytes = c.read_bytes + c.write_bytes;
    c.register_bytes = 3 * word * macs;
    c.cycles = fmax(array_cycles(s, u), (c.read_bytes + c.write_bytes) / u->port);
    c.bytes_cycle = (c.read_bytes + c.write_bytes) / c.cycles;
    c.utilization = macs / unit_macs(u) / c.cycles;
    c.energy_pj = macs * (u->mac_pj + u->input_pj / u->vectors + u->sum_pj / u->lanes) +
                  c.buffer_bytes * u->buffer_pj + c.bytes_cycle * c.cycles * u->memory_pj;
    return c;
}
