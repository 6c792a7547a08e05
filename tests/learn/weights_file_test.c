// Weights survive a file bit by bit; every damage is an error that names the file.
#include "tests/learn/gradient.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "learn/weights_file.h"
#include "tests/runner.h"

enum { N = 100 };
static const char FACTS[] = "network=test actor\nfeatures=24\nhidden=64\nseed=1\n";

typedef struct World {
    Arena    arena;
    char     path[64];
    FloatVec params;
    char    *bytes;
    size_t   len;
} World;

static int set_up(void **state) {
    World *w = calloc(1, sizeof *w);
    Rng    rng = {1};
    if (w == NULL || arena_init(&w->arena, (size_t)1 << 24) != ERR_OK) return -1;
    snprintf(w->path, sizeof w->path, "/tmp/weights_test_%d", (int)getpid());
    w->params = float_vec_new(&w->arena, N);
    gradient_fill(&rng, w->params.at, N, 1e3f);
    w->params.at[0] = -0.0f;
    w->params.at[1] = 1e-41f;
    if (weights_save(w->path, FACTS, w->params) != ERR_OK) return -1;
    if (file_read(w->path, 1 << 20, &w->arena, &w->bytes, &w->len) != ERR_OK) return -1;
    *state = w;
    return 0;
}

static int tear_down(void **state) {
    World *w = *state;
    unlink(w->path);
    arena_finish(&w->arena);
    free(w);
    return 0;
}

static void test_round_trip(void **state) {
    World      *w = *state;
    WeightsFile back;
    assert_int_equal(weights_load(w->path, "hidden=64\nnetwork=test actor\n", N, &w->arena, &back),
                     ERR_OK);
    assert_int_equal(back.params.n, N);
    assert_memory_equal(back.params.at, w->params.at, N * sizeof(float));
    assert_string_equal(back.facts, FACTS);
    assert_string_equal(weights_metadata(&back, "features", &w->arena), "24");
    assert_string_equal(weights_metadata(&back, "network", &w->arena), "test actor");
    assert_null(weights_metadata(&back, "feature", &w->arena));
    assert_int_equal(weights_parse("memory", w->bytes, w->len, "", 0, &w->arena, &back), ERR_OK);
    assert_memory_equal(back.params.at, w->params.at, N * sizeof(float));
    FloatVec none = {NULL, 0};
    assert_int_equal(weights_save(w->path, "", none), ERR_OK);
    assert_int_equal(weights_load(w->path, "", 0, &w->arena, &back), ERR_OK);
    assert_int_equal(back.params.n, 0);
    assert_int_equal(weights_save(w->path, FACTS, w->params), ERR_OK);
}

static void refused(World *w, const char *bytes, size_t len) {
    size_t      mark = w->arena.used;
    WeightsFile out = {"untouched", {NULL, 7}};
    assert_int_not_equal(weights_parse("file", bytes, len, "", 0, &w->arena, &out), ERR_OK);
    assert_true(out.params.n == 7);
    arena_rewind(&w->arena, mark);
}

static void test_every_bit_counts(void **state) {
    World *w = *state;
    for (size_t i = 0; i < w->len; i++) {
        char was = w->bytes[i];
        for (int32_t change = 1; change < 256; change++) {
            w->bytes[i] = (char)(was ^ change);
            refused(w, w->bytes, w->len);
        }
        w->bytes[i] = was;
    }
}

static void test_every_length_counts(void **state) {
    World *w = *state;
    char  *longer = arena_new(&w->arena, char, w->len + 9);
    memcpy(longer, w->bytes, w->len);
    for (size_t n = 0; n < w->len + 9; n++)
        if (n != w->len) refused(w, longer, n);
}

static void says(World *w, const char *expect, size_t n, const char *words) {
    WeightsFile out;
    assert_int_not_equal(weights_load(w->path, expect, n, &w->arena, &out), ERR_OK);
    if (strstr(err_why(), words) == NULL) fail_msg("%s: lacks: %s", err_why(), words);
}

static void test_says_what_is_wrong(void **state) {
    World *w = *state;
    says(w, "features=24\nhidden=32\n", N, "hidden is 64, expected 32");
    says(w, "hidden=640\n", N, "hidden is 64, expected 640");
    says(w, "chip=4+4\n", N, "chip is not given, expected 4+4");
    says(w, "", N + 1, "100 numbers, expected 101");
}

static void test_words(void **state) {
    World      *w = *state;
    WeightsFile out;
    char       *copy = arena_new(&w->arena, char, w->len);
    memcpy(copy, w->bytes, w->len);
    copy[w->len - 10] ^= 1;
    assert_int_not_equal(weights_parse("f", copy, w->len, "", 0, &w->arena, &out), ERR_OK);
    assert_non_null(strstr(err_why(), "checksum"));
    assert_int_not_equal(weights_parse("f", w->bytes, w->len - 1, "", 0, &w->arena, &out), ERR_OK);
    assert_non_null(strstr(err_why(), "truncated"));
    assert_int_not_equal(weights_parse("f", "PNG", 3, "", 0, &w->arena, &out), ERR_OK);
    assert_non_null(strstr(err_why(), "not a weights file"));
    copy[17] = '2';
    assert_int_equal(weights_parse("f", copy, w->len, "", 0, &w->arena, &out), ERR_UNSUPPORTED);
    assert_non_null(strstr(err_why(), "unsupported weights version"));
    assert_int_not_equal(weights_load("/nowhere/f", "", 0, &w->arena, &out), ERR_OK);
    assert_non_null(strstr(err_why(), "/nowhere/f"));
}

static void test_not_a_number(void **state) {
    World      *w = *state;
    WeightsFile out;
    FloatVec    b = float_vec_new(&w->arena, 3);
    b.at[2] = NAN;
    assert_int_equal(weights_save(w->path, "", b), ERR_INVALID);
    assert_int_equal(weights_load(w->path, "", N, &w->arena, &out), ERR_OK);  // unchanged
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_every_bit_counts),
        cmocka_unit_test(test_every_length_counts),
        cmocka_unit_test(test_says_what_is_wrong),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_not_a_number),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
