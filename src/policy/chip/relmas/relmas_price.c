#include "policy/chip/relmas/relmas_price.h"

#include <math.h>
#include <string.h>

enum { WARM_UP = 200, ROUNDS = 200 };

// Shares of the total price: kinds, then the memory.
typedef struct Shares {
    double   at[CHIP_KINDS + 1], sum[CHIP_KINDS + 1];
    uint32_t n;
} Shares;

static RelmasPrice price_of(const ChipSetup *s, const double *share) {
    RelmasPrice p = {.byte = (float)(share[s->n_kinds] / (double)s->bytes_ns)};
    for (uint32_t k = 0; k < s->n_kinds; k++)
        p.kind[k] = (float)(share[k] / (double)s->kinds[k].n_units);
    return p;
}

static uint32_t cheapest(const RelmasPrice *p, const ChipModel *m, uint32_t layer) {
    uint32_t best = m->fastest[layer];
    for (uint32_t k = 0; k < m->n_kinds; k++) {
        const ChipCost *c = chip_cost(m, layer, k);
        if (isfinite(c->ns) &&
            relmas_price_work(p, c, k) < relmas_price_work(p, chip_cost(m, layer, best), best))
            best = k;
    }
    return best;
}

// Adds the busy time of each resource with every layer on its cheapest kind.
static void add_use(const ChipSetup *s, const RelmasPrice *p, double *use) {
    for (uint32_t t = 0; t < s->n_tenants; t++) {
        const ChipModel *m = s->tenants[t].model;
        for (uint32_t l = 0; l < m->n_layers; l++) {
            uint32_t        k = cheapest(p, m, l);
            const ChipCost *c = chip_cost(m, l, k);
            use[k] += (double)c->ns / (double)s->kinds[k].n_units;
            use[s->n_kinds] += (double)c->ns * (double)c->bytes_ns / (double)s->bytes_ns;
        }
    }
}

static double largest(const double *x, uint32_t n) {
    double most = 0;
    for (uint32_t i = 0; i < n; i++)
        if (x[i] > most) most = x[i];
    return most;
}

// Multiplicative weights: resources that are used more become dearer. The mean over the rounds
// converges to the dual prices; single rounds oscillate about them.
static void update_prices(const ChipSetup *s, Shares *h, double step) {
    double      use[CHIP_KINDS + 1] = {0}, total = 0;
    RelmasPrice p = price_of(s, h->at);
    add_use(s, &p, use);
    double most = largest(use, h->n);
    if (!(most > 0)) return;
    for (uint32_t r = 0; r < h->n; r++) {
        h->at[r] *= 1 + step * use[r] / most;
        total += h->at[r];
    }
    for (uint32_t r = 0; r < h->n; r++) {
        h->at[r] = h->at[r] / total;
        if (h->at[r] < 1e-4) h->at[r] = 1e-4;
    }
}

RelmasPrice relmas_price_find(const ChipSetup *s) {
    Shares h = {.n = s->n_kinds + 1};
    for (uint32_t r = 0; r < h.n; r++) h.at[r] = 1.0 / h.n;
    for (uint32_t i = 0; i < WARM_UP + ROUNDS; i++) {
        update_prices(s, &h, 4.0 / (20.0 + i));
        for (uint32_t r = 0; r < h.n && i >= WARM_UP; r++) h.sum[r] += h.at[r] / ROUNDS;
    }
    return price_of(s, h.sum);
}

float relmas_log2(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    float e = (float)((int32_t)(bits >> 23) - 127);
    bits = (bits & 0x7fffffu) | 0x3f800000u;
    memcpy(&x, &bits, sizeof x);
    // log2 x = 2 / ln 2 artanh z
    float z = (x - 1.0f) / (x + 1.0f), u = z * z;
    return e + z * (2.8853901f + u * (0.9617967f + u * (0.5770780f + u * 0.4121986f)));
}

void relmas_table_carve(RelmasTable *t, const ChipSetup *s, Carve *from) {
    RelmasModel *models = carve(from, RelmasModel, s->n_tenants), none = {0};
    t->models = models;
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        const ChipModel *m = s->tenants[i].model;
        RelmasModel     *to = models == NULL ? &none : &models[i];
        size_t           all = (size_t)m->n_layers * m->n_kinds, more = (size_t)m->n_layers + 1;
        *to = (RelmasModel){.costs = m,
                            .ns = carve(from, float, all),
                            .least_ns = carve(from, float, more),
                            .rest_ns = carve(from, float, more),
                            .work = carve(from, float, all),
                            .least = carve(from, float, more),
                            .rest = carve(from, float, more),
                            .bytes = carve(from, float, more)};
    }
}

static void fill_layer(RelmasModel *to, const RelmasPrice *p, float bytes_ns, uint32_t l) {
    const ChipModel *m = to->costs;
    float            bytes = 0;
    to->least[l] = to->least_ns[l] = INFINITY;
    for (uint32_t k = 0; k < m->n_kinds; k++) {
        const ChipCost *c = chip_cost(m, l, k);
        size_t          at = (size_t)l * m->n_kinds + k;
        to->ns[at] = c->ns;
        to->work[at] = isfinite(c->ns) ? relmas_price_work(p, c, k) : INFINITY;
        if (c->bytes_ns > bytes_ns) to->ns[at] *= c->bytes_ns / bytes_ns;
        if (to->ns[at] < to->least_ns[l]) to->least_ns[l] = to->ns[at];
        if (to->work[at] >= to->least[l]) continue;
        to->least[l] = to->work[at];
        bytes = c->ns * c->bytes_ns;
    }
    to->rest_ns[l] = to->rest_ns[l + 1] + to->least_ns[l];
    to->rest[l] = to->rest[l + 1] + to->least[l];
    to->bytes[l] = to->bytes[l + 1] + bytes;
}

void relmas_table_fill(RelmasTable *t, const ChipSetup *s) {
    t->price = relmas_price_find(s);
    for (uint32_t k = 0; k < s->n_kinds; k++)
        t->share[k] = t->price.kind[k] * (float)s->kinds[k].n_units;
    t->share[s->n_kinds] = t->price.byte * s->bytes_ns;
    t->usual = 0;
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        RelmasModel *to = &t->models[i];
        uint32_t     n = to->costs->n_layers;
        to->rest_ns[n] = to->rest[n] = to->bytes[n] = 0;
        for (uint32_t l = n; l-- > 0;) fill_layer(to, &t->price, s->bytes_ns, l);
        t->usual += to->rest[0] / (float)s->n_tenants;
    }
}
