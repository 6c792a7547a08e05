// Memory of values: blocks are zeroed and apart, slabs are used again for any size, and all of it
// goes back to the system, and what a run takes from its budget is given back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "compile/interp/frame.h"
#include "tests/runner.h"

enum { LIVE = 200, STEPS = 20000 };

typedef struct Taken {
    unsigned char *data;
    ValueSlab     *slab;
    size_t         bytes;
    unsigned char  mark;
} Taken;

static bool all_are(const unsigned char *p, size_t n, unsigned char value) {
    for (size_t i = 0; i < n; i++)
        if (p[i] != value) return false;
    return true;
}

static size_t draw_bytes(Rng *r) {
    size_t most = (size_t)1 << (7 + rng_below(r, 14));
    return 1 + (size_t)rng_below(r, (uint32_t)(most < VALUE_BLOCK_MAX ? most : VALUE_BLOCK_MAX));
}

static void give(Taken *t, size_t *mapped, bool keep) {
    assert_true(all_are(t->data, t->bytes, t->mark));
    *mapped -= value_slab_give(t->slab, t->data, keep);
    *t = (Taken){0};
}

static void take(ValuePool *p, Taken *t, Rng *r, size_t *mapped) {
    t->bytes = draw_bytes(r);
    t->mark = (unsigned char)(1 + rng_below(r, 255));
    t->data = value_pool_take(p, t->bytes, &t->slab);
    if (t->data == NULL) {
        assert_true(value_pool_add(p));
        *mapped += VALUE_SLAB;
        t->data = value_pool_take(p, t->bytes, &t->slab);
    }
    assert_non_null(t->data);
    assert_int_equal((uintptr_t)t->data % 64, 0);
    assert_true(all_are(t->data, t->bytes, 0));
    memset(t->data, t->mark, t->bytes);
}

static void blocks_are_apart(void **state) {
    (void)state;
    static Taken taken[LIVE];
    ValuePool    p = {0};
    Rng          r = {7};
    size_t       mapped = 0;
    for (uint32_t i = 0; i < STEPS; i++) {
        Taken *t = &taken[rng_below(&r, LIVE)];
        if (t->data != NULL)
            give(t, &mapped, rng_below(&r, 2) == 0);
        else
            take(&p, t, &r, &mapped);
    }
    for (uint32_t i = 0; i < LIVE; i++)
        if (taken[i].data != NULL) give(&taken[i], &mapped, true);
    assert_int_equal(value_pool_trim(&p), mapped);
    for (uint32_t i = 0; i < VALUE_CLASSES; i++) assert_null(p.open[i]);
}

static void a_large_value_is_zeroed(void **state) {
    (void)state;
    size_t room = 3 << 20, less = 2 << 20;
    char  *a = value_map(room);
    assert_non_null(a);
    memset(a, 1, room);
    value_unmap(a, room);
    char *b = value_map(less);
    assert_true(b >= a && b + less <= a + room);
    assert_true(all_are((unsigned char *)b, less, 0));
    value_unmap(b, less);
}

static ValueSlot value_of(int64_t bytes) {
    return (ValueSlot){.t = {.dtype = DT_U8, .rank = 1, .dims = {bytes}}};
}

// What a run takes from its budget goes back, whatever its values were; and values are bounded.
static void budgets_are_settled(void **state) {
    (void)state;
    static ValueSlot slots[LIVE];
    ValuePool        pool = {0};
    Budget           budget = {.most = 64 << 20};
    InterpState      m = {.budget = &budget, .pool = &pool};
    Rng              r = {11};
    uint32_t         refused = 0;
    for (uint32_t i = 0; i < STEPS; i++) {
        ValueSlot *s = &slots[rng_below(&r, LIVE)];
        if (s->buf != NULL) {
            slot_drop(&m, s);
            continue;
        }
        *s = value_of((int64_t)(rng_below(&r, 20) == 0 ? rng_below(&r, 8 << 20) : draw_bytes(&r)));
        if (slot_alloc(&m, s) != ERR_OK) {
            refused++;
            *s = (ValueSlot){0};
            continue;
        }
        assert_true(all_are(s->t.data, s->buf->bytes, 0));
        memset(s->t.data, 255, s->buf->bytes);
        assert_true(m.live_bytes <= m.paid_bytes && budget_used(&budget) == m.paid_bytes);
    }
    assert_true(refused > 0);
    for (uint32_t i = 0; i < LIVE; i++) slot_drop(&m, &slots[i]);
    interp_give(&m, value_pool_trim(&pool));
    assert_int_equal(m.live_bytes, 0);
    budget_give(&budget, m.paid_bytes);
    assert_int_equal(budget_used(&budget), 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_apart),
        cmocka_unit_test(a_large_value_is_zeroed),
        cmocka_unit_test(budgets_are_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
