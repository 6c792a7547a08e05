#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "chip/cost/shape.h"
#include "model/work.h"
#include "model/zoo/zoo.h"
#include "tests/runner.h"

static Arena arena;

static int open_arena(void **state) {
    (void)state;
    return arena_init(&arena, (size_t)1 << 30) == ERR_OK ? 0 : -1;
}

static int close_arena(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

static double total(const char *network, int64_t batch, uint32_t *n) {
    Shape *s = NULL;
    double sum = 0;
    if (shape_list(network, batch, &arena, &s, n) != ERR_OK) fail_msg("%s", err_why());
    for (uint32_t i = 0; i < *n; i++) sum += shape_macs(&s[i]);
    return sum;
}

static double counted(const char *network) {
    Model              m = {0};
    ShapeCache         all;
    const ShapedGraph *s = NULL;
    Work               w = {0};
    Tensor             in[16];
    assert_int_equal(zoo_build(network, NULL, &m), ERR_OK);
    assert_true(m.graph->n_inputs <= 16);
    for (uint32_t i = 0; i < m.graph->n_inputs; i++)
        in[i] = m.graph->values[m.graph->inputs[i]].type;
    shape_cache_init(&all, &m, NULL);
    assert_int_equal(shape_cache_get(&all, in, &s), ERR_OK);
    assert_int_equal(work_total(s, &arena, &w), ERR_OK);
    shape_cache_finish(&all);
    model_finish(&m);
    return (double)w.macs;
}

static void test_no_work_is_lost(void **state) {
    (void)state;
    uint32_t n = 0;
    for (size_t i = 0; zoo_entry(i) != NULL; i++)
        assert_true(total(zoo_entry(i)->name, 1, &n) == counted(zoo_entry(i)->name));
}

static void test_published_totals(void **state) {
    (void)state;
    uint32_t n = 0;
    assert_true(total("resnet50", 1, &n) == 4089184256.0);
    assert_int_equal(n, 54);
    assert_true(total("mobilenet_v2", 1, &n) == 300774272.0);
    assert_int_equal(n, 53);
    assert_true(total("mobilenet_v2", 4, &n) == 4 * 300774272.0);
}

static void test_first_and_last_of_resnet(void **state) {
    (void)state;
    Shape   *s = NULL;
    uint32_t n = 0;
    assert_int_equal(shape_list("resnet50", 2, &arena, &s, &n), ERR_OK);
    assert_true(s[0].n == 2 && s[0].k == 64 && s[0].c == 3 && s[0].r == 7 && s[0].s == 7);
    assert_true(s[0].p == 112 && s[0].q == 112 && s[0].stride_h == 2 && s[0].groups == 1);
    assert_true(s[0].h == 229 && s[0].w == 229);
    assert_string_equal(s[0].op, "Conv");
    assert_true(s[n - 1].n == 2 && s[n - 1].k == 1000 && s[n - 1].c == 2048 && s[n - 1].p == 1);
    assert_string_equal(s[n - 1].op, "Gemm");
}

static void test_attention_products_are_groups(void **state) {
    (void)state;
    Shape   *s = NULL;
    uint32_t n = 0, heads = 0;
    assert_int_equal(shape_list("bert_base", 1, &arena, &s, &n), ERR_OK);
    for (uint32_t i = 0; i < n; i++) heads += s[i].groups == 12;
    assert_int_equal(heads, 24);
}

static void test_refused(void **state) {
    (void)state;
    Shape   *s = NULL;
    uint32_t n = 0;
    assert_int_not_equal(shape_list("resnet51", 1, &arena, &s, &n), ERR_OK);
    assert_non_null(strstr(err_why(), "resnet50"));
    assert_int_not_equal(shape_list("/nowhere/x.onnx", 1, &arena, &s, &n), ERR_OK);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_work_is_lost),
        cmocka_unit_test(test_published_totals),
        cmocka_unit_test(test_first_and_last_of_resnet),
        cmocka_unit_test(test_attention_products_are_groups),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
