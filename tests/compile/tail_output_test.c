// Outputs of the interpreted tail, run layer by layer as the engine does: two runs at a time, each
// memory used again and again, recycled memory filled with a pattern. Answers equal interp_run's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/poison.h"
#include "compile/program.h"
#include "model/fold.h"
#include "model/onnx/onnx.h"
#include "tests/runner.h"

enum { RUNS = 3, PATH = 600, TEXT = 64, TEXT_MODELS = 9 };

static const char         suite[] = "/usr/share/libonnx-testdata/data/node";
static const InterpLimits limits = {.max_bytes = (size_t)1 << 32, .max_iterations = 100000};

static bool close_enough(const Tensor *a, const Tensor *b);

static bool close_elements(const Tensor *a, const Tensor *b) {
    for (int64_t i = 0; i < tensor_count(a); i++)
        if (!close_enough(&((const Tensor *)a->data)[i], &((const Tensor *)b->data)[i]))
            return false;
    return true;
}

static bool close_enough(const Tensor *a, const Tensor *b) {
    if (a->dtype != b->dtype || !tensor_same_shape(a, b)) return false;
    if (a->dtype == DT_SEQ || a->dtype == DT_OPT) return close_elements(a, b);
    if (!dtype_is_float(a->dtype)) return tensor_equal(a, b);
    for (int64_t i = 0; i < tensor_count(a); i++) {
        double x = tensor_get_f64(a, i), y = tensor_get_f64(b, i);
        if (isnan(x) && isnan(y)) continue;
        if (x != y && !(fabs(x - y) <= 1e-5 + 1e-3 * fabs(y))) return false;
    }
    return true;
}

static void begin_and_run(const Program *p, RunMemory *mem, const Tensor *in, Tensor *out) {
    program_begin(p, mem, in);
    for (uint32_t i = 0; i < program_layer_count(p); i++)
        program_run_layer(p, mem, i, 0, 0, 1, out);
}

static void compare(const Graph *g, const Tensor *got, const Tensor *want) {
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (!close_enough(&got[i], &want[i]))
            fail_msg("output '%s' differs", g->values[g->outputs[i]].name);
}

// Runs x and y in two memories, the second before the outputs of the first are read.
static void run_pairs(const ShapedGraph *s, const Tensor *x, const Tensor *y, Arena *a) {
    const Graph   *g = s->graph;
    uint32_t       n = g->n_outputs;
    Tensor        *got = arena_new(a, Tensor, 2 * n), *want = arena_new(a, Tensor, 2 * n);
    Program        p;
    RunMemory      mem[2];
    ProgramOptions o = {.limits = limits, .at_least_one_step = true};
    assert_int_equal(interp_run(s, x, &limits, a, want), ERR_OK);
    assert_int_equal(interp_run(s, y, &limits, a, want + n), ERR_OK);
    assert_int_equal(program_make(&p, s, &o), ERR_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(run_memory_init(&mem[i], &p, 1), ERR_OK);
    for (int run = 0; run < RUNS; run++) {
        const Tensor *in[2] = {run % 2 == 0 ? x : y, run % 2 == 0 ? y : x};
        memset(got, 0, 2 * n * sizeof *got);
        for (int i = 0; i < 2; i++) begin_and_run(&p, &mem[i], in[i], got + (size_t)i * n);
        for (int i = 0; i < 2; i++)
            assert_int_equal(program_outputs(&p, &mem[i], NULL, got + (size_t)i * n), ERR_OK);
        compare(g, got, run % 2 == 0 ? want : want + n);
        compare(g, got + n, run % 2 == 0 ? want + n : want);
        for (int i = 0; i < 2; i++) run_memory_release(&mem[i]);
    }
    for (int i = 0; i < 2; i++) run_memory_finish(&mem[i]);
    program_finish(&p);
}

static bool read_inputs(const char *dir, const Graph *g, Arena *a, Tensor *in) {
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        char path[PATH];
        (void)snprintf(path, sizeof path, "%s/test_data_set_0/input_%u.pb", dir, i);
        const Tensor *declared = &g->values[g->inputs[i]].type;
        if (access(path, F_OK) != 0 || onnx_read_value(path, declared, a, &in[i]) != ERR_OK)
            return false;
        if (declared->dtype == DT_BF16 && in[i].dtype == DT_U16) in[i].dtype = DT_BF16;
    }
    return true;
}

static bool draws_random(const Graph *g) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        OpId op = g->nodes[i].op;
        if (op == OP_Bernoulli || op == OP_Multinomial || op == OP_RandomNormal ||
            op == OP_RandomNormalLike || op == OP_RandomUniform || op == OP_RandomUniformLike)
            return true;
    }
    return false;
}

static bool makes_text(const Graph *g) {
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->values[g->outputs[i]].type.dtype == DT_STR) return true;
    return false;
}

// True if the model of the suite was run; *text counts those with outputs of strings.
static bool run_case(const char *name, int *text) {
    char         path[PATH];
    Model        m = {0};
    Arena        a;
    ShapedGraph *s = NULL;
    (void)snprintf(path, sizeof path, "%s/%s/model.onnx", suite, name);
    assert_int_equal(arena_init(&a, (size_t)1 << 32), ERR_OK);
    bool ran = onnx_read(path, &m) == ERR_OK && fold_constants(&m, interp_eval) == ERR_OK &&
               !draws_random(m.graph);
    if (ran) {
        Tensor *in = arena_new(&a, Tensor, m.graph->n_inputs);
        (void)snprintf(path, sizeof path, "%s/%s", suite, name);
        ran = read_inputs(path, m.graph, &a, in) &&
              shaped_graph_make(m.graph, in, interp_eval, &a, &s) == ERR_OK;
        if (ran) run_pairs(s, in, in, &a);
        if (ran) *text += makes_text(m.graph);
    }
    model_finish(&m);
    arena_finish(&a);
    return ran;
}

static void the_node_suite_gives_the_same_answers(void **state) {
    (void)state;
    DIR *d = opendir(suite);
    if (d == NULL) skip();
    int ran = 0, text = 0;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        if (strncmp(e->d_name, "test_", 5) == 0) ran += run_case(e->d_name, &text);
    (void)closedir(d);
    assert_true(ran > 800);
    assert_true(text >= TEXT_MODELS);
}

// Small models: strings of different lengths in and out.

static Node node_of(OpId op, const char *name, const uint32_t *in, uint32_t n_in,
                    const uint32_t *out) {
    return (Node){
        .name = name, .op = op, .version = 20, .n_in = n_in, .n_out = 1, .in = in, .out = out};
}

static uint32_t add_input(Graph *g, const char *name, DType t, int64_t n) {
    uint32_t v = graph_value(g, name);
    g->values[v].type = (Tensor){.dtype = t, .rank = 1, .dims = {n}};
    graph_input(g, v);
    return v;
}

static Tensor some_text(Arena *a, int64_t n, char first, size_t len) {
    Str *s = arena_new(a, Str, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        char *at = arena_new(a, char, len + (size_t)i);
        memset(at, first + (char)i, len + (size_t)i);
        s[i] = (Str){at, len + (size_t)i};
    }
    return tensor_of(DT_STR, 1, &n, s);
}

static void run_model(Model *m, const Tensor *x, const Tensor *y, Arena *a) {
    ShapedGraph *s = NULL;
    assert_int_equal(graph_sort(m->graph), ERR_OK);
    assert_int_equal(shaped_graph_make(m->graph, x, interp_eval, a, &s), ERR_OK);
    run_pairs(s, x, y, a);
}

static void texts_of_different_lengths_stay_apart(void **state) {
    (void)state;
    enum { N = 5 };
    Model m;
    Arena a;
    assert_int_equal(model_init(&m, "texts"), ERR_OK);
    assert_int_equal(arena_init(&a, 1 << 28), ERR_OK);
    Graph   *g = m.graph;
    uint32_t x = add_input(g, "x", DT_STR, N), y = add_input(g, "y", DT_STR, N);
    uint32_t in[2] = {x, y}, xy = graph_value(g, "xy"), again[2] = {xy, y},
             out = graph_value(g, "out");
    (void)graph_node(g, node_of(OP_StringConcat, "one", in, 2, &xy));
    (void)graph_node(g, node_of(OP_StringConcat, "two", again, 2, &out));
    graph_output(g, out);
    graph_output(g, xy);
    graph_output(g, x);  // without a node
    for (size_t len = 1; len < 100000; len *= 30) {
        Tensor first[2] = {some_text(&a, N, 'a', len), some_text(&a, N, 'g', 2 * len)};
        Tensor second[2] = {some_text(&a, N, 'm', 7), some_text(&a, N, 'A', 1)};
        run_model(&m, first, second, &a);
    }
    model_finish(&m);
    arena_finish(&a);
}

static void an_output_without_any_node_is_given(void **state) {
    (void)state;
    Model m;
    Arena a;
    assert_int_equal(model_init(&m, "pass"), ERR_OK);
    assert_int_equal(arena_init(&a, 1 << 24), ERR_OK);
    graph_output(m.graph, add_input(m.graph, "x", DT_STR, 3));
    Tensor x = some_text(&a, 3, 'a', 4), y = some_text(&a, 3, 'k', 9);
    run_model(&m, &x, &y, &a);
    model_finish(&m);
    arena_finish(&a);
}

// The same output twice, of a size that depends on data, larger in the second run.
static void data_dependent_outputs_stay_apart(void **state) {
    (void)state;
    enum { N = 3 };
    Model m;
    Arena a;
    assert_int_equal(model_init(&m, "tile"), ERR_OK);
    assert_int_equal(arena_init(&a, 1 << 28), ERR_OK);
    Graph   *g = m.graph;
    uint32_t in[2] = {add_input(g, "x", DT_F32, N), add_input(g, "r", DT_I64, 1)};
    uint32_t out = graph_value(g, "out");
    (void)graph_node(g, node_of(OP_Tile, "tile", in, 2, &out));
    graph_output(g, out);
    graph_output(g, out);
    float   few[N] = {1, 2, 3}, others[N] = {-1, -2, -3};
    int64_t n = N, one = 1, little = 2, much = 100000;
    Tensor  x[2] = {tensor_of(DT_F32, 1, &n, few), tensor_of(DT_I64, 1, &one, &little)};
    Tensor  y[2] = {tensor_of(DT_F32, 1, &n, others), tensor_of(DT_I64, 1, &one, &much)};
    run_model(&m, x, y, &a);
    model_finish(&m);
    arena_finish(&a);
}

static int poison_on(void **state) {
    (void)state;
    poison_set(true);
    return 0;
}

static int poison_off(void **state) {
    (void)state;
    poison_set(false);
    return 0;
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_different_lengths_stay_apart),
        cmocka_unit_test(an_output_without_any_node_is_given),
        cmocka_unit_test(data_dependent_outputs_stay_apart),
        cmocka_unit_test(the_node_suite_gives_the_same_answers),
    };
    return cmocka_run_group_tests(tests, poison_on, poison_off);
}
