// Plain to blocked and back, over odd sizes, instruction sets and parts.
#include "tests/kernel/blocked.h"
#include "tests/kernel/isas.h"

#include "kernel/strided_copy.h"
#include "tests/runner.h"

static const LayoutConvert sizes[] = {
    {.n = 1, .channels = 1, .pixels = 1},    {.n = 2, .channels = 3, .pixels = 7},
    {.n = 1, .channels = 8, .pixels = 8},    {.n = 3, .channels = 17, .pixels = 49},
    {.n = 1, .channels = 16, .pixels = 15},  {.n = 2, .channels = 31, .pixels = 1100},
    {.n = 1, .channels = 64, .pixels = 514}, {.n = 1, .channels = 5, .pixels = 16},
    {.n = 2, .channels = 32, .pixels = 512}, {.n = 1, .channels = 40, .pixels = 33},
};

static void check(const Isa *isa, LayoutConvert r, uint32_t parts) {
    size_t n = (size_t)r.n * r.channels * r.pixels,
           padded = blocked_count(r.n, r.channels, r.pixels, isa->lanes), zeros = 0;
    float        *plain = blocked_new(n), *blocked = blocked_new(padded), *back = blocked_new(n);
    LayoutConvert there = r, again = r;
    for (size_t i = 0; i < n; i++) plain[i] = 1 + (float)i;
    there.from = plain, there.to = blocked;
    again.from = blocked, again.to = back;
    for (uint32_t i = 0; i < parts; i++) isa->layout_to_blocked(&there, (Part){i, parts, NULL});
    blocked_equal(blocked, plain, r.n, r.channels, r.pixels, isa->lanes, 0);
    for (size_t i = 0; i < padded; i++) zeros += blocked[i] == 0;
    assert_int_equal(zeros, padded - n);
    for (uint32_t i = 0; i < parts; i++) isa->layout_to_plain(&again, (Part){i, parts, NULL});
    assert_memory_equal(plain, back, n * sizeof *plain);
    free(plain), free(blocked), free(back);
}

static void there_and_back(void **state) {
    (void)state;
    static const uint32_t parts[] = {1, 2, 3, 7};
    const Isa            *isas[3];
    size_t                n = isas_here(isas);
    for (size_t i = 0; i < n; i++)
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (size_t p = 0; p < COUNT(parts); p++) check(isas[i], sizes[s], parts[p]);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
