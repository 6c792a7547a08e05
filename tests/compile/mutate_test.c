// Mutated cases of ONNX's own suite: an attribute, a value or the size of an input is changed, and
// the program rejects or computes it. Memory errors show under the sanitizers (make asan).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tensor.h"
#include "base/rng.h"
#include "compile/interp/interp.h"
#include "model/fold.h"
#include "model/onnx/onnx.h"
#include "tests/runner.h"

#define SUITE "/usr/share/libonnx-testdata/data"

enum { ROUNDS = 4, MAX_IN = 16, PATH_BYTES = 512 };

static const InterpLimits limits = {.max_bytes = (size_t)1 << 24, .max_iterations = 100};

typedef struct Bent {
    Rng      rng;
    Model    m;
    Arena    arena;
    Tensor   in[MAX_IN];
    void    *owned[MAX_IN];  // copies of exactly the right size
    uint32_t n_in;
} Bent;

static uint64_t roll(Bent *b, uint64_t n) { return rng_below(&b->rng, n); }

static int64_t some_int(Bent *b, int64_t old) {
    static const int64_t odd[] = {0, -1, 1, 2, 3, 7, 1000, INT32_MAX, INT64_MAX, INT64_MIN};
    if (roll(b, 2) == 0 && old > INT64_MIN && old < INT64_MAX)
        return old + (roll(b, 2) == 0 ? 1 : -1);
    return odd[roll(b, sizeof odd / sizeof *odd)];
}

static double some_real(Bent *b) {
    static const double odd[] = {0, -1, 0.5, NAN, INFINITY, -INFINITY, 1e30, 1e-40};
    return odd[roll(b, sizeof odd / sizeof *odd)];
}

// The graph was read for this test alone, so its constants may be written.
static void bend_attr(Bent *b, Graph *g) {
    if (g->n_nodes == 0) return;
    Node *n = &g->nodes[roll(b, g->n_nodes)];
    if (n->n_attr == 0) {
        n->version = 1 + (int32_t)roll(b, 20);
        return;
    }
    Attr *attrs = arena_new(&b->m.arena, Attr, n->n_attr), *a = &attrs[roll(b, n->n_attr)];
    memcpy(attrs, n->attrs, n->n_attr * sizeof *attrs);
    n->attrs = attrs;
    if (a->kind == ATTR_INT) a->v.i = some_int(b, a->v.i);
    if (a->kind == ATTR_FLOAT) a->v.f = (float)some_real(b);
    if (a->kind == ATTR_STRING) a->v.s = (Str){"none", 4};
    if (a->kind == ATTR_GRAPH) bend_attr(b, a->v.g);
    if (a->kind != ATTR_INTS) return;
    if (a->n > 0 && roll(b, 3) == 0) a->n--;
    int64_t *ints = arena_new(&b->m.arena, int64_t, a->n);
    for (uint32_t i = 0; i < a->n; i++) ints[i] = a->v.ints[i];
    int64_t new = some_int(b, a->n > 0 ? ints[0] : 0);
    if (a->n > 0) ints[roll(b, a->n)] = new;
    a->v.ints = ints;
}

static bool plain(const Tensor *t) { return dtype_is_number(t->dtype) || t->dtype == DT_BOOL; }

static void bend_number(Bent *b) {
    double  real = some_real(b);
    Tensor *t = &b->in[roll(b, b->n_in)];
    int64_t n = plain(t) ? tensor_count(t) : 0;
    if (n == 0) return;
    int64_t at = (int64_t)roll(b, (uint64_t)n);
    if (t->dtype == DT_I64)
        ((int64_t *)t->data)[at] = some_int(b, ((int64_t *)t->data)[at]);
    else
        tensor_set(t, at, dtype_is_float(t->dtype) ? real : (double)some_int(b, 1));
}

// Another size or rank; the data repeats.
static void bend_shape(Bent *b) {
    uint32_t k = (uint32_t)roll(b, b->n_in);
    Tensor  *t = &b->in[k], old = *t;
    if (!plain(t) || t->rank == 0 || tensor_count(t) == 0) return;
    if (roll(b, 4) == 0)
        t->rank--;
    else if (roll(b, 4) == 0 && t->rank < TENSOR_MAX_RANK)
        t->dims[t->rank++] = 1 + (int64_t)roll(b, 2);
    else
        t->dims[roll(b, (uint64_t)t->rank)] = (int64_t)roll(b, 5);
    size_t size = dtype_size(t->dtype), bytes = 0;
    if (tensor_measure(t, &bytes) != ERR_OK || bytes > 1 << 20) {
        *t = old;
        return;
    }
    t->data = malloc(bytes > 0 ? bytes : 1);
    assert_non_null(t->data);
    int64_t had = tensor_count(&old);
    for (int64_t i = 0; i < tensor_count(t); i++)
        memcpy((char *)t->data + i * (int64_t)size, (char *)old.data + i % had * (int64_t)size,
               size);
    free(b->owned[k]);
    b->owned[k] = t->data;
}

static Err read_inputs(Bent *b, const char *dir) {
    const Graph *g = b->m.graph;
    if (g->n_inputs > MAX_IN) return err_set(ERR_UNSUPPORTED, "too many inputs");
    for (b->n_in = 0; b->n_in < g->n_inputs; b->n_in++) {
        char    path[PATH_BYTES];
        size_t  bytes = 0;
        Tensor *t = &b->in[b->n_in];
        (void)snprintf(path, sizeof path, "%s/test_data_set_0/input_%u.pb", dir, b->n_in);
        TRY(onnx_read_value(path, &g->values[g->inputs[b->n_in]].type, &b->arena, t));
        b->owned[b->n_in] = NULL;
        if (!plain(t)) continue;
        TRY(tensor_measure(t, &bytes));
        b->owned[b->n_in] = malloc(bytes > 0 ? bytes : 1);
        assert_non_null(b->owned[b->n_in]);
        if (bytes > 0) memcpy(b->owned[b->n_in], t->data, bytes);
        t->data = b->owned[b->n_in];
    }
    return ERR_OK;
}

static Err run_bent(Bent *b) {
    Graph             *g = b->m.graph;
    Tensor            *out = arena_new(&b->arena, Tensor, g->n_outputs);
    const ShapedGraph *s = NULL;
    ShapeCache         shape_cache;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        Value *v = &g->values[g->inputs[i]];
        v->type = b->in[i];
        v->type.data = NULL;
        v->symbols = NULL;
    }
    TRY(fold_constants(&b->m, interp_eval));
    shape_cache_init(&shape_cache, &b->m, interp_eval);
    Err e = shape_cache_get(&shape_cache, b->in, &s);
    if (e == ERR_OK) e = interp_run(s, b->in, &limits, &b->arena, out);
    shape_cache_finish(&shape_cache);
    return e;
}

// True if the mutated case still computed.
static bool try_case(const char *dir, uint64_t seed) {
    char path[PATH_BYTES];
    Bent b = {.rng = {seed}};
    (void)snprintf(path, sizeof path, "%s/model.onnx", dir);
    assert_int_equal(arena_init(&b.arena, (size_t)1 << 30), ERR_OK);
    Err e = onnx_read(path, &b.m);
    if (e == ERR_OK) e = read_inputs(&b, dir);
    if (e == ERR_OK) {
        uint64_t kind = roll(&b, 3);
        if (kind == 0 || b.n_in == 0)
            bend_attr(&b, b.m.graph);
        else if (kind == 1)
            bend_number(&b);
        else
            bend_shape(&b);
        e = run_bent(&b);
    }
    if (e != ERR_OK) assert_true(err_why()[0] != '\0');
    for (uint32_t i = 0; i < MAX_IN; i++) free(b.owned[i]);
    model_finish(&b.m);
    arena_finish(&b.arena);
    return e == ERR_OK;
}

static void bent_cases_are_refused_or_computed(void **state) {
    (void)state;
    const char *given = getenv("MUTATE_SEED");  // for longer manual runs
    uint64_t    seed = given != NULL ? strtoull(given, NULL, 10) : 1;
    glob_t      found = {0};
    size_t      ran = 0, tried = 0;
    if (glob(SUITE "/node/*", 0, NULL, &found) != 0) {
        print_message("skipped: no ONNX suite at " SUITE "\n");
        skip();
    }
    for (size_t i = 0; i < found.gl_pathc; i++)
        for (uint64_t k = 0; k < ROUNDS; k++, tried++)
            ran += try_case(found.gl_pathv[i], seed + i * 1000 + k * 1000003);
    print_message("%zu of %zu bent cases still computed\n", ran, tried);
    globfree(&found);
    assert_true(ran > tried / 10 && ran < tried);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bent_cases_are_refused_or_computed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
