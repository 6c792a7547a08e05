// Plain to blocked and back, over odd sizes, instruction sets and parts.
#include "tests/kernel/arrays.h"
#include "tests/kernel/isas.h"

#include <stdlib.h>

#include "kernel/relay.h"

static const Relay sizes[] = {
    {.n = 1, .channels = 1, .pixels = 1},    {.n = 2, .channels = 3, .pixels = 7},
    {.n = 1, .channels = 8, .pixels = 8},    {.n = 3, .channels = 17, .pixels = 49},
    {.n = 1, .channels = 16, .pixels = 15},  {.n = 2, .channels = 31, .pixels = 1100},
    {.n = 1, .channels = 64, .pixels = 514}, {.n = 1, .channels = 5, .pixels = 16},
    {.n = 2, .channels = 32, .pixels = 512}, {.n = 1, .channels = 40, .pixels = 33},
};

static float *numbers(size_t n, float first) {
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = first + (float)i;
    return x;
}

// Number i of the plain tensor as it stands in the blocked one.
static size_t blocked_at(const Relay *r, uint32_t lanes, size_t i) {
    size_t c = i / r->pixels % r->channels, image = i / r->pixels / r->channels;
    size_t blocks = (r->channels + lanes - 1) / lanes;
    return ((image * blocks + c / lanes) * r->pixels + i % r->pixels) * lanes + c % lanes;
}

static void check(const Isa *isa, Relay r, uint32_t parts) {
    size_t n = (size_t)r.n * r.channels * r.pixels, padded = relay_count(&r, isa->lanes), zeros = 0;
    float *plain = numbers(n, 1), *blocked = numbers(padded, -1e6F), *back = numbers(n, -1e6F);
    Relay  there = r, again = r;
    there.from = plain, there.to = blocked;
    again.from = blocked, again.to = back;
    for (uint32_t i = 0; i < parts; i++) isa->relay_block(&there, (Part){i, parts, NULL});
    for (size_t i = 0; i < n; i++) assert_true(blocked[blocked_at(&r, isa->lanes, i)] == plain[i]);
    for (size_t i = 0; i < padded; i++) zeros += blocked[i] == 0;
    assert_int_equal(zeros, padded - n);
    for (uint32_t i = 0; i < parts; i++) isa->relay_plain(&again, (Part){i, parts, NULL});
    assert_memory_equal(plain, back, n * sizeof *plain);
    free(plain);
    free(blocked);
    free(back);
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
