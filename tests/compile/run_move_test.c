// Operators that move, select and collect: inference and kernel together.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "tests/compile/call_run.h"
#include "tests/runner.h"

static void must_run(Call *c) {
    if (call_run(c) != ERR_OK) fail_msg("%s", err_why());
}

static void assert_i64s(const Tensor *t, int64_t n, const int64_t *want) {
    assert_int_equal(tensor_count(t), n);
    for (int64_t i = 0; i < n; i++) assert_true(((const int64_t *)t->data)[i] == want[i]);
}

static void assert_texts(const Tensor *t, const char *joined) {
    char       all[128] = "";
    const Str *s = t->data;
    for (int64_t i = 0; i < tensor_count(t); i++) {
        strncat(all, s[i].at, s[i].len);
        strcat(all, "|");
    }
    assert_string_equal(all, joined);
}

// One axis, element by element. Unlike Python, ONNX clamps a start before the front to the front.
static int64_t slice_slowly(int64_t dim, int64_t start, int64_t end, int64_t step, int64_t *out) {
    int64_t n = 0;
    for (int64_t i = step > 0 ? 0 : dim - 1; i >= 0 && i<dim; i += step> 0 ? 1 : -1) {
        int64_t from = start < -dim ? -1 : start < 0 ? start + dim : start;
        int64_t to = end < -dim ? -1 : end < 0 ? end + dim : end;
        if (from >= dim) from = step > 0 ? dim : dim - 1;
        if (from < 0) from = 0;
        bool     inside = step > 0 ? i >= from && i < to : i <= from && i > to;
        uint64_t apart = (uint64_t)(step > 0 ? i - from : from - i);
        uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
        if (inside && apart % size == 0) out[n++] = i;
    }
    return n;
}

static void slices_agree_with_the_slow_rule(void **state) {
    (void)state;
    static const int64_t odd[] = {INT64_MIN, INT64_MAX, INT64_MIN + 1, -9, 9};
    Rng                  rng = {11};
    for (int round = 0; round < 3000; round++) {
        Call    c;
        int64_t p[3], data[7] = {0, 1, 2, 3, 4, 5, 6}, want[7], dim = (int64_t)rng_below(&rng, 8);
        for (int i = 0; i < 3; i++)
            p[i] = rng_below(&rng, 4) == 0 ? odd[rng_below(&rng, 5)]
                                           : (int64_t)rng_below(&rng, 17) - 8;
        if (p[2] == 0) p[2] = 1;
        int64_t n = slice_slowly(dim, p[0], p[1], p[2], want), axis = 0;
        call_begin(&c, OP_Slice, 13);
        call_in(&c, DT_I64, SHAPE(dim), data);
        call_in(&c, DT_I64, SHAPE(1), &p[0]);
        call_in(&c, DT_I64, SHAPE(1), &p[1]);
        call_in(&c, DT_I64, SHAPE(1), &axis);
        call_in(&c, DT_I64, SHAPE(1), &p[2]);
        must_run(&c);
        assert_i64s(c.out, n, want);
        call_finish(&c);
    }
}

static void unique_orders_everything(void **state) {
    (void)state;
    const Str   words[] = {{"b", 1}, {"a", 1}, {"", 0}, {"ab", 2}, {"b", 1}};
    const float reals[] = {NAN, 1, 0, NAN, -0.0f};
    Call        c;
    call_begin(&c, OP_Unique, 11);
    c.node.n_out = 4;
    call_in(&c, DT_STR, SHAPE(5), words);
    must_run(&c);
    assert_texts(&c.out[0], "|a|ab|b|");
    assert_i64s(&c.out[1], 4, (int64_t[]){2, 1, 3, 0});
    assert_i64s(&c.out[2], 5, (int64_t[]){3, 1, 0, 2, 3});
    assert_i64s(&c.out[3], 4, (int64_t[]){1, 1, 1, 2});
    call_finish(&c);
    call_begin(&c, OP_Unique, 11);
    c.node.n_out = 4;
    call_int(&c, "sorted", 0);
    call_in(&c, DT_F32, SHAPE(5), reals);
    must_run(&c);
    assert_i64s(&c.out[1], 3, (int64_t[]){0, 1, 2});
    assert_i64s(&c.out[3], 3, (int64_t[]){2, 1, 2});
    call_finish(&c);
}

static void conditions_must_not_reach_too_far(void **state) {
    (void)state;
    const uint8_t yes[] = {0, 1, 0, 1};
    const float   x[] = {1, 2, 3};
    Call          c;
    call_begin(&c, OP_Compress, 11);
    call_in(&c, DT_F32, SHAPE(3), x);
    call_in(&c, DT_BOOL, SHAPE(4), yes);
    assert_int_equal(call_run(&c), ERR_INVALID);
    c.tensors[1].dims[0] = 3;
    must_run(&c);
    assert_true(*(float *)c.out[0].data == 2);
    call_finish(&c);
}

static void boxes_with_strange_scores_go(void **state) {
    (void)state;
    const float boxes[] = {0, 0, 1, 1, NAN, 0, 1, 1, 0, 0, 1, 1, 5, 5, 6, 6};
    const float scores[] = {0.5f, NAN, 0.5f, INFINITY}, overlap = 0.5f;
    int64_t     most = INT64_MAX;
    Call        c;
    call_begin(&c, OP_NonMaxSuppression, 11);
    call_in(&c, DT_F32, SHAPE(1, 4, 4), boxes);
    call_in(&c, DT_F32, SHAPE(1, 1, 4), scores);
    call_in(&c, DT_I64, SCALAR, &most);
    call_in(&c, DT_F32, SCALAR, &overlap);
    must_run(&c);
    assert_i64s(c.out, 6, (int64_t[]){0, 0, 3, 0, 0, 0});
    most = INT64_MIN;
    must_run(&c);
    assert_int_equal(c.out[0].dims[0], 0);
    call_finish(&c);
}

static void strings_are_normalised(void **state) {
    (void)state;
    const Str words[] = {{"Der", 3}, {"HUND", 4}, {"Äpfel", 6}}, stop[] = {{"DER", 3}};
    Call      c;
    call_begin(&c, OP_StringNormalizer, 10);
    call_str(&c, "case_change_action", "LOWER");
    call_strings(&c, "stopwords", 1, stop);
    call_in(&c, DT_STR, SHAPE(1, 3), words);
    must_run(&c);
    assert_true(call_shape_is(c.out, SHAPE(1, 2)));
    assert_texts(c.out, "hund|äpfel|");
    call_finish(&c);
    call_begin(&c, OP_StringSplit, 20);
    c.node.n_out = 2;
    call_str(&c, "delimiter", "e");
    call_in(&c, DT_STR, SHAPE(3), words);
    must_run(&c);
    assert_texts(&c.out[0], "D|r|HUND||Äpf|l|");
    assert_i64s(&c.out[1], 3, (int64_t[]){2, 1, 2});
    call_finish(&c);
    call_begin(&c, OP_StringConcat, 20);
    call_in(&c, DT_STR, SHAPE(3), words);
    call_in(&c, DT_STR, SHAPE(1), stop);
    must_run(&c);
    assert_texts(c.out, "DerDER|HUNDDER|ÄpfelDER|");
    call_finish(&c);
}

static void grams_must_fit_their_pool(void **state) {
    (void)state;
    const int64_t x[] = {1, 2, 1}, pool[] = {1, 1, 2}, counts[] = {0, 1};
    int64_t       columns[] = {1, 0};
    const float   weights[] = {2, 3};
    Call          c;
    call_begin(&c, OP_TfIdfVectorizer, 9);
    call_in(&c, DT_I64, SHAPE(3), x);
    call_str(&c, "mode", "TFIDF");
    call_int(&c, "min_gram_length", 1);
    call_int(&c, "max_gram_length", 2);
    call_int(&c, "max_skip_count", INT64_MAX);
    call_ints(&c, "pool_int64s", 3, pool);
    call_ints(&c, "ngram_counts", 2, counts);
    call_ints(&c, "ngram_indexes", 2, columns);
    call_floats(&c, "weights", 2, weights);
    must_run(&c);
    assert_int_equal(c.out[0].dims[0], 2);
    assert_true(((float *)c.out[0].data)[0] == 3 && ((float *)c.out[0].data)[1] == 4);
    columns[0] = -1;
    assert_int_equal(call_run(&c), ERR_INVALID);
    columns[0] = INT64_MAX;
    assert_int_equal(call_run(&c), ERR_INVALID);
    columns[0] = 1;
    c.attrs[4].n = 2;  // half a pair in the pool
    assert_int_equal(call_run(&c), ERR_INVALID);
    call_finish(&c);
}

static void sequence_of_three(Call *c, Tensor *sequence) {
    static const int64_t numbers[] = {10, 20, 30, 40, 50, 60};
    call_begin(c, OP_SplitToSequence, 11);
    call_int(c, "axis", 0);
    call_int(c, "keepdims", 0);
    call_in(c, DT_I64, SHAPE(3, 2), numbers);
    must_run(c);
    *sequence = c->out[0];
    assert_int_equal(sequence->dims[0], 3);
    assert_true(call_shape_is(sequence->data, SHAPE(2)));
}

static void call_sequence(Call *c, OpId op, const Tensor *s) {
    call_begin(c, op, 11);
    call_in(c, DT_SEQ, SHAPE(s->dims[0]), s->data);
}

static void sequences_grow_and_shrink(void **state) {
    (void)state;
    const int64_t more[] = {1, 2};
    int64_t       at = -1;
    Call          split, insert, erase, join, get;
    Tensor        s;
    sequence_of_three(&split, &s);
    call_sequence(&insert, OP_SequenceInsert, &s);
    call_in(&insert, DT_I64, SHAPE(2), more);
    call_in(&insert, DT_I64, SCALAR, &at);
    must_run(&insert);
    call_sequence(&erase, OP_SequenceErase, &insert.out[0]);
    call_in(&erase, DT_I64, SCALAR, (int64_t[]){0});
    must_run(&erase);
    call_sequence(&join, OP_ConcatFromSequence, &erase.out[0]);
    call_int(&join, "axis", 1);
    call_int(&join, "new_axis", 1);
    must_run(&join);
    assert_true(call_shape_is(&join.out[0], SHAPE(2, 3)));
    assert_i64s(&join.out[0], 6, (int64_t[]){30, 1, 50, 40, 2, 60});
    at = 3;
    call_sequence(&get, OP_SequenceAt, &erase.out[0]);
    call_in(&get, DT_I64, SCALAR, &at);
    assert_int_equal(call_run(&get), ERR_INVALID);
    at = -4;
    assert_int_equal(call_run(&get), ERR_INVALID);
    at = -3;
    must_run(&get);
    assert_i64s(&get.out[0], 2, (int64_t[]){30, 40});
    Call *all[] = {&split, &insert, &erase, &join, &get};
    for (int i = 0; i < 5; i++) call_finish(all[i]);
}

static void optionals_hold_or_not(void **state) {
    (void)state;
    const int64_t x[] = {5};
    Call          make, get, has;
    call_begin(&make, OP_Optional, 15);
    call_in(&make, DT_I64, SHAPE(1), x);
    must_run(&make);
    call_begin(&get, OP_OptionalGetElement, 15);
    call_in(&get, DT_OPT, SHAPE(1), make.out[0].data);
    must_run(&get);
    assert_i64s(&get.out[0], 1, x);
    get.tensors[0].dims[0] = 0;
    assert_int_equal(call_run(&get), ERR_INVALID);
    call_begin(&has, OP_OptionalHasElement, 18);
    must_run(&has);
    assert_int_equal(*(uint8_t *)has.out[0].data, 0);
    call_in(&has, DT_I64, SHAPE(1), x);
    must_run(&has);
    assert_int_equal(*(uint8_t *)has.out[0].data, 1);
    call_finish(&make);
    call_finish(&get);
    call_finish(&has);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_agree_with_the_slow_rule),
        cmocka_unit_test(unique_orders_everything),
        cmocka_unit_test(conditions_must_not_reach_too_far),
        cmocka_unit_test(boxes_with_strange_scores_go),
        cmocka_unit_test(strings_are_normalised),
        cmocka_unit_test(grams_must_fit_their_pool),
        cmocka_unit_test(sequences_grow_and_shrink),
        cmocka_unit_test(optionals_hold_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
