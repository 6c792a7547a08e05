#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "report/timeline.h"
#include "tests/runner.h"

static const char *const tenants[] = {"resnet \"50\"", "bert"};

static const char *name_layer(const void *self, uint32_t tenant, uint32_t layer) {
    (void)self;
    return tenant == 0 && layer == 2 ? "/conv<2>" : NULL;
}

static bool requests;

static json_t *write(const Record *r, uint32_t n) {
    Arena      a;
    char      *text = NULL;
    size_t     len = 0;
    FILE      *f = open_memstream(&text, &len);
    RecordList list = {.n = n};
    Timeline   t = {.title = "a run",
                    .tenants = tenants,
                    .n_tenants = 2,
                    .n_cores = 4,
                    .layer = name_layer,
                    .requests = requests};
    list.at = malloc((n + 1) * sizeof *r);
    assert_non_null(list.at);
    if (n > 0) memcpy(list.at, r, n * sizeof *r);
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(timeline_write(f, &t, &list, &a), ERR_OK);
    (void)fclose(f);
    json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(doc);
    free(text);
    free(list.at);
    arena_finish(&a);
    json_t *events = json_incref(json_object_get(doc, "traceEvents"));
    json_decref(doc);
    return events;
}

static const char *text_of(const json_t *e, const char *key) {
    return json_string_value(json_object_get(e, key));
}

static double number_of(const json_t *e, const char *key) {
    return json_number_value(json_object_get(e, key));
}

// The nth event of a phase and name; an empty name is any.
static const json_t *find(const json_t *events, const char *ph, const char *name, uint32_t nth) {
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *e = json_array_get(events, i);
        if (strcmp(text_of(e, "ph"), ph) != 0) continue;
        if (name[0] != '\0' && strcmp(text_of(e, "name"), name) != 0) continue;
        if (nth-- == 0) return e;
    }
    return NULL;
}

static Cores cores_from(uint32_t first, uint32_t n) {
    Cores c = {0};
    for (uint32_t i = 0; i < n; i++) cores_add(&c, first + i);
    return c;
}

static void test_blocks_are_slices_on_their_cores(void **state) {
    (void)state;
    const Record r[] = {
        {.at = 5000, .kind = RECORD_ARRIVE, .request = 7, .tenant = 0, .deadline = 99000},
        {.at = 6000,
         .kind = RECORD_START,
         .request = 7,
         .first = 2,
         .n_layers = 3,
         .wanted = 4,
         .cores = cores_from(1, 2),
         .level = 3},
        {.at = 7500, .kind = RECORD_GROW, .request = 7, .first = 3, .cores = cores_from(3, 1)},
        {.at = 9000,
         .kind = RECORD_END,
         .request = 7,
         .first = 2,
         .n_layers = 3,
         .cores = cores_from(1, 3)},
        {.at = 9000, .kind = RECORD_FINISH, .request = 7, .outcome = OUTCOME_LATE, .why = "slow"},
    };
    json_t       *events = write(r, 5);
    const json_t *e = find(events, "X", "", 0);
    assert_string_equal(text_of(e, "name"), "resnet \"50\"/7//conv<2>");
    assert_true(number_of(e, "ts") == 1 && number_of(e, "dur") == 3 && number_of(e, "tid") == 1);
    const json_t *args = json_object_get(e, "args");
    assert_true(number_of(args, "cores") == 2 && number_of(args, "wanted") == 4 &&
                number_of(args, "level") == 3);
    const json_t *grown = find(events, "X", "", 2);
    assert_true(number_of(grown, "tid") == 3 && number_of(grown, "dur") == 1.5);
    assert_null(find(events, "X", "", 3));
    assert_true(number_of(find(events, "i", "conflict", 0), "ts") == 1);
    e = find(events, "i", "late", 0);
    assert_string_equal(text_of(json_object_get(e, "args"), "why"), "slow");
    json_decref(events);
}

static void test_every_core_has_a_track(void **state) {
    (void)state;
    json_t *events = write(NULL, 0);
    for (uint32_t i = 0; i < 4; i++) {
        const json_t *e = find(events, "M", "thread_name", i);
        assert_true(number_of(e, "tid") == i);
    }
    assert_null(find(events, "M", "thread_name", 4));
    json_decref(events);
}

static void test_counters_follow_queue_and_level(void **state) {
    (void)state;
    const Record r[] = {
        {.at = 0, .kind = RECORD_ARRIVE, .request = 0},
        {.at = 0, .kind = RECORD_ARRIVE, .request = 1},
        {.at = 0, .kind = RECORD_START, .request = 0, .cores = cores_from(0, 1)},
        {.at = 10, .kind = RECORD_LEVEL, .level = 4},
        {.at = 20, .kind = RECORD_END, .request = 0, .cores = cores_from(0, 1)},
        {.at = 20, .kind = RECORD_FINISH, .request = 0, .outcome = OUTCOME_MET},
        {.at = 30, .kind = RECORD_REJECT, .request = 1, .outcome = OUTCOME_REJECTED, .why = "full"},
    };
    json_t *events = write(r, 7);
    assert_true(number_of(json_object_get(find(events, "C", "queue", 0), "args"), "queue") == 1);
    assert_true(number_of(json_object_get(find(events, "C", "queue", 1), "args"), "queue") == 0);
    assert_null(find(events, "C", "queue", 2));
    assert_true(number_of(json_object_get(find(events, "C", "level", 0), "args"), "level") == 4);
    assert_non_null(find(events, "i", "rejected", 0));
    assert_null(find(events, "i", "met", 0));
    json_decref(events);
}

static void test_requests_are_asynchronous(void **state) {
    (void)state;
    const Record r[] = {
        {.at = 1000, .kind = RECORD_FINISH, .request = 3},  // came before the records
        {.at = 2000, .kind = RECORD_ARRIVE, .request = 4, .tenant = 1, .deadline = 9000},
        {.at = 8000,
         .kind = RECORD_REJECT,
         .request = 4,
         .tenant = 1,
         .outcome = OUTCOME_REJECTED,
         .why = "full"},
    };
    requests = true;
    json_t       *events = write(r, 3);
    const json_t *b = find(events, "b", "bert", 0), *e = find(events, "e", "", 0);
    requests = false;
    assert_true(number_of(b, "id") == 4 && number_of(e, "id") == 4);
    assert_true(number_of(b, "ts") == 1 && number_of(e, "ts") == 7);
    assert_string_equal(text_of(json_object_get(e, "args"), "why"), "full");
    assert_null(find(events, "e", "", 1));
    json_decref(events);
}

// Whatever the limit, what is written is within it, whole, and says what it lacks.
static void test_limit(void **state) {
    (void)state;
    Record r[64];
    for (uint32_t i = 0; i < 64; i++)
        r[i] = (Record){.at = i * 1000,
                        .kind = i % 2 == 0 ? RECORD_ARRIVE : RECORD_REJECT,
                        .request = i / 2,
                        .outcome = OUTCOME_REJECTED};
    size_t whole = 0;
    for (size_t most = 400; whole == 0; most += 97) {
        Arena      a;
        char      *text = NULL;
        size_t     len = 0;
        FILE      *f = open_memstream(&text, &len);
        RecordList list = {.at = r, .n = 64};
        Timeline   t = {.title = "a run",
                        .tenants = tenants,
                        .n_tenants = 2,
                        .n_cores = 1,
                        .requests = true,
                        .most = most};
        assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
        assert_int_equal(timeline_write(f, &t, &list, &a), ERR_OK);
        (void)fclose(f);
        assert_true(len <= most);
        json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(doc);
        if (json_object_get(doc, "otherData") == NULL) whole = len;
        json_decref(doc);
        free(text);
        arena_finish(&a);
        assert_true(most < 100000);
    }
    assert_true(whole > 5000);
}

static void test_file_that_refuses(void **state) {
    (void)state;
    Arena      a;
    FILE      *f = fopen("/dev/full", "we");
    Timeline   t = {.title = "a run", .n_cores = 4};
    RecordList none = {0};
    if (f == NULL) skip();
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(timeline_write(f, &t, &none, &a), ERR_IO);
    (void)fclose(f);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_are_slices_on_their_cores),
        cmocka_unit_test(test_every_core_has_a_track),
        cmocka_unit_test(test_requests_are_asynchronous),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_file_that_refuses),
        cmocka_unit_test(test_counters_follow_queue_and_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
