// Sliding windows from attributes: sizes computed by hand, and invalid parameters.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/params/sliding_window.h"
#include "tests/model/call.h"
#include "tests/runner.h"

static const Tensor image = {.dtype = DT_F32, .rank = 4, .dims = {1, 3, 7, 10}};

static void explicit_pads(void **state) {
    (void)state;
    Call          c;
    SlidingWindow w;
    call_begin(&c, OP_MaxPool, 12);
    call_ints(&c, "kernel_shape", SHAPE(3, 2));
    call_ints(&c, "strides", SHAPE(2, 3));
    call_ints(&c, "pads", SHAPE(1, 0, 0, 1));
    call_ints(&c, "dilations", SHAPE(2, 1));
    assert_int_equal(sliding_window_read(&c.node, &image, NULL, &w), ERR_OK);
    assert_int_equal(w.out[0], 2);  // (7 + 1 - 5) / 2 + 1
    assert_int_equal(w.out[1], 4);  // (10 + 1 - 2) / 3 + 1
    assert_int_equal(w.pad[0], 1);
    assert_int_equal(w.pad_end[1], 1);
    call_finish(&c);
}

static void same_places_odd_padding(void **state) {
    (void)state;
    for (int lower = 0; lower < 2; lower++) {
        Call          c;
        SlidingWindow w;
        call_begin(&c, OP_MaxPool, 12);
        call_ints(&c, "kernel_shape", SHAPE(2, 3));
        call_ints(&c, "strides", SHAPE(1, 3));
        call_str(&c, "auto_pad", lower ? "SAME_LOWER" : "SAME_UPPER");
        assert_int_equal(sliding_window_read(&c.node, &image, NULL, &w), ERR_OK);
        assert_int_equal(w.out[0], 7);
        assert_int_equal(w.out[1], 4);
        assert_int_equal(w.pad[0], lower);
        assert_int_equal(w.pad_end[0], 1 - lower);
        assert_int_equal(w.pad[1] + w.pad_end[1], 2);
        call_finish(&c);
    }
}

// With ceil_mode the last window may extend past the end, but must not start behind it.
static void ceil_mode(void **state) {
    (void)state;
    Call          c;
    SlidingWindow w;
    Tensor        x = {.dtype = DT_F32, .rank = 3, .dims = {1, 1, 4}};
    call_begin(&c, OP_MaxPool, 12);
    call_ints(&c, "kernel_shape", SHAPE(1));
    call_ints(&c, "strides", SHAPE(2));
    call_ints(&c, "pads", SHAPE(0, 1));
    call_int(&c, "ceil_mode", 1);
    assert_int_equal(sliding_window_read(&c.node, &x, NULL, &w), ERR_OK);
    assert_int_equal(w.out[0], 2);
    call_finish(&c);
}

static void transposed(void **state) {
    (void)state;
    Call          c;
    SlidingWindow w;
    call_begin(&c, OP_ConvTranspose, 11);
    call_ints(&c, "strides", SHAPE(2, 2));
    call_ints(&c, "pads", SHAPE(1, 1, 0, 0));
    call_ints(&c, "output_padding", SHAPE(1, 0));
    assert_int_equal(sliding_window_read_transposed(&c.node, &image, (int64_t[]){3, 3}, &w),
                     ERR_OK);
    assert_int_equal(w.in[0], 15);  // 6 * 2 + 1 + 3 - 1
    assert_int_equal(w.in[1], 20);  // 9 * 2 + 3 - 1
    call_ints(&c, "output_shape", SHAPE(13, 19));
    assert_int_equal(sliding_window_read_transposed(&c.node, &image, (int64_t[]){3, 3}, &w),
                     ERR_OK);
    assert_int_equal(w.in[0], 13);
    assert_int_equal(w.pad[0], 2);  // of 3, the larger half comes first
    assert_int_equal(w.pad_end[0], 1);
    call_finish(&c);
}

// Each row is one attribute that is rejected beside a valid kernel of 3x3.
static void hostile(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int32_t     n;
        int64_t     v[6];
    } rows[] = {
        {"strides", 2, {0, 1}},
        {"strides", 2, {1, -1}},
        {"strides", 2, {1, INT64_MAX}},
        {"strides", 3, {1, 1, 1}},
        {"strides", 1, {1}},
        {"dilations", 2, {0, 1}},
        {"dilations", 2, {4, 1}},
        {"dilations", 2, {INT64_MAX, INT64_MAX}},
        {"dilations", 2, {1 << 30, 1 << 30}},
        {"pads", 4, {-1, 0, 0, 0}},
        {"pads", 4, {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}},
        {"pads", 4, {0, INT64_MIN, 0, 0}},
        {"pads", 2, {0, 0}},
        {"kernel_shape", 2, {3, 4}},
        {"kernel_shape", 2, {3, 0}},
        {"kernel_shape", 3, {3, 3, 3}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Call          c;
        SlidingWindow w;
        call_begin(&c, OP_Conv, 11);
        call_ints(&c, rows[i].name, rows[i].n, rows[i].v);
        assert_int_equal(sliding_window_read(&c.node, &image, (int64_t[]){3, 3}, &w), ERR_INVALID);
        call_finish(&c);
    }
}

static void hostile_shapes(void **state) {
    (void)state;
    Call          c;
    SlidingWindow w;
    call_begin(&c, OP_Conv, 11);
    Tensor flat = {.dtype = DT_F32, .rank = 2, .dims = {1, 3}};
    Tensor empty = {.dtype = DT_F32, .rank = 3, .dims = {1, 3, 0}};
    Tensor huge = {.dtype = DT_F32, .rank = 3, .dims = {1, 3, INT64_MAX}};
    assert_int_equal(sliding_window_read(&c.node, &flat, (int64_t[]){1}, &w), ERR_INVALID);
    assert_int_equal(sliding_window_read(&c.node, &empty, (int64_t[]){1}, &w), ERR_INVALID);
    assert_int_equal(sliding_window_read(&c.node, &huge, (int64_t[]){1}, &w), ERR_INVALID);
    assert_int_equal(sliding_window_read(&c.node, &image, (int64_t[]){8, 1}, &w), ERR_INVALID);
    assert_int_equal(sliding_window_read(&c.node, &image, (int64_t[]){0, 1}, &w), ERR_INVALID);
    assert_int_equal(sliding_window_read(&c.node, &image, NULL, &w), ERR_INVALID);
    huge.dims[2] = INT64_C(1) << 46;
    call_ints(&c, "strides", SHAPE(1 << 30));
    assert_int_equal(sliding_window_read_transposed(&c.node, &huge, (int64_t[]){1}, &w),
                     ERR_INVALID);
    call_str(&c, "auto_pad", "SAME");
    assert_int_equal(sliding_window_read(&c.node, &image, (int64_t[]){1, 1}, &w), ERR_INVALID);
    call_finish(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explicit_pads), cmocka_unit_test(same_places_odd_padding),
        cmocka_unit_test(ceil_mode),     cmocka_unit_test(transposed),
        cmocka_unit_test(hostile),       cmocka_unit_test(hostile_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
