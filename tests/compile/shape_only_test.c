// Shape-only programs have the same steps in a fraction of time and memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "compile/interp/interp.h"
#include "compile/program.h"
#include "model/fold.h"
#include "model/zoo/zoo.h"
#include "tests/runner.h"

typedef struct Made {
    Model      model;
    ShapeCache shape_cache;
    Program    program;
} Made;

static void make(Made *m, const char *name, bool shape_only) {
    ZooOptions         z = {.batch = 1, .seed = 1};
    const ShapedGraph *s = NULL;
    Tensor             types[8];
    assert_int_equal(zoo_build(name, &z, &m->model), ERR_OK);
    if (!shape_only) assert_int_equal(model_materialise(&m->model), ERR_OK);
    assert_int_equal(fold_constants(&m->model, interp_eval), ERR_OK);
    const Graph *g = m->model.graph;
    for (uint32_t i = 0; i < g->n_inputs; i++) types[i] = g->values[g->inputs[i]].type;
    shape_cache_init(&m->shape_cache, &m->model, interp_eval);
    assert_int_equal(shape_cache_get(&m->shape_cache, types, &s), ERR_OK);
    assert_int_equal(program_make(&m->program, s, &(ProgramOptions){.shape_only = shape_only}),
                     ERR_OK);
}

static void drop(Made *m) {
    program_finish(&m->program);
    shape_cache_finish(&m->shape_cache);
    model_finish(&m->model);
}

static void compare(const char *name) {
    Made full, shape_only;
    make(&full, name, false);
    make(&shape_only, name, true);
    assert_int_equal(full.program.n_steps, shape_only.program.n_steps);
    assert_true(full.program.arena_bytes == shape_only.program.arena_bytes);
    for (uint32_t i = 0; i < full.program.n_steps; i++) {
        const Step *a = &full.program.steps[i], *b = &shape_only.program.steps[i];
        assert_ptr_equal(a->kind, b->kind);
        assert_true(a->macs == b->macs);
        assert_true(a->io_bytes == b->io_bytes && a->const_bytes == b->const_bytes);
        assert_int_equal(a->key == NULL, b->key == NULL);
        if (a->key != NULL) assert_string_equal(a->key, b->key);
        assert_true(version_same(&a->versions[0], &b->versions[0]));
        assert_int_equal(a->kind->tasks(a, &a->versions[0]), b->kind->tasks(b, &b->versions[0]));
    }
    drop(&full);
    drop(&shape_only);
}

static void test_same_steps(void **state) {
    (void)state;
    static const char *const names[] = {"squeezenet1_1", "mobilenet_v2", "efficientnet_b0",
                                        "lstm_kws"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) compare(names[i]);
}

static long peak_kb(void) {
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static void test_large_networks_take_no_memory(void **state) {
    (void)state;
    Made m;
    long before = peak_kb();
    make(&m, "bert_large", true);
    assert_true(m.program.shape_only && m.program.n_steps > 200);
    double macs = 0;
    for (uint32_t i = 0; i < m.program.n_steps; i++) macs += m.program.steps[i].macs;
    assert_true(macs > 115e9 && macs < 130e9);
    drop(&m);
    assert_true(peak_kb() - before < 64 << 10);  // its weights are 1.3 GB
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_networks_take_no_memory),
        cmocka_unit_test(test_same_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
