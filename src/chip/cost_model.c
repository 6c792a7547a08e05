#include <math.h>
#include <string.h>

#include "chip/cost.h"

static bool same(const Shape *a, const Shape *b) {
    Shape x = *a, y = *b;
    x.name = y.name = x.op = y.op = NULL;
    return memcmp(&x, &y, sizeof x) == 0;
}

void cost_all(const Shape *s, uint32_t n, const Unit *u, Cost *out) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t seen = 0;
        while (seen < i && !same(&s[seen], &s[i])) seen++;
        out[i] = seen < i ? out[seen] : cost_of(&s[i], u);
    }
}

static void price(const Shape *s, uint32_t n, const Package *p, Cost *scratch, ChipCost *out) {
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        const Unit *u = p->kinds[k].unit;
        double      ns = 1e3 / u->clock_mhz;
        cost_all(s, n, u, scratch);
        for (uint32_t i = 0; i < n; i++)
            out[(size_t)i * p->n_kinds + k] =
                (ChipCost){.ns = (float)(scratch[i].cycles * ns),
                           .bytes_ns = (float)(scratch[i].bytes_cycle / ns),
                           .energy_pj = (float)scratch[i].energy_pj};
    }
}

static Err nobody_can(const char *network, const Shape *s, const Package *p, Arena *a) {
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
        if (isinf(ns)) return nobody_can(network, &shapes[i], p, a);
        rest[i] = rest[i + 1] + ns;
    }
    return ERR_OK;
}

Err cost_model(const char *network, const Package *p, Arena *a, ChipModel *out) {
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
    price(shapes, n, p, scratch, costs);
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
