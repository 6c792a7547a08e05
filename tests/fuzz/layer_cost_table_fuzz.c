// Feeds CSV to the reader of cost tables; what it accepts can be applied to a network.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "chip/cost/layer_cost_table.h"
#include "tests/fuzz/fuzz.h"

static Shape layer(const char *name) {
    return (Shape){.name = name,
                   .op = "Conv",
                   .n = 1,
                   .k = 4,
                   .c = 3,
                   .r = 1,
                   .s = 1,
                   .p = 2,
                   .q = 2,
                   .groups = 1,
                   .stride_h = 1,
                   .stride_w = 1,
                   .dilation_h = 1,
                   .dilation_w = 1,
                   .h = 2,
                   .w = 2};
}

static void apply(LayerCostTable *t, const UnitSpec *u, Arena *a) {
    Shape s[2] = {layer("a"), layer("b")};
    Cost  c[2];
    for (int fill = 0; fill < 2; fill++) {
        t->fill = fill == 1;
        if (layer_cost_table_apply(t, "resnet50", s, 2, u, a, c) != ERR_OK) continue;
        for (int i = 0; i < 2; i++)
            if (!isinf(c[i].cycles) &&
                (!(c[i].cycles >= 1) || !(c[i].bytes_cycle >= 0) || !(c[i].energy_pj >= 0)))
                abort();
    }
}

FUZZ_TARGET(data, size) {
    Arena          a;
    LayerCostTable t;
    UnitSpec       u;
    if (arena_init(&a, (size_t)1 << 28) != ERR_OK) abort();
    if (unit_spec_load("simba", &a, &u) != ERR_OK) abort();
    if (layer_cost_table_parse("fuzz.csv", (const char *)data, size, &a, &t) == ERR_OK) {
        if (t.n == 0) abort();
        const char *networks[] = {"resnet50"}, *units[] = {"simba"};
        if (layer_cost_table_check(&t, networks, 1, units, 1) == ERR_OK) apply(&t, &u, &a);
    }
    arena_finish(&a);
    return 0;
}
