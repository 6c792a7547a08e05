// Seeded weights keep activations in range: small networks give finite outputs of ordinary size
// that differ between elements and between inputs.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "compile/interp/interp.h"
#include "model/zoo/zoo.h"
#include "tests/runner.h"

static void fill_input(Tensor *t, Rng *r, Arena *a) {
    int64_t n = tensor_count(t);
    t->data = arena_alloc(a, (size_t)n, dtype_size(t->dtype), TENSOR_ALIGN);
    for (int64_t i = 0; i < n; i++) {
        if (t->dtype == DT_F32)
            ((float *)t->data)[i] = (float)rng_normal(r);
        else
            ((int64_t *)t->data)[i] = (int64_t)rng_below(r, 2);  // tokens, masks, rows of tables
    }
}

static Tensor first_output(Model *m, Rng r) {
    Graph       *g = m->graph;
    ShapedGraph *s = NULL;
    Tensor       in[3], out[3];
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        in[i] = g->values[g->inputs[i]].type;
        fill_input(&in[i], &r, &m->arena);
    }
    if (shaped_graph_make(g, in, interp_eval, &m->arena, &s) != ERR_OK ||
        interp_run(s, in, &(InterpLimits){0}, &m->arena, out) != ERR_OK)
        fail_msg("%s", err_why());
    return out[0];
}

static double deviation(const float *x, int64_t n) {
    double sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        assert_true(isfinite(x[i]));
        sum += (double)x[i];
        square += (double)x[i] * (double)x[i];
    }
    return sqrt(fmax(square / (double)n - sum / (double)n * (sum / (double)n), 0));
}

static void alive(const char *name, ZooOptions o) {
    Model m;
    assert_int_equal(zoo_build(name, &o, &m), ERR_OK);
    assert_int_equal(model_materialise(&m), ERR_OK);
    Tensor       a = first_output(&m, (Rng){1}), b = first_output(&m, (Rng){2});
    int64_t      n = tensor_count(&a);
    const float *x = a.data, *y = b.data;
    float       *apart = arena_new(&m.arena, float, (size_t)n);
    for (int64_t i = 0; i < n; i++) apart[i] = x[i] - y[i];
    double size = deviation(x, n), change = deviation(apart, n);
    print_message("%s: deviation %.3f, between two inputs %.3f\n", name, size, change);
    assert_true(size > 0.05 && size < 50);
    assert_true(change > 0.001 * size);
    model_finish(&m);
}

static void vision(void **state) {
    (void)state;
    alive("squeezenet1_1", (ZooOptions){0});
    alive("mobilenet_v2", (ZooOptions){0});
    alive("mobilenet_v3_large", (ZooOptions){0});
    alive("efficientnet_b0", (ZooOptions){0});
    alive("resnet18", (ZooOptions){0});
}

static void language(void **state) {
    (void)state;
    alive("bert_base", (ZooOptions){.sequence = 8});
    alive("mobile_bert", (ZooOptions){.sequence = 8});
}

static void recommendation_and_speech(void **state) {
    (void)state;
    alive("dlrm", (ZooOptions){.batch = 16});
    alive("lstm_kws", (ZooOptions){0});
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(vision), cmocka_unit_test(language),
                                       cmocka_unit_test(recommendation_and_speech)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
