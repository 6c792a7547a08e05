// drl_single: gradients by finite differences, choices, invalid weights.
#include "policy/cluster/drl/drl.h"

#include <stdlib.h>
#include <unistd.h>

#include "learn/weights_file.h"
#include "tests/learn/gradient.h"
#include "tests/runner.h"

enum { ROWS = 3, HIDDEN = 6 };

static const DrlNet net = {HIDDEN};

typedef struct NetCase {
    float *w;
    float  x[ROWS * DRL_IN], y[ROWS * DRL_OUT], dy[ROWS * DRL_OUT], cache[4 * ROWS * HIDDEN];
} NetCase;

static double loss(void *ctx) {
    NetCase *s = ctx;
    double   sum = 0;
    drl_net_forward(net, s->w, ROWS, s->x, s->y, s->cache);
    for (uint32_t i = 0; i < ROWS * DRL_OUT; i++) sum += (double)s->y[i] * (double)s->dy[i];
    return sum;
}

static void test_gradients(void **state) {
    (void)state;
    Arena a;
    Rng   rng = {3};
    assert_int_equal(arena_init(&a, (size_t)1 << 24), ERR_OK);
    assert_int_equal(drl_net_cache(net, ROWS), 4 * ROWS * HIDDEN);
    NetCase *s = arena_new(&a, NetCase, 1);
    size_t   n = drl_net_params(net);
    FloatVec g = float_vec_new(&a, n);
    s->w = float_vec_new(&a, n).at;
    drl_net_init(net, s->w, &rng);
    gradient_fill(&rng, s->x, ROWS * DRL_IN, 1);
    gradient_fill(&rng, s->dy, ROWS * DRL_OUT, 1);
    assert_true(loss(s) == 0);  // after initialisation all outputs are 0
    gradient_fill(&rng, s->w, n, 0.3f);
    (void)loss(s);
    drl_net_backward(net, s->w, g.at, ROWS, s->x, s->dy, s->cache);
    gradient_check("w", loss, s, s->w, g.at, n, 300, &rng);
    arena_finish(&a);
}

static void test_takes_the_highest_that_can_be(void **state) {
    (void)state;
    DrlObservation seen = {.n = 3, .can = {[1] = true, [2] = true, [DRL_WINDOW] = true}};
    float          scores[DRL_OUT] = {9, 1, 2, [DRL_WINDOW] = 0};
    assert_int_equal(drl_best(&seen, scores), 2);
    scores[1] = 2;
    assert_int_equal(drl_best(&seen, scores), 1);  // the first of equals
    scores[DRL_WINDOW] = 3;
    assert_int_equal(drl_best(&seen, scores), DRL_WINDOW);
    seen.can[DRL_WINDOW] = false;
    assert_int_equal(drl_best(&seen, scores), 1);
}

static void test_weights(void **state) {
    (void)state;
    Arena       a;
    DrlLoaded   l;
    const char *dir = getenv("TMPDIR");
    assert_int_equal(arena_init(&a, (size_t)1 << 24), ERR_OK);
    char    *path = arena_printf(&a, "%s/drl_test.%ld", dir != NULL ? dir : "/tmp", (long)getpid());
    FloatVec w = float_vec_new(&a, drl_net_params(net));
    assert_int_equal(drl_weights_load("none", &a, &l), ERR_OK);
    assert_null(l.w);
    assert_int_equal(drl_weights_load("", &a, &l), ERR_OK);  // the shipped weights
    assert_non_null(l.w);
    assert_int_equal(weights_save(path, drl_weights_facts(net, &a), w), ERR_OK);
    assert_int_equal(drl_weights_load(path, &a, &l), ERR_OK);
    assert_int_equal(l.net.hidden, HIDDEN);
    assert_int_equal(weights_save(path, drl_weights_facts((DrlNet){HIDDEN + 1}, &a), w), ERR_OK);
    assert_int_not_equal(drl_weights_load(path, &a, &l), ERR_OK);
    assert_int_equal(weights_save(path, "policy=other\n", w), ERR_OK);
    assert_int_not_equal(drl_weights_load(path, &a, &l), ERR_OK);
    assert_int_equal(unlink(path), 0);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_takes_the_highest_that_can_be),
        cmocka_unit_test(test_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
