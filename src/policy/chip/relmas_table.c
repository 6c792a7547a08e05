#include "policy/chip/relmas_table.h"

#include <math.h>
#include <string.h>

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
