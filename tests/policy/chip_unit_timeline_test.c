// UnitTimeline against a search over all units.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "policy/chip/common/unit_timeline.h"
#include "tests/policy/chip_sample.h"
#include "tests/runner.h"

static Arena arena;

static int setup(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 30) == ERR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

// The best unit of all; CHIP_NONE: none can compute the layer.
static float least_end(const UnitTimeline *f, const ChipTask *t, bool free_only) {
    float best = INFINITY;
    for (uint32_t u = 0; u < f->view->setup->n_units; u++) {
        float ns = chip_cost(unit_timeline_model(f, t), t->layer, f->view->setup->kind_of[u])->ns;
        if (free_only && f->at[u] > 0) continue;
        if (f->at[u] + ns < best) best = f->at[u] + ns;
    }
    return best;
}

static float earliest(const UnitTimeline *f, const ChipTask *t) {
    float best = INFINITY;
    for (uint32_t u = 0; u < f->view->setup->n_units; u++) {
        float ns = chip_cost(unit_timeline_model(f, t), t->layer, f->view->setup->kind_of[u])->ns;
        if (!isinf(ns) && f->at[u] < best) best = f->at[u];
    }
    return best;
}

static void check_picks(const UnitTimeline *f, const ChipTask *t) {
    const ChipModel *m = unit_timeline_model(f, t);
    UnitPick         soonest = unit_timeline_first_to_end(f, t, 1.0F),
             never = unit_timeline_first_to_end(f, t, 0.0F);
    UnitPick first = unit_timeline_first_free(f, t), fastest = unit_timeline_fastest(f, t);
    float    best_free = least_end(f, t, true);
    assert_true(soonest.wait + soonest.ns == least_end(f, t, false));
    assert_true(f->at[soonest.unit] == soonest.wait);
    if (!isinf(best_free)) assert_true(never.wait == 0 && never.ns == best_free);
    assert_true(first.wait == earliest(f, t));
    assert_true(fastest.ns == chip_cost(m, t->layer, m->fastest[t->layer])->ns);
}

static void test_picks(void **state) {
    (void)state;
    Rng          rng = {1};
    ChipSample   s;
    UnitTimeline f;
    chip_sample_init(&s, &arena, &rng, 3, 4);
    for (uint32_t i = 0; i < 200; i++) {
        ChipSampleView at = chip_sample_view(&s, &arena, &rng, 20, (uint32_t)rng_below(&rng, 12));
        unit_timeline_open(&f, &at.view);
        for (uint32_t k = 0; k < at.view.n_waiting; k++) {
            const ChipTask *t = &at.tasks[at.view.waiting[k]];
            uint32_t        was = f.n_free;
            check_picks(&f, t);
            UnitPick p = unit_timeline_first_to_end(&f, t, 1.0F);
            float    before = f.at[p.unit];
            unit_timeline_reserve(&f, t, p);
            assert_int_equal(f.n_free, was - (p.wait == 0));
            assert_true(f.at[p.unit] >= before + p.ns || p.ns < 1);
        }
    }
    arena_rewind(&arena, 0);
}

// One task on two kinds: 100 ns at 8 bytes/ns, or 150 ns at 2.
static void test_heeds_the_memory(void **state) {
    (void)state;
    static const ChipCost costs[] = {{100, 8, 1}, {150, 2, 1}};
    Rng                   rng = {1};
    ChipSample            s;
    UnitTimeline          f;
    chip_sample_init(&s, &arena, &rng, 2, 2);
    s.tenants[0].model = chip_sample_chain(&arena, 1, 2, costs);
    s.setup.bytes_ns = 10;
    ChipSampleView at = chip_sample_view(&s, &arena, &rng, 1, 0);
    at.tasks[0].request.tenant = 0;
    at.tasks[0].layer = 0;
    at.view.demand = 8;
    unit_timeline_open(&f, &at.view);
    assert_int_equal(unit_timeline_first_to_end(&f, at.tasks, 1.0F).unit, 0);
    unit_timeline_share_bandwidth(&f);
    UnitPick p = unit_timeline_first_to_end(&f, at.tasks, 1.0F);
    assert_int_equal(p.unit, 2);  // 150 ns beside 8 of 10 bytes, against 100 x 16 / 10
    assert_true(p.ns == 150);
    unit_timeline_reserve(&f, at.tasks, p);
    assert_true(f.demand == 10);
    p = unit_timeline_of_kind(&f, at.tasks, 0);
    assert_true(fabsf(p.ns - 180) < 0.01F);
    arena_rewind(&arena, 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_picks),
        cmocka_unit_test(test_heeds_the_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
