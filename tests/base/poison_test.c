#include "base/poison.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"
#include "tests/runner.h"

static void recycled_memory_is_filled_only_in_the_mode(void **state) {
    (void)state;
    Arena a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    for (int on = 0; on < 2; on++) {
        poison_set(on != 0);
        unsigned char *p = arena_alloc(&a, 100, 1, 1);
        p[0] = p[99] = 7;
        arena_rewind(&a, 0);
        assert_int_equal(p[0], on != 0 ? POISON_BYTE : 7);
        assert_int_equal(p[99], on != 0 ? POISON_BYTE : 7);
        p = arena_alloc(&a, 100, 1, 1);  // memory of an arena is zeroed in both
        for (int i = 0; i < 100; i++) assert_int_equal(p[i], 0);
        arena_rewind(&a, 0);
    }
    poison_set(false);
    poison_fill(NULL, 0);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recycled_memory_is_filled_only_in_the_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
