#include "base/string_map.h"
#include "tests/runner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void in_order(void **state) {
    (void)state;
    Arena    a;
    Interner s;
    assert_int_equal(arena_init(&a, (size_t)1 << 24), ERR_OK);
    interner_init(&s, &a);
    assert_int_equal(interner_find(&s, "0"), STRING_MAP_NONE);
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 5000; i++) {
            uint32_t index = 0;
            assert_int_equal(interner_add(&s, arena_printf(&a, "%u", i), &index), ERR_OK);
            assert_int_equal(index, i);
        }
    assert_int_equal(s.n, 5000);
    assert_string_equal(s.at[4321], "4321");
    assert_int_equal(interner_find(&s, "5000"), STRING_MAP_NONE);
    arena_finish(&a);
}

static void full(void **state) {
    (void)state;
    Arena    a;
    Interner s;
    uint32_t index = 0, n = 0;
    char     text[1 << 14][8];
    assert_int_equal(arena_init(&a, (size_t)1 << 17), ERR_OK);
    interner_init(&s, &a);
    Err e = ERR_OK;
    for (; e == ERR_OK && n < 1 << 14; n++) {
        (void)snprintf(text[n], sizeof text[n], "%u", n);
        e = interner_add(&s, text[n], &index);
    }
    assert_int_equal(e, ERR_LIMIT);
    assert_int_equal(interner_find(&s, "100"), 100);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_order), cmocka_unit_test(full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
