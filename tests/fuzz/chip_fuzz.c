// Feeds YAML to the readers of units and packages; what they accept can be costed.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "chip/cost/cost.h"
#include "tests/fuzz/fuzz.h"

static void price(const UnitSpec *u) {
    Shape s = {.name = "s", .op = "Conv", .n = 2, .k = 5, .c = 3, .r = 3, .s = 3, .p = 6, .q = 6};
    s.groups = s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
    s.h = s.w = 8;
    Cost c = cost_of(&s, u);
    if (isinf(c.cycles)) return;
    double bytes = c.read_bytes + c.write_bytes;
    if (!(c.cycles >= shape_macs(&s) / unit_spec_macs(u) * 0.999)) abort();
    if (!(c.cycles >= bytes / u->port * 0.999) || !(c.energy_pj >= 0)) abort();
}

FUZZ_TARGET(data, size) {
    Arena    a;
    Package  p;
    UnitSpec u;
    if (arena_init(&a, (size_t)1 << 26) != ERR_OK) abort();
    if (unit_spec_parse("fuzz.yaml", (const char *)data, size, &a, &u) == ERR_OK) price(&u);
    if (package_parse("fuzz.yaml", (const char *)data, size, &a, &p) == ERR_OK) {
        if (p.n_kinds == 0 || p.n_units == 0 || p.n_units > CHIP_UNITS) abort();
        for (uint32_t k = 0; k < p.n_kinds; k++) price(p.kinds[k].unit);
    }
    arena_finish(&a);
    return 0;
}
