#include "chip/cost/cost.h"

#include <math.h>
#include <string.h>

#include "chip/cost/layer_cost_table.h"
#include "chip/cost/mapping.h"

static double bytes(double elements, int bits) { return elements * bits / 8; }

static double energy(const Shape *s, const UnitSpec *u, const MappingCounts *m, const Cost *c) {
    return shape_macs(s) * u->mac_pj + m->in_inputs * u->input_pj + m->in_weights * u->weight_pj +
           m->in_sums * u->sum_pj + m->sent * u->hop_pj + c->buffer_bytes * u->buffer_pj +
           (c->read_bytes + c->write_bytes) * u->memory_pj;
}

// Array, shared buffer and memory work in parallel; the part of the shorter time that does not
// overlap is added.
static Cost price(const Shape *s, const UnitSpec *u, const MappingCounts *m) {
    double least_in = shape_inputs(s), spilled = bytes(m->spilled, u->sum_bits);
    Cost   c = {.mapping = m->mapping};
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
    c.utilization = shape_macs(s) / unit_spec_macs(u) / c.cycles;
    c.energy_pj = energy(s, u, m, &c);
    return c;
}

// On a shared memory a slightly faster mapping with much more traffic is no gain: a small share of
// the memory time is added.
static double score(const Cost *c) { return c->cycles + COST_TRAFFIC * c->memory_cycles; }

static int order(double a, double b) { return (a > b) - (a < b); }

static bool faster(const Cost *a, const Cost *b) {
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

void mapping_offer(MappingSearch *x, const MappingCounts *m) {
    Cost c = price(x->s, x->u, m);
    bool better = x->u->lean ? leaner(&c, &x->best) : faster(&c, &x->best);
    if (isinf(x->best.cycles) || better) x->best = c;
}

bool mapping_cannot_improve(const MappingSearch *x, double array_cycles) {
    if (x->u->lean || isinf(x->best.cycles)) return false;
    Cost   least = {.memory_cycles = x->memory_cycles};
    double array = array_cycles / x->u->efficiency;
    least.cycles = fmax(array, x->memory_cycles);
    double gain = score(&x->best) - score(&least);
    return gain < 0 || (gain <= 0 && array <= x->memory_cycles);
}

Cost cost_of(const Shape *s, const UnitSpec *u) {
    double        least = shape_inputs(s) + shape_weights(s) + shape_outputs(s);
    MappingSearch x = {s, u, bytes(least, u->word_bits) / u->port, {.cycles = INFINITY}};
    if (shape_depthwise(s) && !u->depthwise) return x.best;
    switch (u->dataflow) {
    case ROW_STATIONARY: mapping_row_stationary(&x); break;
    case WEIGHT_STATIONARY: mapping_weight_stationary(&x); break;
    case OUTPUT_STATIONARY: mapping_output_stationary(&x); break;
    }
    return x.best;
}

static bool same(const Shape *a, const Shape *b) {
    Shape x = *a, y = *b;
    x.name = y.name = x.op = y.op = NULL;
    return memcmp(&x, &y, sizeof x) == 0;
}

void cost_all(const Shape *s, uint32_t n, const UnitSpec *u, Cost *out) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t seen = 0;
        while (seen < i && !same(&s[seen], &s[i])) seen++;
        out[i] = seen < i ? out[seen] : cost_of(&s[i], u);
    }
}

typedef struct Priced {  // what a network's costs are from
    const char           *network;
    const Shape          *shapes;  // [n]
    uint32_t              n;
    const Package        *package;
    const LayerCostTable *table;  // NULL: none
} Priced;

static Err price_layers(const Priced *x, Arena *a, Cost *scratch, ChipCost *out) {
    const Package *p = x->package;
    uint32_t       n = x->n;
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        const UnitSpec *u = p->kinds[k].unit;
        double          ns = 1e3 / u->clock_mhz;
        if (x->table != NULL)
            TRY(layer_cost_table_apply(x->table, x->network, x->shapes, n, u, a, scratch));
        else
            cost_all(x->shapes, n, u, scratch);
        for (uint32_t i = 0; i < n; i++)
            out[(size_t)i * p->n_kinds + k] =
                (ChipCost){.ns = (float)(scratch[i].cycles * ns),
                           .bytes_ns = (float)(scratch[i].bytes_cycle / ns),
                           .energy_pj = (float)scratch[i].energy_pj};
    }
    return ERR_OK;
}

static Err no_unit_can(const char *network, const Shape *s, const Package *p, Arena *a) {
    char *kinds = arena_str(a, "");
    for (uint32_t k = 0; k < p->n_kinds; k++)
        kinds = arena_printf(a, "%s%s%s", kinds, k > 0 ? ", " : "", p->kinds[k].unit->name);
    return err_set(ERR_CONFIG,
                   "no unit of package %s (%s) can compute layer '%s' (%s) of %s; add one that can",
                   p->name, kinds, s->name, shape_depthwise(s) ? "depthwise" : s->op, network);
}

static Err rank(const char *network, const Shape *shapes, const Package *p, Arena *a, ChipModel *m,
                float *rest, uint8_t *fastest) {
    rest[m->n_layers] = 0;
    for (uint32_t i = m->n_layers; i-- > 0;) {
        for (uint32_t k = 1; k < m->n_kinds; k++)
            if (chip_cost(m, i, k)->ns < chip_cost(m, i, fastest[i])->ns) fastest[i] = (uint8_t)k;
        float ns = chip_cost(m, i, fastest[i])->ns;
        if (isinf(ns)) return no_unit_can(network, &shapes[i], p, a);
        rest[i] = rest[i + 1] + ns;
    }
    return ERR_OK;
}

Err cost_model(const char *network, const Package *p, Arena *a, ChipModel *out) {
    return cost_model_of(network, p, NULL, a, out);
}

Err cost_model_of(const char *network, const Package *p, const LayerCostTable *t, Arena *a,
                  ChipModel *out) {
    Shape   *shapes = NULL;
    uint32_t n = 0;
    TRY(shape_list(network, 1, a, &shapes, &n));
    const char **names = arena_try_new(a, const char *, n);
    ChipCost    *costs = arena_try_new(a, ChipCost, (size_t)n * p->n_kinds);
    float       *rest = arena_try_new(a, float, (size_t)n + 1);
    uint8_t     *fastest = arena_try_new(a, uint8_t, n);
    size_t       mark = a->used;
    Cost        *scratch = arena_try_new(a, Cost, n);
    if (scratch == NULL || names == NULL || costs == NULL || rest == NULL || fastest == NULL)
        return err_set(ERR_LIMIT, "%s: no memory for %u layers", network, n);
    for (uint32_t i = 0; i < n; i++) names[i] = shapes[i].name;
    Priced priced = {network, shapes, n, p, t};
    TRY(price_layers(&priced, a, scratch, costs));
    arena_rewind(a, mark);
    ChipModel m = {.name = arena_str(a, network),
                   .n_layers = n,
                   .n_kinds = p->n_kinds,
                   .layers = names,
                   .costs = costs,
                   .rest_ns = rest,
                   .fastest = fastest};
    TRY(rank(network, shapes, p, a, &m, rest, fastest));
    *out = m;
    return ERR_OK;
}
