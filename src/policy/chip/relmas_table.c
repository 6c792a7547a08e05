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
    RelmasModel *models = carve(from, RelmasModel, s->n_tenants), none;
    t->models = models;
    for (uint32_t i = 0; i < s->n_tenants; i++) {
        const ChipModel *m = s->tenants[i].model;
        RelmasModel     *to = models == NULL ? &none : &models[i];
        to->work = carve(from, float, (size_t)m->n_layers * m->n_kinds);
        to->least = carve(from, float, m->n_layers);
        to->rest = carve(from, float, m->n_layers + 1);
        to->bytes = carve(from, float, m->n_layers + 1);
    }
}

static void fill_layer(RelmasModel *to, const RelmasPrice *p, uint32_t l) {
    const ChipModel *m = to->costs;
    float            bytes = 0;
    to->least[l] = INFINITY;
    for (uint32_t k = 0; k < m->n_kinds; k++) {
        const ChipCost *c = chip_cost(m, l, k);
        float           work = isfinite(c->ns) ? relmas_price_work(p, c, k) : INFINITY;
        to->work[(size_t)l * m->n_kinds + k] = work;
        if (work >= to->least[l]) continue;
        to->least[l] = work;
        bytes = c->ns * c->bytes_ns;
    }
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
        to->costs = s->tenants[i].model;
        to->rest[to->costs->n_layers] = 0;
        to->bytes[to->costs->n_layers] = 0;
        for (uint32_t l = to->costs->n_layers; l-- > 0;) fill_layer(to, &t->price, l);
        t->usual += to->rest[0] / (float)s->n_tenants;
    }
}
