#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "node/node_model.h"
#include "tests/runner.h"

typedef struct Fixture {
    Arena     arena;
    NodeModel model;
} Fixture;

static void make(Fixture *f) {
    NodeMachineSpec spec;
    assert_int_equal(arena_init(&f->arena, (size_t)1 << 30), ERR_OK);
    assert_int_equal(machine_load("server64", &f->arena, &spec), ERR_OK);
    assert_int_equal(model_of_zoo("squeezenet1_1", &spec, &f->arena, &f->model), ERR_OK);
}

static void close_to(float got, float want) {
    if (!(fabsf(got - want) <= 0.51F + want * 1e-6F))
        fail_msg("%.9g is not %.9g", (double)got, (double)want);
}

static void test_comes_back_as_it_was(void **state) {
    (void)state;
    Fixture   f;
    NodeModel back;
    make(&f);
    const NodeModel *m = &f.model;
    json_t          *j = model_to_json(m);
    assert_non_null(j);
    assert_int_equal(model_from_json(j, &f.arena, &back), ERR_OK);
    json_decref(j);
    assert_string_equal(back.name, m->name);
    assert_int_equal(back.n_layers, m->n_layers);
    assert_int_equal(back.n_counts, m->n_counts);
    for (uint32_t l = 0; l < m->n_layers; l++) {
        assert_string_equal(back.layers[l].name, m->layers[l].name);
        assert_int_equal(back.layers[l].n_versions, m->layers[l].n_versions);
        for (uint32_t v = 0; v < m->layers[l].n_versions; v++) {
            assert_int_equal(back.layers[l].versions[v].tasks, m->layers[l].versions[v].tasks);
            for (uint32_t k = 0; k < m->n_counts; k++) {
                close_to(node_time(&back, l, v, k, 3), node_time(m, l, v, k, 3));
                close_to(demand_core_ns(back.demand, l, v, k), demand_core_ns(m->demand, l, v, k));
            }
            for (uint32_t i = 0; i < DEMAND_SHARES * m->demand->n_slices; i++)
                close_to(demand_bytes(back.demand, l, v, 0)[i],
                         demand_bytes(m->demand, l, v, 0)[i]);
        }
    }
    float a = node_rest(&back, back.rest_best, 0, 0, 0), b = node_rest(m, m->rest_best, 0, 0, 0);
    assert_true(fabsf(a / b - 1) < 1e-3F);
    arena_finish(&f.arena);
}

static void refuses(Fixture *f, const char *why, json_t *j) {
    NodeModel back;
    assert_non_null(j);
    Err e = model_from_json(j, &f->arena, &back);
    if (e == ERR_OK) fail_msg("not refused: %s", why);
    json_decref(j);
}

static void test_refuses_what_does_not_fit(void **state) {
    (void)state;
    Fixture f;
    make(&f);
    json_t *good = model_to_json(&f.model), *j;
    refuses(&f, "nothing", json_object());
    j = json_deep_copy(good);
    json_object_set_new(j, "counts", json_pack("[i,i]", 2, 1));
    refuses(&f, "counts fall", j);
    j = json_deep_copy(good);
    json_array_clear(json_object_get(j, "layers"));
    refuses(&f, "no layers", j);
    j = json_deep_copy(good);
    json_t *version = json_array_get(
        json_object_get(json_array_get(json_object_get(j, "layers"), 0), "versions"), 0);
    json_object_set_new(version, "times", json_pack("[i]", 1));
    refuses(&f, "too few times", j);
    j = json_deep_copy(good);
    json_t *list = json_object_get(
        json_array_get(json_object_get(json_array_get(json_object_get(j, "layers"), 0), "versions"),
                       0),
        "core_ns");
    json_array_set_new(list, 0, json_integer(-1));
    refuses(&f, "a negative time", j);
    json_decref(good);
    arena_finish(&f.arena);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comes_back_as_it_was),
        cmocka_unit_test(test_refuses_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
