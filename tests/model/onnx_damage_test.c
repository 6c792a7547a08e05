// Standard networks with bytes flipped, cut and inserted: a clean error, or a model that infers.
#include "tests/model/onnx_build.h"

#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "model/onnx/onnx.h"
#include "model/shaped_graph.h"
#include "model/zoo/zoo.h"
#include "tests/runner.h"

enum { ROUNDS = 300, STRUCTURE = 16384 };  // the writer puts nodes before weights

static Err infer(const Model *m) {
    Arena        a;
    ShapedGraph *s = NULL;
    Tensor      *in = NULL;
    assert_int_equal(arena_init(&a, (size_t)1 << 32), ERR_OK);
    in = arena_new(&a, Tensor, m->graph->n_inputs);
    for (uint32_t i = 0; i < m->graph->n_inputs; i++)
        in[i] = m->graph->values[m->graph->inputs[i]].type;
    Err e = shaped_graph_make(m->graph, in, NULL, &a, &s);
    arena_finish(&a);
    return e;
}

// Changes one byte range, half of the time among the nodes. Returns the new length.
static size_t damage(uint8_t *at, size_t n, Rng *r) {
    size_t part = n > STRUCTURE && rng_below(r, 2) == 0 ? STRUCTURE : n;
    size_t where = (size_t)rng_below(r, part);
    switch (rng_below(r, 4)) {
    case 0: at[where] ^= (uint8_t)(1u << rng_below(r, 8)); return n;
    case 1: at[where] = (uint8_t)rng_u64(r); return n;
    case 2: memmove(at + where, at + where + 1, n - where - 1); return n - 1;
    default:
        memmove(at + where + 1, at + where, n - where);
        at[where] = (uint8_t)rng_u64(r);
        return n + 1;
    }
}

static void survive(const char *name) {
    char  path[] = "/tmp/onnx_damage_XXXXXX", *bytes = NULL;
    Model m;
    Arena a;
    Rng   r = {7};
    int   fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0);
    assert_int_equal(arena_init(&a, (size_t)1 << 30), ERR_OK);
    assert_int_equal(zoo_build(name, NULL, &m), ERR_OK);
    assert_int_equal(onnx_write(&m, path), ERR_OK);
    model_finish(&m);
    size_t n = 0, rejections = 0;
    assert_int_equal(file_read(path, (size_t)1 << 28, &a, &bytes, &n), ERR_OK);
    assert_int_equal(unlink(path), 0);
    uint8_t *copy = malloc(n + 1);
    assert_non_null(copy);
    for (int i = 0; i < ROUNDS; i++) {
        memcpy(copy, bytes, n);
        size_t now = i == 0 ? n : damage(copy, n, &r);
        Err    e = onnx_read_bytes(copy, now, name, NULL, &m);
        if (e == ERR_OK) e = infer(&m);
        if (i == 0) assert_int_equal(e, ERR_OK);
        if (e != ERR_OK) assert_true(err_why()[0] != '\0');
        rejections += e != ERR_OK;
        model_finish(&m);
    }
    assert_true(rejections > 0);
    free(copy);
    arena_finish(&a);
}

static void keyword_spotter(void **state) {
    (void)state;
    survive("lstm_kws");
}

static void squeezenet(void **state) {
    (void)state;
    survive("squeezenet1_1");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keyword_spotter),
        cmocka_unit_test(squeezenet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
