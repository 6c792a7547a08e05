#include "tests/kernel/arrays.h"

#include "kernel/ref/ref_random.h"
#include "tests/runner.h"

// The generator's published check value: output 10000 of MT19937 seeded with 5489 is 4123659995.
static void the_generator_is_the_published_one(void **state) {
    (void)state;
    Mersenne m;
    mersenne_seed(&m, 5489);
    double unit = 0;
    for (int i = 0; i < 5000; i++) unit = mersenne_unit(&m);
    uint32_t low = 4123659995u;
    uint64_t bits = (uint64_t)(unit * 0x1p53);
    assert_int_equal(bits & 0x3FFFFFF, low >> 6);
}

static void ratio_zero_keeps_everything(void **state) {
    (void)state;
    const float in[] = {1, -2, 3};
    float       out[3];
    uint8_t     mask[3] = {0};
    Tensor      x = ARRAY(DT_F32, in, 3), y = ARRAY(DT_F32, out, 3), m = ARRAY(DT_BOOL, mask, 3);
    ref_dropout(0, 1, &x, &y, &m);
    ASSERT_REALS(out, in);
    ASSERT_INTS(mask, ((uint8_t[]){1, 1, 1}));
}

static void what_stays_is_scaled_and_marked(void **state) {
    (void)state;
    enum { N = 2000 };
    static float in[N], out[N], mask[N];
    for (int i = 0; i < N; i++) in[i] = 1;
    Tensor x = ARRAY(DT_F32, in, N), y = ARRAY(DT_F32, out, N), m = ARRAY(DT_F32, mask, N);
    ref_dropout(0.75, 3, &x, &y, &m);
    int kept = 0;
    for (int i = 0; i < N; i++) {
        assert_true(out[i] == (mask[i] != 0 ? 4 : 0));
        kept += mask[i] != 0;
    }
    assert_in_range(kept, 400, 600);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_is_the_published_one),
        cmocka_unit_test(ratio_zero_keeps_everything),
        cmocka_unit_test(what_stays_is_scaled_and_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
