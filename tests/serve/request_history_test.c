#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"
#include "serve/observe/request_history.h"
#include "tests/runner.h"

static Arena arena;

static int setup(void **state) {
    (void)state;
    return arena_init(&arena, 16 << 20) != ERR_OK;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static Receipt receipt(uint32_t number, bool met) {
    Receipt r = {.model = "digits",
                 .version = "1",
                 .met = met,
                 .arrived = 1000,
                 .decoded = 2000,
                 .submitted = 3000,
                 .finished = 5000000 + number,
                 .answered = 6000000 + number,
                 .deadline = 1000000,
                 .timing = {.queue_ns = 1000000, .compute_ns = 3000000, .blocks = 1}};
    (void)snprintf(r.id, sizeof r.id, "r-%u", number);
    return r;
}

static void test_finds_what_the_ring_holds(void **state) {
    (void)state;
    enum { ROOM = 16, N = 100 };
    RequestHistory *l;
    assert_int_equal(request_history_create(&l, ROOM), ERR_OK);
    assert_null(request_history_find(l, text_of("r-0")));
    for (uint32_t i = 0; i < N; i++) {
        Receipt r = receipt(i, true);
        request_history_add(l, &r);
        for (uint32_t k = 0; k <= i; k++) {
            char id[32];
            (void)snprintf(id, sizeof id, "r-%u", k);
            const Receipt *found = request_history_find(l, text_of(id));
            assert_int_equal(found != NULL, k + ROOM > i);
            if (found != NULL) assert_int_equal(found->finished, 5000000 + k);
        }
    }
    assert_null(request_history_find(l, text_of("")));
    assert_null(request_history_find(l, text_of("r-9999")));
    request_history_destroy(l);
}

static void test_newest_of_one_id(void **state) {
    (void)state;
    RequestHistory *l;
    assert_int_equal(request_history_create(&l, 4), ERR_OK);
    for (uint32_t i = 0; i < 9; i++) {
        Receipt r = receipt(i, true);
        (void)strcpy(r.id, "same");
        request_history_add(l, &r);
        assert_int_equal(request_history_find(l, text_of("same"))->finished, 5000000 + i);
    }
    char long_id[200];
    memset(long_id, 'x', sizeof long_id);
    assert_null(request_history_find(l, (Str){long_id, sizeof long_id}));
    request_history_destroy(l);
}

// A list that is looked through from its end is what the chains must agree with.
static void test_misses_against_a_plain_list(void **state) {
    (void)state;
    enum { ROOM = 32, N = 300 };
    bool            missed[N] = {false};
    Rng             rng = {7};
    RequestHistory *l;
    assert_int_equal(request_history_create(&l, ROOM), ERR_OK);
    for (uint32_t i = 0; i < N; i++) {
        missed[i] = rng_below(&rng, 3) == 0;
        Receipt r = receipt(i, !missed[i]);
        request_history_add(l, &r);
        Str     text;
        json_t *list;
        size_t  n = 0;
        arena_rewind(&arena, 0);
        assert_int_equal(request_history_misses(l, 5, &arena, &text), ERR_OK);
        assert_int_equal(json_parse("misses", text.at, text.len, &list), ERR_OK);
        for (uint32_t k = i + 1; k-- > 0 && n < 5 && k + ROOM > i;) {
            char id[32];
            if (!missed[k]) continue;
            (void)snprintf(id, sizeof id, "r-%u", k);
            assert_string_equal(json_string_value(json_object_get(json_array_get(list, n++), "id")),
                                id);
        }
        assert_int_equal(json_array_size(list), n);
        json_decref(list);
    }
    request_history_destroy(l);
}

static double number(const json_t *o, const char *key) {
    return json_number_value(json_object_get(o, key));
}

static void test_explains(void **state) {
    (void)state;
    Receipt r = receipt(1, false);
    Str     text;
    json_t *o;
    (void)strcpy(r.id, "a\"b\\c\xff");
    r.behind = "big\n";
    receipt_explain(&r);
    assert_int_equal(request_history_json(&r, &arena, &text), ERR_OK);
    assert_int_equal(json_parse("why", text.at, text.len, &o), ERR_OK);
    assert_string_equal(json_string_value(json_object_get(o, "id")), "a\"b\\c\xef\xbf\xbd");
    assert_string_equal(json_string_value(json_object_get(o, "behind")), "big\n");
    assert_string_equal(json_string_value(json_object_get(o, "outcome")), "missed");
    assert_string_equal(json_string_value(json_object_get(o, "cause")), "compute");
    assert_string_equal(json_string_value(json_object_get(o, "why")), r.cause);
    assert_true(json_string_length(json_object_get(o, "advice")) > 10);
    const json_t *stages = json_object_get(o, "stages");
    assert_float_equal(number(stages, "queue_ms"), 0.998, 1e-9);
    assert_float_equal(number(stages, "compute_ms"), 3, 1e-9);
    assert_float_equal(number(o, "latency_ms"), 5.999001, 1e-9);
    json_decref(o);
    Arena tiny;
    assert_int_equal(arena_init(&tiny, 4096), ERR_OK);
    (void)arena_new(&tiny, char, 4000);
    assert_int_equal(request_history_json(&r, &tiny, &text), ERR_LIMIT);
    assert_int_equal(tiny.used, 4000);
    arena_finish(&tiny);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_what_the_ring_holds),
        cmocka_unit_test(test_newest_of_one_id),
        cmocka_unit_test(test_misses_against_a_plain_list),
        cmocka_unit_test(test_explains),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
