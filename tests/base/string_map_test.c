#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/string_map.h"
#include "tests/runner.h"

static void test_put_get_replace(void **state) {
    (void)state;
    Arena     a;
    StringMap m;
    assert_int_equal(arena_init(&a, 1 << 16), ERR_OK);
    string_map_init(&m, &a);
    assert_int_equal(string_map_get(&m, ""), STRING_MAP_NONE);
    string_map_put(&m, "", 1);
    string_map_put(&m, "a", 2);
    string_map_put(&m, "a", 3);
    assert_int_equal(string_map_get(&m, ""), 1);
    assert_int_equal(string_map_get(&m, "a"), 3);
    assert_int_equal(string_map_get(&m, "b"), STRING_MAP_NONE);
    assert_int_equal(m.n, 2);
    arena_finish(&a);
}

static void test_many(void **state) {
    (void)state;
    enum { MANY = 20000 };
    Arena     a;
    StringMap m;
    assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
    string_map_init(&m, &a);
    for (uint32_t i = 0; i < MANY; i++) string_map_put(&m, arena_printf(&a, "key %u", i), i);
    assert_int_equal(m.n, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(string_map_get(&m, arena_printf(&a, "key %u", i)), i);
    assert_int_equal(string_map_get(&m, "key 20000"), STRING_MAP_NONE);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_get_replace),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
