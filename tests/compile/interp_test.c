#include "compile/interp/interp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/fold.h"
#include "model/graph.h"
#include "tests/runner.h"

typedef struct Small {
    Model m;
    Arena a;
} Small;

static int setup(void **state) {
    Small *s = calloc(1, sizeof *s);
    *state = s;
    return model_init(&s->m, "small") != ERR_OK || arena_init(&s->a, (size_t)1 << 30) != ERR_OK;
}

static int teardown(void **state) {
    Small *s = *state;
    model_finish(&s->m);
    arena_finish(&s->a);
    free(s);
    return 0;
}

static uint32_t add(Graph *g, OpId op, const char *name, const char *x, const char *y) {
    uint32_t *in = arena_new(g->arena, uint32_t, 2), *out = arena_new(g->arena, uint32_t, 1);
    in[0] = graph_value(g, x);
    if (y != NULL) in[1] = graph_value(g, y);
    out[0] = graph_value(g, name);
    (void)graph_node(g, (Node){.name = name,
                               .op = op,
                               .version = 17,
                               .n_in = y != NULL ? 2 : 1,
                               .n_out = 1,
                               .in = in,
                               .out = out});
    return out[0];
}

static Tensor floats(Arena *a, int64_t n, float first) {
    float *data = arena_new(a, float, (size_t)n);
    for (int64_t i = 0; i < n; i++) data[i] = first + (float)i;
    return tensor_of(DT_F32, 1, &n, data);
}

static uint32_t input(Graph *g, const char *name, const char *symbol) {
    uint32_t v = graph_value(g, name);
    g->values[v].type = (Tensor){.dtype = DT_F32, .rank = 1, .dims = {DIM_UNKNOWN}};
    g->values[v].symbols = arena_new(g->arena, const char *, 1);
    g->values[v].symbols[0] = symbol;
    graph_input(g, v);
    return v;
}

static const InterpLimits roomy = {.max_bytes = 1 << 20, .max_iterations = 100};

static Err run(Small *s, const Tensor *in, const InterpLimits *limits, Tensor *out) {
    ShapeCache         all;
    const ShapedGraph *one = NULL;
    shape_cache_init(&all, &s->m, interp_eval);
    Err e = shaped_graph_check_inputs(s->m.graph, in);
    if (e == ERR_OK) e = shape_cache_get(&all, in, &one);
    if (e == ERR_OK) e = interp_run(one, in, limits, &s->a, out);
    shape_cache_finish(&all);
    return e;
}

static void values_flow_from_inputs_to_outputs(void **state) {
    Small *s = *state;
    Graph *g = s->m.graph;
    (void)input(g, "x", "n");
    graph_output(g, add(g, OP_Add, "y", "x", "x"));
    assert_int_equal(graph_sort(g), ERR_OK);
    Tensor in = floats(&s->a, 3, 1), out;
    assert_int_equal(run(s, &in, &roomy, &out), ERR_OK);
    assert_float_equal(((float *)out.data)[2], 6, 0);
}

static void nodes_in_the_wrong_order_are_sorted(void **state) {
    Small *s = *state;
    Graph *g = s->m.graph;
    (void)input(g, "x", "n");
    graph_output(g, add(g, OP_Add, "z", "y", "x"));
    (void)add(g, OP_Add, "y", "x", "x");
    assert_int_equal(graph_sort(g), ERR_OK);
    assert_string_equal(g->nodes[0].name, "y");
    assert_int_equal(g->values[graph_find(g, "z")].producer, 1);
    Tensor in = floats(&s->a, 2, 1), out;
    assert_int_equal(run(s, &in, &roomy, &out), ERR_OK);
    assert_float_equal(((float *)out.data)[1], 6, 0);
}

static void a_cycle_is_refused_by_name(void **state) {
    Small *s = *state;
    Graph *g = s->m.graph;
    (void)input(g, "x", "n");
    (void)add(g, OP_Add, "y", "x", "z");
    graph_output(g, add(g, OP_Add, "z", "x", "y"));
    assert_int_equal(graph_sort(g), ERR_INVALID);
    assert_non_null(strstr(err_why(), "cycle"));
    assert_non_null(strstr(err_why(), "'y'"));
}

static void a_value_from_nowhere_is_refused_by_name(void **state) {
    Small *s = *state;
    graph_output(s->m.graph, add(s->m.graph, OP_Add, "y", "ghost", "ghost"));
    assert_int_equal(graph_sort(s->m.graph), ERR_INVALID);
    assert_non_null(strstr(err_why(), "ghost"));
}

// [3] and [1] broadcast, so the model runs; an error would name the symbol.
static void one_symbol_for_two_sizes_is_told_but_not_refused(void **state) {
    Small *s = *state;
    Graph *g = s->m.graph;
    (void)input(g, "a", "n");
    (void)input(g, "b", "n");
    graph_output(g, add(g, OP_Add, "y", "a", "b"));
    assert_int_equal(graph_sort(g), ERR_OK);
    Tensor in[2] = {floats(&s->a, 3, 0), floats(&s->a, 1, 0)}, out;
    assert_int_equal(run(s, in, &roomy, &out), ERR_OK);
    assert_int_equal(shaped_graph_check_symbols(g, in), ERR_INVALID);
    assert_non_null(strstr(err_why(), "'n' is 3 in input 'a' but 1 in input 'b'"));
}

static void a_wrong_type_or_rank_is_refused(void **state) {
    Small *s = *state;
    Graph *g = s->m.graph;
    (void)input(g, "a", "n");
    graph_output(g, add(g, OP_Add, "y", "a", "a"));
    assert_int_equal(graph_sort(g), ERR_OK);
    Tensor in = floats(&s->a, 3, 0), out;
    in.dtype = DT_I32;
    assert_int_equal(run(s, &in, &roomy, &out), ERR_INVALID);
    assert_non_null(strstr(err_why(), "type int32, the model takes float32"));
    in.dtype = DT_F32;
    in.rank = 0;
    assert_int_equal(run(s, &in, &roomy, &out), ERR_INVALID);
    assert_non_null(strstr(err_why(), "input 'a' has shape scalar"));
}

static void specialisations_are_kept_per_shape(void **state) {
    Small *s = *state;
    Graph *g = s->m.graph;
    (void)input(g, "x", "n");
    graph_output(g, add(g, OP_Add, "y", "x", "x"));
    assert_int_equal(graph_sort(g), ERR_OK);
    ShapeCache all;
    shape_cache_init(&all, &s->m, interp_eval);
    const ShapedGraph *three = NULL, *four = NULL, *again = NULL;
    Tensor             x3 = floats(&s->a, 3, 0), x4 = floats(&s->a, 4, 0);
    assert_int_equal(shape_cache_get(&all, &x3, &three), ERR_OK);
    assert_int_equal(shape_cache_get(&all, &x4, &four), ERR_OK);
    assert_int_equal(shape_cache_get(&all, &x3, &again), ERR_OK);
    assert_ptr_equal(three, again);
    assert_ptr_not_equal(three, four);
    assert_int_equal(four->values[g->outputs[0]].dims[0], 4);
    shape_cache_finish(&all);
}

static void constants_are_folded_away(void **state) {
    Small *s = *state;
    Graph *g = s->m.graph;
    (void)input(g, "x", "n");
    (void)graph_const(g, "c", floats(&s->m.arena, 1, 2), NULL);
    (void)add(g, OP_Add, "cc", "c", "c");
    graph_output(g, add(g, OP_Add, "y", "x", "cc"));
    assert_int_equal(graph_sort(g), ERR_OK);
    assert_int_equal(fold_constants(&s->m, interp_eval), ERR_OK);
    assert_int_equal(g->n_nodes, 1);
    Tensor in = floats(&s->a, 2, 1), out;
    assert_int_equal(run(s, &in, &roomy, &out), ERR_OK);
    assert_float_equal(((float *)out.data)[1], 6, 0);
}

static void memory_beyond_the_limit_is_refused(void **state) {
    Small *s = *state;
    Graph *g = s->m.graph;
    (void)input(g, "x", "n");
    graph_output(g, add(g, OP_Add, "y", "x", "x"));
    assert_int_equal(graph_sort(g), ERR_OK);
    Tensor       in = floats(&s->a, 4096, 0), out;
    InterpLimits tight = {.max_bytes = 4096};
    assert_int_equal(run(s, &in, &tight, &out), ERR_LIMIT);
    assert_non_null(strstr(err_why(), "allowed 4096"));
}

// while (true) x = x + x: stopped by the limit on iterations.
static void an_endless_loop_is_stopped(void **state) {
    Small *s = *state;
    Graph *g = s->m.graph, *body = graph_create(g->arena, g, "body");
    (void)input(g, "x", "n");
    uint32_t round = graph_value(body, "i"), cond = graph_value(body, "go");
    uint32_t x = graph_value(body, "v");
    body->values[round].type = (Tensor){.dtype = DT_I64};
    body->values[cond].type = (Tensor){.dtype = DT_BOOL};
    graph_input(body, round);
    graph_input(body, cond);
    graph_input(body, x);
    graph_output(body, cond);
    graph_output(body, add(body, OP_Add, "w", "v", "v"));
    Attr     *attr = arena_new(g->arena, Attr, 1);
    uint32_t *io = arena_new(g->arena, uint32_t, 4);
    *attr = (Attr){.name = "body", .kind = ATTR_GRAPH, .v.g = body};
    io[0] = io[1] = NO_VALUE;
    io[2] = graph_find(g, "x");
    io[3] = graph_value(g, "y");
    (void)graph_node(g, (Node){.name = "forever",
                               .op = OP_Loop,
                               .version = 17,
                               .n_in = 3,
                               .n_out = 1,
                               .n_attr = 1,
                               .in = io,
                               .out = io + 3,
                               .attrs = attr});
    graph_output(g, io[3]);
    assert_int_equal(graph_sort(g), ERR_OK);
    Tensor in = floats(&s->a, 1, 0), out;
    assert_int_equal(run(s, &in, &roomy, &out), ERR_LIMIT);
    assert_non_null(strstr(err_why(), "'forever' (Loop)"));
}

TEST_MAIN() {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(values_flow_from_inputs_to_outputs),
        T(nodes_in_the_wrong_order_are_sorted),
        T(a_cycle_is_refused_by_name),
        T(a_value_from_nowhere_is_refused_by_name),
        T(one_symbol_for_two_sizes_is_told_but_not_refused),
        T(a_wrong_type_or_rank_is_refused),
        T(specialisations_are_kept_per_shape),
        T(constants_are_folded_away),
        T(memory_beyond_the_limit_is_refused),
        T(an_endless_loop_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
