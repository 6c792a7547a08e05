// Memory that a run takes because of the values of its inputs is bounded by the run's budget: the
// run ends with ERR_LIMIT before the memory is touched, and all is given back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/resource.h>

#include "base/poison.h"
#include "compile/program.h"
#include "model/graph.h"
#include "tests/runner.h"

enum { MOST = 32 << 20, MAX_IN = 4, RSS_KIB = 200 << 10 };

typedef struct Case {
    Model     m;
    Arena     a;
    Program   p;
    RunMemory mem;
    Tensor    in[MAX_IN], out[2];
    uint32_t  n_in;
} Case;

static void open_case(Case *c) {
    *c = (Case){0};
    assert_int_equal(model_init(&c->m, "model"), ERR_OK);
    assert_int_equal(arena_init(&c->a, 1 << 28), ERR_OK);
}

static void close_case(Case *c) {
    run_memory_finish(&c->mem);
    program_finish(&c->p);
    model_finish(&c->m);
    arena_finish(&c->a);
}

static uint32_t add_input(Case *c, const char *name, Tensor t) {
    uint32_t v = graph_value(c->m.graph, name);
    c->m.graph->values[v].type = t;
    c->m.graph->values[v].type.data = NULL;
    graph_input(c->m.graph, v);
    c->in[c->n_in++] = t;
    return v;
}

static Tensor ints(Arena *a, int64_t n, const int64_t *v) {
    int64_t *data = arena_new(a, int64_t, (size_t)n);
    memcpy(data, v, (size_t)n * sizeof *v);
    return tensor_of(DT_I64, 1, &n, data);
}

static Tensor one_int(Arena *a, int64_t v) {
    Tensor t = ints(a, 1, &v);
    t.rank = 0;
    return t;
}

static Tensor floats(Arena *a, int32_t rank, const int64_t *dims, float v) {
    Tensor t = tensor_of(DT_F32, rank, dims, NULL);
    assert_int_equal(tensor_alloc(&t, a), ERR_OK);
    for (int64_t i = 0; i < tensor_count(&t); i++) ((float *)t.data)[i] = v;
    return t;
}

static void add_node(Case *c, OpId op, uint32_t n_in, uint32_t n_out) {
    Graph    *g = c->m.graph;
    uint32_t *in = arena_new(&c->a, uint32_t, n_in), *out = arena_new(&c->a, uint32_t, 2);
    for (uint32_t i = 0; i < n_in; i++) in[i] = i < g->n_inputs ? g->inputs[i] : NO_VALUE;
    out[0] = graph_value(g, "y");
    out[1] = graph_value(g, "z");
    (void)graph_node(g, (Node){.name = "culprit",
                               .op = op,
                               .version = 20,
                               .n_in = n_in,
                               .n_out = n_out,
                               .in = in,
                               .out = out});
    graph_output(g, out[0]);
}

static void compile(Case *c) {
    ShapedGraph   *s = NULL;
    Tensor         shapes[MAX_IN];
    ProgramOptions o = {.at_least_one_step = true};
    for (uint32_t i = 0; i < c->n_in; i++) {
        shapes[i] = c->in[i];
        shapes[i].data = NULL;
    }
    assert_int_equal(graph_sort(c->m.graph), ERR_OK);
    assert_int_equal(shaped_graph_make(c->m.graph, shapes, interp_eval, &c->a, &s), ERR_OK);
    assert_int_equal(program_make(&c->p, s, &o), ERR_OK);
    assert_int_equal(run_memory_init(&c->mem, &c->p, 1), ERR_OK);
}

static Err run(Case *c, Budget *b) {
    c->mem.budget = b;
    program_begin(&c->p, &c->mem, c->in);
    for (uint32_t i = 0; i < program_layer_count(&c->p); i++)
        program_run_layer(&c->p, &c->mem, i, 0, 0, 1, c->out);
    return program_outputs(&c->p, &c->mem, NULL, c->out);
}

static long peak_kib(void) {
    struct rusage u;
    assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
    return u.ru_maxrss;
}

static void is_refused(Case *c) {
    Budget whole = {.setting = "buffered_mb", .most = 2 * MOST};
    Budget b = {.setting = "request_mb", .whole = &whole, .most = MOST};
    compile(c);
    long before = peak_kib();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(c, &b), ERR_LIMIT);
        if (strstr(err_why(), "culprit") == NULL) fail_msg("no node in '%s'", err_why());
        if (strstr(err_why(), "2^47") == NULL && strstr(err_why(), "raise `request_mb`") == NULL)
            fail_msg("no setting in '%s'", err_why());
        assert_int_equal(budget_used(&b), 0);
        assert_int_equal(budget_used(&whole), 0);
    }
    assert_true(peak_kib() - before < RSS_KIB);
    close_case(c);
}

static const int64_t sizes[] = {INT64_C(1) << 26, INT64_C(1) << 33, INT64_C(1) << 45,
                                INT64_MAX / 2};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static void outputs_as_large_as_values_say(void **state) {
    (void)state;
    Case c;
    for (int i = 0; i < N_SIZES; i++) {
        int64_t n = 1, v = sizes[i];
        open_case(&c);
        (void)add_input(&c, "x", floats(&c.a, 1, &n, 1));
        (void)add_input(&c, "r", ints(&c.a, 1, &v));
        add_node(&c, i % 2 == 0 ? OP_Tile : OP_Expand, 2, 1);
        is_refused(&c);
        open_case(&c);
        (void)add_input(&c, "n", ints(&c.a, 1, &v));
        add_node(&c, OP_ConstantOfShape, 1, 1);
        is_refused(&c);
        open_case(&c);
        (void)add_input(&c, "from", one_int(&c.a, 0));
        (void)add_input(&c, "to", one_int(&c.a, v));
        (void)add_input(&c, "by", one_int(&c.a, 1));
        add_node(&c, OP_Range, 3, 1);
        is_refused(&c);
        open_case(&c);
        (void)add_input(&c, "x", floats(&c.a, 1, &n, 1));
        int64_t pads[2] = {v / 2, v / 2};
        (void)add_input(&c, "pads", ints(&c.a, 2, pads));
        add_node(&c, OP_Pad, 2, 1);
        is_refused(&c);
    }
}

static void one_hot_and_resize(void **state) {
    (void)state;
    Case c;
    for (int i = 0; i < N_SIZES; i++) {
        int64_t two = 2, zero[2] = {0, 0}, image[4] = {1, 1, 1, 1}, to[4] = {1, 1, 1, sizes[i]};
        open_case(&c);
        (void)add_input(&c, "at", ints(&c.a, 1, zero));
        (void)add_input(&c, "depth", one_int(&c.a, sizes[i]));
        (void)add_input(&c, "values", floats(&c.a, 1, &two, 1));
        add_node(&c, OP_OneHot, 3, 1);
        is_refused(&c);
        open_case(&c);
        Tensor none = tensor_of(DT_F32, 1, zero, &c);
        (void)add_input(&c, "x", floats(&c.a, 4, image, 1));
        (void)add_input(&c, "roi", none);
        (void)add_input(&c, "scales", none);
        (void)add_input(&c, "sizes", ints(&c.a, 4, to));
        add_node(&c, OP_Resize, 4, 1);
        is_refused(&c);
    }
}

// Nothing times much is nothing: no memory in proportion to a side of an empty tensor.
static void empty_results_need_no_memory(void **state) {
    (void)state;
    Case    c;
    int64_t dims[2] = {0, 1}, to[2] = {1, INT64_C(1) << 32}, pads[4] = {0, 0, 0, to[1]};
    for (int pad = 0; pad < 2; pad++) {
        Budget b = {.setting = "request_mb", .most = MOST};
        open_case(&c);
        (void)add_input(&c, "x", floats(&c.a, 2, dims, 1));
        (void)add_input(&c, "r", pad ? ints(&c.a, 4, pads) : ints(&c.a, 2, to));
        add_node(&c, pad ? OP_Pad : OP_Tile, 2, 1);
        compile(&c);
        assert_int_equal(run(&c, &b), ERR_OK);
        assert_int_equal(tensor_count(&c.out[0]), 0);
        assert_int_equal(c.out[0].dims[1], pad ? to[1] + 1 : to[1]);
        close_case(&c);
    }
}

static void text_is_charged(void **state) {
    (void)state;
    enum { N = 2000, LEN = 20000 };
    Case    c;
    int64_t n = N;
    open_case(&c);
    Str  *s = arena_new(&c.a, Str, N);
    char *text = arena_new(&c.a, char, LEN);
    for (int i = 0; i < N; i++) s[i] = (Str){text, LEN};
    (void)add_input(&c, "x", tensor_of(DT_STR, 1, &n, s));
    (void)add_input(&c, "w", tensor_of(DT_STR, 1, &n, s));
    add_node(&c, OP_StringConcat, 2, 1);
    is_refused(&c);
}

// A loop that adds a slice to its output in every iteration, or doubles what it carries.
static void loops_are_charged(void **state) {
    (void)state;
    Case c;
    for (int grows = 0; grows < 2; grows++) {
        int64_t n = 1000;
        Attr    body = {.name = "body", .kind = ATTR_GRAPH};
        open_case(&c);
        Graph   *g = c.m.graph, *b = graph_create(g->arena, g, "body");
        uint32_t names[4] = {graph_value(b, "i"), graph_value(b, "go"), graph_value(b, "state"),
                             graph_value(b, "go_on")};
        for (int i = 0; i < 3; i++) graph_input(b, names[i]);
        b->values[names[0]].type = (Tensor){.dtype = DT_I64};
        b->values[names[1]].type = (Tensor){.dtype = DT_BOOL};
        b->values[names[2]].type = (Tensor){.dtype = DT_F32, .rank = 1, .dims = {DIM_UNKNOWN}};
        uint32_t  twice[2] = {names[2], names[2]}, next = graph_value(b, "next");
        Attr      axis = {.name = "axis", .kind = ATTR_INT, .v.i = 0};
        uint32_t *in = arena_new(&c.a, uint32_t, 3);
        (void)graph_node(b, (Node){.name = "go_on",
                                   .op = OP_Identity,
                                   .version = 18,
                                   .n_in = 1,
                                   .n_out = 1,
                                   .in = &names[1],
                                   .out = &names[3]});
        (void)graph_node(b, (Node){.name = "culprit",
                                   .op = grows ? OP_Concat : OP_Add,
                                   .version = 18,
                                   .n_in = 2,
                                   .n_out = 1,
                                   .n_attr = grows ? 1 : 0,
                                   .in = twice,
                                   .out = &next,
                                   .attrs = &axis});
        graph_output(b, names[3]);
        graph_output(b, next);
        if (!grows) graph_output(b, next);
        assert_int_equal(graph_sort(b), ERR_OK);
        body.v.g = b;
        in[0] = add_input(&c, "trips", one_int(&c.a, INT64_MAX));
        in[1] = NO_VALUE;
        in[2] = add_input(&c, "x", floats(&c.a, 1, &n, 1));
        uint32_t out[2] = {graph_value(g, "y"), graph_value(g, "z")};
        (void)graph_node(g, (Node){.name = "culprit",
                                   .op = OP_Loop,
                                   .version = 18,
                                   .n_in = 3,
                                   .n_out = grows ? 1 : 2,
                                   .n_attr = 1,
                                   .in = in,
                                   .out = out,
                                   .attrs = &body});
        graph_output(g, out[grows ? 0 : 1]);
        is_refused(&c);
    }
}

// What fits runs; its outputs are charged until they are released.
static void a_run_within_its_budget(void **state) {
    (void)state;
    Case    c;
    Budget  b = {.setting = "request_mb", .most = MOST};
    int64_t n = 1, v = 5 << 20;
    open_case(&c);
    (void)add_input(&c, "x", floats(&c.a, 1, &n, 1));
    (void)add_input(&c, "r", ints(&c.a, 1, &v));
    add_node(&c, OP_Expand, 2, 1);
    compile(&c);
    c.mem.budget = &b;
    program_begin(&c.p, &c.mem, c.in);
    for (uint32_t i = 0; i < program_layer_count(&c.p); i++)
        program_run_layer(&c.p, &c.mem, i, 0, 0, 1, c.out);
    assert_true(budget_used(&b) >= (size_t)v * sizeof(float));
    assert_int_equal(program_outputs(&c.p, &c.mem, NULL, c.out), ERR_OK);
    assert_true(budget_used(&b) >= (size_t)v * sizeof(float));
    assert_float_equal(((float *)c.out[0].data)[v - 1], 1, 0);
    run_memory_release(&c.mem);
    assert_int_equal(budget_used(&b), 0);
    assert_int_equal(c.mem.n_held, 0);
    assert_true(arena_reserved(&c.mem.ref_keep) + arena_reserved(&c.mem.ref_scratch) <= 1 << 20);
    close_case(&c);
}

// Ranks beyond the largest and wrong sizes are mistakes of the request, not failures of the model.
static void mistakes_in_values_are_invalid(void **state) {
    (void)state;
    enum { RANK = 17 };
    static const OpId ops[] = {OP_Reshape, OP_Expand, OP_Tile, OP_Unsqueeze, OP_Pad};
    int64_t           ones[RANK], n = 1;
    for (int i = 0; i < RANK; i++) ones[i] = 1;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (int64_t rank = TENSOR_MAX_RANK + 1; rank <= RANK; rank += 8) {
            Case c;
            open_case(&c);
            (void)add_input(&c, "x", floats(&c.a, 1, &n, 1));
            (void)add_input(&c, "shape", ints(&c.a, rank, ones));
            add_node(&c, ops[k], 2, 1);
            compile(&c);
            assert_int_equal(run(&c, NULL), ERR_INVALID);
            close_case(&c);
        }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_as_large_as_values_say), cmocka_unit_test(one_hot_and_resize),
        cmocka_unit_test(empty_results_need_no_memory),   cmocka_unit_test(text_is_charged),
        cmocka_unit_test(mistakes_in_values_are_invalid), cmocka_unit_test(loops_are_charged),
        cmocka_unit_test(a_run_within_its_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
