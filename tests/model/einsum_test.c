// Einsum equations: their output shapes, and invalid ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/params/einsum.h"
#include "tests/model/call.h"
#include "tests/runner.h"

// Operands a [2, 3, 4] and, if two, b [2, 4, 5].
static Err einsum(const char *equation, int operands, Tensor *out) {
    Call c;
    call_begin(&c, OP_Einsum, 12);
    call_in(&c, DT_F32, SHAPE(2, 3, 4), NULL);
    if (operands > 1) call_in(&c, DT_F32, SHAPE(2, 4, 5), NULL);
    call_str(&c, "equation", equation);
    Err e = call_infer(&c);
    *out = c.out[0];
    call_finish(&c);
    return e;
}

static void shapes(void **state) {
    (void)state;
    Tensor y;
    assert_int_equal(einsum("bij,bjk->bik", 2, &y), ERR_OK);
    assert_true(call_shape_is(&y, SHAPE(2, 3, 5)));
    assert_int_equal(einsum(" b i j , b j k ", 2, &y), ERR_OK);  // implicit: labels that occur once
    assert_true(call_shape_is(&y, SHAPE(3, 5)));
    assert_int_equal(einsum("...ij,...jk->...ik", 2, &y), ERR_OK);
    assert_true(call_shape_is(&y, SHAPE(2, 3, 5)));
    assert_int_equal(einsum("...->...", 1, &y), ERR_OK);
    assert_true(call_shape_is(&y, SHAPE(2, 3, 4)));
    assert_int_equal(einsum("zyx", 1, &y), ERR_OK);
    assert_true(call_shape_is(&y, SHAPE(4, 3, 2)));
    assert_int_equal(einsum("abc->", 1, &y), ERR_OK);
    assert_int_equal(y.rank, 0);
    assert_int_equal(einsum("a...->...a", 1, &y), ERR_OK);
    assert_true(call_shape_is(&y, SHAPE(3, 4, 2)));
    assert_int_equal(einsum("abc,dce->abde", 2, &y), ERR_OK);
    assert_true(call_shape_is(&y, SHAPE(2, 3, 2, 5)));
}

static void invalid_equations(void **state) {
    (void)state;
    static const char *const one[] = {
        "",     "ab",      "abcd",    "abc->abd",         "abc->aab", "abc-",     "abc->a->b",
        "a1c",  "abc,abc", "...abcd", "a...b...c",        "abc->..",  "aab",      "abc>a",
        ",abc", "abc->a,", "->",      "abcdefghijklmnop", "....abc",  "\xff\xfe", "a.bc",
    };
    Tensor y;
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        assert_int_equal(einsum(one[i], 1, &y), ERR_INVALID);
    assert_int_equal(einsum("bij", 2, &y), ERR_INVALID);
    assert_int_equal(einsum("bij,bik->bk", 2, &y), ERR_INVALID);  // i is 3 and 4
}

// Five operands of rank 5 with twenty-five labels, and a result of rank nine.
static void too_many(void **state) {
    (void)state;
    Call c;
    call_begin(&c, OP_Einsum, 12);
    for (int i = 0; i < 5; i++) call_in(&c, DT_F32, SHAPE(1, 1, 1, 1, 1), NULL);
    call_str(&c, "equation", "abcde,fghij,klmno,pqrst,uvwxy->a");
    assert_int_equal(call_infer(&c), ERR_UNSUPPORTED);
    c.attrs[0].v.s.at = "abcde,fghij,abcde,abcde,abcde->abcdefghi";
    assert_int_equal(call_infer(&c), ERR_INVALID);
    call_finish(&c);
}

static void strides(void **state) {
    (void)state;
    Call    c;
    Einsum  e;
    int64_t stride[EINSUM_LABELS];
    call_begin(&c, OP_Einsum, 12);
    call_in(&c, DT_F32, SHAPE(3, 2, 3, 1), NULL);
    call_str(&c, "equation", "ijik->ji");
    assert_int_equal(einsum_read(&c.op, &e), ERR_OK);
    assert_true(e.n == 3 && e.n_out == 2 && e.dims[0] == 2 && e.dims[1] == 3 && e.dims[2] == 1);
    einsum_strides(&e, 0, c.in[0], stride);
    assert_true(stride[0] == 3 && stride[1] == 7 && stride[2] == 0);  // the diagonal: 6 + 1
    call_finish(&c);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes),
                                       cmocka_unit_test(invalid_equations),
                                       cmocka_unit_test(too_many), cmocka_unit_test(strides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
