#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "policy/cluster/maifs/auction.h"
#include "policy/cluster/maifs/coord_int.h"
#include "tests/policy/coordination_exact.h"
#include "tests/runner.h"

enum { MOST = 48 };

// Sum of worths.
static double auction_value(const Auction *a, const Market *m) {
    double sum = 0;
    for (uint32_t i = 0; i < m->bidders; i++)
        if (a->won[i] != AUCTION_NONE) sum += m->worth[a->won[i]];
    return sum;
}

// Upper bound of any assignment: profits and prices.
static double auction_bound(const Auction *a, const Market *m, const bool *out) {
    double sum = 0;
    for (uint32_t i = 0; i < m->bidders; i++)
        if (out == NULL || !out[i]) sum += auction_profit(a, m, i);
    for (uint32_t k = 0; k < m->items; k++)
        if (isfinite(a->price[k])) sum += a->price[k];
    return sum;
}

typedef struct Fair {  // a market and room for everything
    float    gain[MOST * MOST];
    uint32_t first[MOST + 1];
    uint16_t item[MOST * MOST];
    float    worth[MOST * MOST];
    Market   market;
    Auction  auction;
    char    *room;
} Fair;

static void fair_open(Fair *f, uint32_t bidders, uint32_t items) {
    Carve    count = {0};
    uint32_t n = 0;
    auction_carve(&f->auction, bidders, items, &count);
    f->room = calloc(1, count.used + 64);
    Carve from = {f->room, 0};
    auction_carve(&f->auction, bidders, items, &from);
    for (uint32_t i = 0; i < bidders; i++) {
        uint64_t keys[2 * MOST];
        uint32_t has = 0;
        f->first[i] = n;
        for (uint32_t k = 0; k < items; k++)
            if (isfinite(f->gain[i * items + k]))
                keys[has++] = packed_key_descending(f->gain[i * items + k], k);
        packed_keys_sort(keys, has);
        for (uint32_t e = 0; e < has; e++, n++) {
            f->item[n] = (uint16_t)packed_key_tie(keys[e]);
            f->worth[n] = f->gain[i * items + f->item[n]];
        }
    }
    f->first[bidders] = n;
    f->market = (Market){bidders, items, f->first, f->item, f->worth};
}

static void random_gains(Fair *f, Rng *rng, uint32_t bidders, uint32_t items, double cannot) {
    for (uint32_t x = 0; x < bidders * items; x++)
        f->gain[x] = rng_unit64(rng) < cannot ? -INFINITY : rng_unit(rng) * 3 - 0.5f;
}

static void check_legal(const Fair *f) {
    for (uint32_t i = 0; i < f->market.bidders; i++) {
        uint32_t e = f->auction.won[i];
        if (e == AUCTION_NONE) continue;
        assert_true(e >= f->first[i] && e < f->first[i + 1]);
        assert_int_equal(f->auction.owner[f->item[e]], i);
    }
}

static void comes_within_its_bound_of_the_optimum(void **state) {
    (void)state;
    static Fair f;
    Rng         rng = {11};
    for (uint32_t run = 0; run < 600; run++) {
        uint32_t bidders = 1 + (uint32_t)rng_below(&rng, MOST);
        uint32_t items = 1 + (uint32_t)rng_below(&rng, MOST);
        double   step = run % 3 == 0 ? 0.1 : run % 3 == 1 ? 0.01 : 0.0005;
        random_gains(&f, &rng, bidders, items, 0.3 * (run % 4));
        fair_open(&f, bidders, items);
        auction_run(&f.auction, &f.market, NULL, step);
        check_legal(&f);
        double best = exact_assignment(f.gain, bidders, items);
        double value = auction_value(&f.auction, &f.market);
        double bound = auction_bound(&f.auction, &f.market, NULL);
        double sold = bidders < items ? bidders : items;
        assert_true(value <= best + 1e-6 && bound >= best - 1e-6);
        assert_true(bound - value <= sold * step + 1e-6);
        free(f.room);
    }
}

static void those_who_are_out_and_what_is_not_for_sale_stay_away(void **state) {
    (void)state;
    static Fair f;
    Rng         rng = {5};
    bool        out[MOST];
    for (uint32_t run = 0; run < 100; run++) {
        random_gains(&f, &rng, 20, 10, 0.2);
        fair_open(&f, 20, 10);
        for (uint32_t k = 0; k < 10; k++) f.auction.price[k] = k % 3 == 0 ? INFINITY : 0;
        for (uint32_t i = 0; i < 20; i++) out[i] = i % 4 == 1;
        auction_run(&f.auction, &f.market, out, 0.001);
        for (uint32_t i = 0; i < 20; i++)
            for (uint32_t k = 0; k < 10; k++)
                if (out[i] || k % 3 == 0) f.gain[i * 10 + k] = -INFINITY;
        double best = exact_assignment(f.gain, 20, 10);
        assert_true(auction_value(&f.auction, &f.market) > best - 0.0065);
        assert_true(auction_bound(&f.auction, &f.market, out) > best - 1e-6);
        for (uint32_t i = 0; i < 20; i++)
            if (out[i]) assert_int_equal(f.auction.won[i], AUCTION_NONE);
        free(f.room);
    }
}

static void equals_are_served_as_well(void **state) {
    (void)state;
    static Fair f;
    for (uint32_t x = 0; x < 32 * 8; x++) f.gain[x] = 1;
    fair_open(&f, 32, 8);
    auction_run(&f.auction, &f.market, NULL, 0.01);
    assert_true(auction_value(&f.auction, &f.market) == 8);
    free(f.room);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_within_its_bound_of_the_optimum),
        cmocka_unit_test(those_who_are_out_and_what_is_not_for_sale_stay_away),
        cmocka_unit_test(equals_are_served_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
