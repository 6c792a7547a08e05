// Classification: the highest values as text, against sorting all of them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/work_stop.h"
#include "serve/tensor/classification.h"
#include "tests/runner.h"

static size_t plenty = 1 << 24;

static const char *text_at(const Tensor *t, int64_t i) {
    static char text[4][512];
    static int  at;
    at = (at + 1) % 4;
    Str s = ((const Str *)t->data)[i];
    assert_true(s.len < sizeof text[at]);
    memcpy(text[at], s.at, s.len);
    text[at][s.len] = '\0';
    return text[at];
}

static void highest_first(void **state) {
    (void)state;
    Arena a;
    float numbers[] = {1, 5, 10, 4};
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    Tensor     t = tensor_of(DT_F32, 1, (int64_t[]){4}, numbers);
    Str        labels[] = {{"pear", 4}, {"plum", 4}, {"apple", 5}};
    TensorSpec spec = {.name = "y", .labels = labels, .n_labels = 3};
    assert_int_equal(classification_apply(&spec, false, 3, &plenty, &a, &t), ERR_OK);
    assert_true(t.dtype == DT_STR && t.rank == 1 && t.dims[0] == 3);
    assert_string_equal(text_at(&t, 0), "10.000000:2:apple");
    assert_string_equal(text_at(&t, 1), "5.000000:1:plum");
    assert_string_equal(text_at(&t, 2), "4.000000:3");
    arena_finish(&a);
}

static void batches(void **state) {
    (void)state;
    Arena      a;
    int32_t    numbers[] = {7, -1, 7, 3, 2, 9};
    TensorSpec spec = {.name = "y"};
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    Tensor t = tensor_of(DT_I32, 2, (int64_t[]){2, 3}, numbers), whole = t, more = t;
    assert_int_equal(classification_apply(&spec, true, 2, &plenty, &a, &t), ERR_OK);
    assert_true(t.rank == 2 && t.dims[0] == 2 && t.dims[1] == 2);
    assert_string_equal(text_at(&t, 0), "7:0");  // equal values in order of their index
    assert_string_equal(text_at(&t, 1), "7:2");
    assert_string_equal(text_at(&t, 2), "9:2");
    assert_string_equal(text_at(&t, 3), "3:0");
    assert_int_equal(classification_apply(&spec, false, 1, &plenty, &a, &whole), ERR_OK);
    assert_true(whole.rank == 1 && whole.dims[0] == 1);
    assert_string_equal(text_at(&whole, 0), "9:5");
    assert_int_equal(classification_apply(&spec, true, INT64_MAX, &plenty, &a, &more), ERR_OK);
    assert_true(more.dims[1] == 3);
    arena_finish(&a);
}

static const double *ranked;

static int by_rank(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    double   p = ranked[a], q = ranked[b];
    if (p > q) return -1;
    if (p < q) return 1;
    return a < b ? -1 : 1;
}

static void same_as_sorting(void **state) {
    (void)state;
    Arena      a;
    Rng        rng = {7};
    TensorSpec spec = {.name = "y"};
    assert_int_equal(arena_init(&a, 1 << 26), ERR_OK);
    for (uint32_t round = 0; round < 40; round++) {
        arena_rewind(&a, 0);
        uint32_t  n = 1 + (uint32_t)rng_below(&rng, 300), k = 1 + (uint32_t)rng_below(&rng, n);
        double   *v = arena_new(&a, double, n);
        uint32_t *order = arena_new(&a, uint32_t, n);
        for (uint32_t i = 0; i < n; i++) {
            v[i] = (double)rng_below(&rng, 50) - 25;
            order[i] = i;
        }
        ranked = v;
        qsort(order, n, sizeof *order, by_rank);
        Tensor t = tensor_of(DT_F64, 1, (int64_t[]){n}, v);
        assert_int_equal(classification_apply(&spec, false, k, &plenty, &a, &t), ERR_OK);
        assert_int_equal(t.dims[0], k);
        for (uint32_t i = 0; i < k; i++) {
            char want[64];
            (void)snprintf(want, sizeof want, "%f:%u", v[order[i]], order[i]);
            assert_string_equal(text_at(&t, i), want);
        }
    }
    arena_finish(&a);
}

static void limits(void **state) {
    (void)state;
    Arena      a;
    float      numbers[] = {__builtin_nanf(""), -__builtin_inff(), 2};
    TensorSpec spec = {.name = "y"};
    assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
    Tensor t = tensor_of(DT_F32, 1, (int64_t[]){3}, numbers), same = t;
    assert_int_equal(classification_apply(&spec, false, 3, &(size_t){20}, &a, &t), ERR_LIMIT);
    assert_ptr_equal(t.data, numbers);
    assert_int_equal(classification_apply(&spec, false, 3, &plenty, &a, &same), ERR_OK);
    assert_string_equal(text_at(&same, 2), "nan:0");
    Tensor none = tensor_of(DT_F32, 2, (int64_t[]){0, 3}, NULL);
    assert_int_equal(classification_apply(&spec, true, 2, &plenty, &a, &none), ERR_OK);
    assert_true(none.dtype == DT_STR && none.dims[0] == 0);
    Tensor large = tensor_of(DT_F32, 1, (int64_t[]){CLASSIFICATION_ELEMENTS + 1}, numbers);
    assert_int_equal(classification_apply(&spec, false, 1, &plenty, &a, &large), ERR_LIMIT);
    Tensor text = tensor_of(DT_STR, 1, (int64_t[]){1}, &(Str){"x", 1});
    assert_int_equal(classification_apply(&spec, false, 1, &plenty, &a, &text), ERR_INVALID);
    arena_finish(&a);
}

// Ranking and printing end early once the run was told to stop.
static void stops(void **state) {
    (void)state;
    Arena      a;
    float      numbers[] = {1, 5, 10, 4};
    WorkFlag   flag = WORK_GO, *before = work_stop_watch(&flag);
    TensorSpec spec = {.name = "y"};
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    Tensor t = tensor_of(DT_F32, 1, (int64_t[]){4}, numbers), whole = t;
    work_stop_tell(&flag, WORK_STOP);
    assert_int_equal(classification_apply(&spec, false, 4, &plenty, &a, &t), ERR_LIMIT);
    assert_true(t.dtype == DT_F32);
    (void)work_stop_watch(before);
    assert_int_equal(classification_apply(&spec, false, 4, &plenty, &a, &whole), ERR_OK);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(highest_first),   cmocka_unit_test(batches),
        cmocka_unit_test(same_as_sorting), cmocka_unit_test(limits),
        cmocka_unit_test(stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
