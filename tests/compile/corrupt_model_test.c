// Corrupted copies of zoo models (bytes flipped, removed, inserted) are rejected with a reason or
// run to outputs of the declared types; nothing crashes, hangs or allocates absurd amounts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "compile/interp/interp.h"
#include "model/fold.h"
#include "model/onnx/onnx.h"
#include "model/zoo/zoo.h"
#include "tests/runner.h"

enum { ROOM = 64 };  // bytes a mutation may add

static const InterpLimits limits = {
    .max_bytes = (size_t)1 << 30, .max_iterations = 1000, .max_macs = 1000000000};

typedef struct Count {
    int rejected, ran;
} Count;

static void write_model(const char *name, Arena *a, char **bytes, size_t *n) {
    Model m;
    char  path[] = "/tmp/mutate_XXXXXX";
    int   fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(zoo_build(name, NULL, &m), ERR_OK);
    assert_int_equal(onnx_write(&m, path), ERR_OK);
    assert_int_equal(file_read(path, (size_t)1 << 30, a, bytes, n), ERR_OK);
    model_finish(&m);
    unlink(path);
}

// Half of the mutations hit the structure; weights are the rest of the file.
static size_t place(Rng *r, size_t n) {
    size_t near = n < 40000 ? n : 40000;
    if (rng_below(r, 2) == 0) return rng_below(r, n);
    return rng_below(r, 2) == 0 ? rng_below(r, near) : n - 1 - rng_below(r, near);
}

static size_t mutate(Rng *r, char *at, size_t n) {
    size_t where = place(r, n), len = 1 + rng_below(r, ROOM - 1);
    if (len > n - where) len = n - where;
    switch (rng_below(r, 4)) {
    case 0: at[where] = (char)(at[where] ^ (1 << rng_below(r, 8))); return n;
    case 1: at[where] = (char)rng_below(r, 256); return n;
    case 2: memmove(at + where, at + where + len, n - where - len); return n - len;
    default:
        memmove(at + where + len, at + where, n - where);
        for (size_t i = 0; i < len; i++) at[where + i] = (char)rng_below(r, 256);
        return n + len;
    }
}

static Err run(Model *m, Arena *a) {
    const Graph *g = m->graph;
    Tensor      *in = arena_new(a, Tensor, g->n_inputs), *out = arena_new(a, Tensor, g->n_outputs);
    ShapedGraph *s = NULL;
    TRY(fold_constants(m, interp_eval));
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        size_t bytes = 0;
        in[i] = g->values[g->inputs[i]].type;
        TRY(tensor_measure(&in[i], &bytes));
        if (bytes > limits.max_bytes || in[i].dtype == DT_STR || in[i].dtype >= DT_SEQ)
            return err_set(ERR_LIMIT, "input %u", i);
    }
    TRY(shaped_graph_make(g, in, interp_eval, a, &s));
    for (uint32_t i = 0; i < g->n_inputs; i++)
        in[i].data =
            arena_alloc(a, (size_t)tensor_count(&in[i]) + 1, dtype_size(in[i].dtype), TENSOR_ALIGN);
    TRY(interp_run(s, in, &limits, a, out));
    for (uint32_t i = 0; i < g->n_outputs; i++) assert_non_null(out[i].data);
    return ERR_OK;
}

static void try_one(const char *bytes, size_t n, Count *c) {
    Model m;
    Arena a;
    assert_int_equal(arena_init(&a, (size_t)1 << 34), ERR_OK);
    Err e = onnx_read_bytes(bytes, n, "damaged", NULL, &m);
    if (e == ERR_OK) {
        e = run(&m, &a);
        model_finish(&m);
    }
    if (e != ERR_OK) assert_true(strlen(err_why()) > 0);
    e == ERR_OK ? c->ran++ : c->rejected++;
    arena_finish(&a);
}

static void damage(const char *name, int times) {
    Arena  a;
    char  *whole = NULL;
    size_t n = 0;
    Count  c = {0};
    assert_int_equal(arena_init(&a, (size_t)1 << 32), ERR_OK);
    write_model(name, &a, &whole, &n);
    char *copy = arena_new(&a, char, n + 4 * ROOM);
    for (int i = 0; i < times; i++) {
        Rng r = rng_fork((Rng){2026}, (uint64_t)i);
        memcpy(copy, whole, n);
        size_t now = n;
        for (uint64_t k = 1 + rng_below(&r, 3); k > 0; k--) now = mutate(&r, copy, now);
        try_one(copy, now, &c);
    }
    print_message("%s: %d rejected, %d ran\n", name, c.rejected, c.ran);
    assert_true(c.rejected > 0 && c.rejected + c.ran == times);
    arena_finish(&a);
}

static void a_recurrent_model(void **state) {
    (void)state;
    damage("lstm_kws", 400);
}

static void a_convolutional_model(void **state) {
    (void)state;
    damage("squeezenet1_1", 24);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_recurrent_model),
                                       cmocka_unit_test(a_convolutional_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
