#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/rng.h"
#include "sim/record.h"
#include "tests/runner.h"

static Arena arena;

static int open_arena(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 28) == ERR_OK ? 0 : -1;
}

static int close_arena(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static Cores some_cores(Rng *r) {
    Cores c = {0};
    for (uint32_t i = (uint32_t)rng_below(r, 20); i > 0; i--)
        cores_add(&c, (uint32_t)rng_below(r, CORES_MAX));
    return c;
}

// Sets only the fields of its kind.
static Record some_record(Rng *r, RecordKind kind) {
    Record x = {.at = (TimeNs)rng_below(r, INT64_MAX), .kind = kind};
    if (kind == RECORD_LEVEL) {
        x.level = (uint32_t)rng_below(r, 10);
        return x;
    }
    if (kind == RECORD_REFUSE) {
        x.why = "a block without cores";
        return x;
    }
    x.request = rng_below(r, 1 << 30);
    x.tenant = (uint32_t)rng_below(r, 100);
    if (kind == RECORD_ARRIVE) x.deadline = (TimeNs)rng_below(r, INT64_MAX);
    if (kind == RECORD_START || kind == RECORD_GROW || kind == RECORD_END) {
        x.first = (uint32_t)rng_below(r, 500);
        x.n_layers = (uint32_t)rng_below(r, 500);
        x.cores = some_cores(r);
    }
    if (kind == RECORD_START) {
        x.wanted = (uint32_t)rng_below(r, 64);
        x.level = (uint32_t)rng_below(r, 10);
        x.versions = rng_u64(r);
    }
    if (kind == RECORD_FINISH || kind == RECORD_REJECT) {
        x.outcome = (Outcome)rng_below(r, OUTCOMES);
        if (x.outcome != OUTCOME_MET) x.why = "a \"reason\" with \\ and \n in it";
    }
    return x;
}

static void assert_same(const Record *a, const Record *b) {
    assert_int_equal(a->kind, b->kind);
    assert_true(a->at == b->at && a->request == b->request && a->deadline == b->deadline);
    assert_true(a->tenant == b->tenant && a->first == b->first && a->n_layers == b->n_layers);
    assert_true(a->wanted == b->wanted && a->level == b->level && a->versions == b->versions);
    assert_int_equal(a->outcome, b->outcome);
    assert_memory_equal(&a->cores, &b->cores, sizeof a->cores);
    assert_int_equal(a->why == NULL, b->why == NULL);
    if (a->why != NULL) assert_string_equal(a->why, b->why);
}

static void test_round_trip(void **state) {
    (void)state;
    char       path[] = "/tmp/record_testXXXXXX";
    int        fd = mkstemp(path);
    FILE      *f = fdopen(fd, "w");
    RecordList made = {.arena = &arena}, back;
    Rng        r = {5};
    json_t    *header = json_pack("{s:s, s:i}", "machine", "server64", "seed", 3), *again = NULL;
    assert_non_null(f);
    assert_int_equal(record_write_header(f, header), ERR_OK);
    for (uint32_t i = 0; i < 3000; i++) {
        Record x = some_record(&r, (RecordKind)(i % RECORD_KINDS));
        record_put(record_list(&made), &x);
        assert_int_equal(record_write(f, &x), ERR_OK);
    }
    (void)fclose(f);
    assert_int_equal(record_read(path, &arena, &again, &back), ERR_OK);
    assert_true(json_equal(header, again));
    assert_int_equal(back.n, made.n);
    for (uint32_t i = 0; i < made.n; i++) assert_same(&made.at[i], &back.at[i]);
    json_decref(header);
    json_decref(again);
    (void)unlink(path);
}

static void refuses(const char *text, const char *place, const char *why) {
    json_t    *header = NULL;
    RecordList back;
    assert_int_not_equal(record_parse("run", text, strlen(text), &arena, &header, &back), ERR_OK);
    assert_non_null(strstr(err_why(), place));
    assert_non_null(strstr(err_why(), why));
}

static void test_errors_name_the_line(void **state) {
    (void)state;
    refuses("", "run", "empty");
    refuses("[1]\n", "run:1", "header");
    refuses("{}\n{\"at\":1}\n", "run:2", "kind");
    refuses("{}\n{\"at\":1,\"kind\":\"level\",\"level\":2}\n{\"at\":1,\"kind\":\"leave\"}\n",
            "run:3", "'leave'");
    refuses("{}\n{\"at\":-1,\"kind\":\"level\",\"level\":2}\n", "run:2", "at");
    refuses("{}\n{\"at\":1,\"kind\":\"end\",\"request\":1,\"tenant\":0,\"first\":0,\"n_layers\":2,"
            "\"cores\":\"0-300\"}\n",
            "run:2", "0-3,8");
    refuses("{}\n{\"at\":1,\"kind\":\"finish\",\"request\":1,\"tenant\":0,\"outcome\":\"soon\"}",
            "run:2", "'soon'");
    refuses("{}\n{\"at\":1,\n", "run:2", "");
    json_t    *header = NULL;
    RecordList back;
    assert_int_equal(record_read("/nowhere/run", &arena, &header, &back), ERR_IO);
}

static void test_a_sink_may_be_nothing(void **state) {
    (void)state;
    record_put((RecordSink){0}, &(Record){.kind = RECORD_LEVEL});
    assert_string_equal(record_kind_name(RECORD_GROW), "grow");
    assert_string_equal(outcome_name(OUTCOME_LATE), "late");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_errors_name_the_line),
        cmocka_unit_test(test_a_sink_may_be_nothing),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
