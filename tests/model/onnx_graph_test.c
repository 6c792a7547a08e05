// Graphs from files: order, names, constants, captures, and invalid graphs.
#include "tests/model/onnx_build.h"

#include <stdio.h>

#include "model/attr.h"
#include "tests/runner.h"

static Msg chain(void) {  // x -> Relu -> h -> Relu -> y
    Msg g = {0};
    msg_sub(&g, 1, node_of("Relu", "x", "h"));
    msg_sub(&g, 1, node_of("Relu", "h", "y"));
    graph_ends(&g, "x", "y");
    return g;
}

static void nodes_are_named_and_ordered(void **state) {
    (void)state;
    Model m;
    Msg   g = {0};
    msg_sub(&g, 1, node_of("Relu", "h", "y"));
    msg_sub(&g, 1, node_of("Identity", "x", "h"));
    graph_ends(&g, "x", "y");
    accepted(model_of(g, 13), &m);
    assert_int_equal(m.graph->n_nodes, 2);
    assert_string_equal(m.graph->nodes[0].name, "Identity_1");
    assert_string_equal(m.graph->nodes[1].name, "Relu_0");
    assert_int_equal(m.graph->values[graph_find(m.graph, "h")].producer, 0);
    assert_int_equal(m.graph->nodes[1].version, 13);
    assert_int_equal(m.opset, 13);
    model_finish(&m);
}

static void old_files_list_constants_as_inputs(void **state) {
    (void)state;
    Model m;
    Msg   g = {0};
    float v[2] = {1, 2};
    msg_sub(&g, 1, node_of("Relu", "w", "y"));
    msg_sub(&g, 5, floats_of("w", 2, v));
    graph_ends(&g, "x w", "y");
    accepted(model_of(g, 7), &m);
    assert_int_equal(m.graph->n_inputs, 1);
    const Value *w = &m.graph->values[graph_find(m.graph, "w")];
    assert_true(w->constant);
    assert_memory_equal(w->type.data, v, sizeof v);
    model_finish(&m);
}

static void no_imports_needed_before_ir_3(void **state) {
    (void)state;
    Model m;
    Msg   file = {0};
    msg_int(&file, 1, 2);
    msg_sub(&file, 7, chain());
    accepted(file, &m);
    assert_int_equal(m.graph->nodes[0].version, 1);
    model_finish(&m);
    rejected(model_of(chain(), 0), ERR_INVALID, "imports no operator set");
}

static Msg constant(Msg attr) {
    Msg g = {0}, n = node_of("Constant", "", "c");
    msg_sub(&n, 5, attr);
    msg_sub(&g, 1, n);
    graph_ends(&g, "", "c");
    return model_of(g, 13);
}

static Tensor constant_of(Msg attr, Model *m) {
    accepted(constant(attr), m);
    assert_int_equal(m->graph->n_nodes, 0);
    const Value *v = &m->graph->values[m->graph->outputs[0]];
    assert_true(v->constant);
    assert_non_null(v->type.data);
    return v->type;
}

static void constants_have_many_forms(void **state) {
    (void)state;
    Model m;
    Msg   a = attr_of("value_float", 1);
    msg_float(&a, 2, 1.5f);
    Tensor t = constant_of(a, &m);
    assert_true(t.dtype == DT_F32 && t.rank == 0 && *(float *)t.data == 1.5f);
    model_finish(&m);
    t = constant_of(int_attr("value_int", -3), &m);
    assert_true(t.dtype == DT_I64 && t.rank == 0 && *(int64_t *)t.data == -3);
    model_finish(&m);
    a = attr_of("value_ints", 7);
    msg_int(&a, 8, 4);
    msg_int(&a, 8, 5);
    t = constant_of(a, &m);
    assert_true(t.dtype == DT_I64 && t.rank == 1 && t.dims[0] == 2 && ((int64_t *)t.data)[1] == 5);
    model_finish(&m);
    a = attr_of("value_strings", 8);
    msg_text(&a, 9, "one");
    msg_text(&a, 9, "");
    t = constant_of(a, &m);
    assert_true(t.dtype == DT_STR && t.dims[0] == 2 && ((Str *)t.data)[0].len == 3);
    model_finish(&m);
    t = constant_of(tensor_attr("value", floats_of("", 2, (float[]){7, 8})), &m);
    assert_true(t.dtype == DT_F32 && ((float *)t.data)[1] == 8);
    model_finish(&m);
    rejected(constant(int_attr("value_float", 1)), ERR_INVALID, "not a constant");
    rejected(constant(int_attr("other", 1)), ERR_INVALID, "not a constant");
}

static Msg if_node(Msg then_branch, Msg else_branch) {
    Msg n = node_of("If", "cond", "y");
    msg_sub(&n, 5, graph_attr("then_branch", then_branch));
    msg_sub(&n, 5, graph_attr("else_branch", else_branch));
    return n;
}

static Msg branch(const char *reads) {
    Msg g = {0};
    msg_sub(&g, 1, node_of("Relu", reads, "out"));
    graph_ends(&g, "", "out");
    return g;
}

static Msg if_model(const char *reads) {
    Msg     g = {0};
    int64_t one = 1;
    msg_sub(&g, 1, if_node(branch(reads), branch("x")));
    msg_sub(&g, 1, node_of("Relu", "x", "h"));
    msg_sub(&g, 11, info_of("cond", 9, 1, &one));
    graph_ends(&g, "x", "y");
    return model_of(g, 13);
}

static void bodies_capture_and_order(void **state) {
    (void)state;
    Model m;
    accepted(if_model("h"), &m);
    assert_int_equal(m.graph->nodes[0].op, OP_Relu);  // came after the If that needs it
    const Graph *body = attr_graph(&m.graph->nodes[1], "then_branch");
    assert_int_equal(body->n_captures, 1);
    assert_int_equal(body->captures[0].outer, graph_find(m.graph, "h"));
    model_finish(&m);
    rejected(if_model("y"), ERR_INVALID, "cycle");
    rejected(if_model("nowhere"), ERR_INVALID, "nothing produces");
}

static void wrong_graphs_are_rejected(void **state) {
    (void)state;
    Msg g = chain();
    msg_sub(&g, 1, node_of("Relu", "x", "h"));
    rejected(model_of(g, 13), ERR_INVALID,
             "node '' (index 2, Relu): output 'h': the name is already defined");
    g = chain();
    msg_sub(&g, 5, floats_of("h", 1, (float[]){1}));
    rejected(model_of(g, 13), ERR_INVALID, "already defined");
    g = chain();
    msg_sub(&g, 5, floats_of("w", 1, (float[]){1}));
    msg_sub(&g, 5, floats_of("w", 1, (float[]){1}));
    rejected(model_of(g, 13), ERR_INVALID, "initializer 'w'");
    g = (Msg){0};
    msg_sub(&g, 1, node_of("Relu", "b", "a"));
    msg_sub(&g, 1, node_of("Relu", "a", "b"));
    graph_ends(&g, "", "a");
    rejected(model_of(g, 13), ERR_INVALID, "cycle");
    g = (Msg){0};
    msg_sub(&g, 1, node_of("Relu", "missing", "y"));
    graph_ends(&g, "x", "y");
    rejected(model_of(g, 13), ERR_INVALID, "reads 'missing'");
    g = chain();
    graph_ends(&g, "", "z");
    rejected(model_of(g, 13), ERR_INVALID, "output 'z'");
    rejected((Msg){0}, ERR_PARSE, "no graph");
}

static void wrong_operators_are_rejected(void **state) {
    (void)state;
    Msg g = {0}, n = node_of("Foo", "x", "y");
    msg_text(&n, 7, "bar");
    msg_text(&n, 3, "it");
    msg_sub(&g, 1, n);
    rejected(model_of(g, 13), ERR_UNSUPPORTED, "operator Foo of domain 'bar' is not supported");
    assert_non_null(strstr(err_why(), "node 'it' (index 0, Foo)"));
    rejected(model_of(chain(), 99), ERR_UNSUPPORTED, "operator set 99");
    rejected(model_of(chain(), -1), ERR_INVALID, "imports no operator set");
    g = (Msg){0};
    msg_sub(&g, 1, node_of("Scan", "x", "y"));
    graph_ends(&g, "x", "y");
    rejected(model_of(g, 7), ERR_INVALID, "operator set 7 has no Scan");
    g = (Msg){0};
    msg_sub(&g, 1, node_of("Relu", "x x", "y"));
    graph_ends(&g, "x", "y");
    rejected(model_of(g, 13), ERR_INVALID, "takes at most");
    g = (Msg){0};
    msg_sub(&g, 1, node_of("Relu", "-", "y"));
    graph_ends(&g, "x", "y");
    rejected(model_of(g, 13), ERR_INVALID, "missing");
}

static Msg with_attr(Msg attr) {
    Msg g = {0}, n = node_of("Relu", "x", "y");
    msg_sub(&n, 5, attr);
    msg_sub(&g, 1, n);
    graph_ends(&g, "x", "y");
    return model_of(g, 13);
}

static void wrong_attributes_are_rejected(void **state) {
    (void)state;
    Model m;
    Msg   a = attr_of("axis", 1);
    msg_float(&a, 2, 1);
    rejected(with_attr(a), ERR_INVALID, "wrong kind");
    a = int_attr("axis", 1);
    msg_float(&a, 2, 1);
    rejected(with_attr(a), ERR_INVALID, "another kind");
    rejected(with_attr(attr_of("axis", 99)), ERR_INVALID, "unknown kind");
    rejected(with_attr(attr_of("axis", 0)), ERR_INVALID, "unknown kind");
    rejected(with_attr(attr_of("x", 9)), ERR_UNSUPPORTED, "attribute 'x'");
    rejected(with_attr(attr_of("body", 5)), ERR_INVALID, "no graph");
    rejected(with_attr(attr_of("value", 4)), ERR_INVALID, "no tensor");
    rejected(with_attr(int_attr("", 1)), ERR_INVALID, "no name");
    a = attr_of("x", 2);
    msg_text(&a, 21, "outer");
    rejected(with_attr(a), ERR_INVALID, "outside of a function");
    a = attr_of("axis", 0);  // before IR 2 files declare no kind
    msg_int(&a, 3, 6);
    accepted(with_attr(a), &m);
    assert_int_equal(attr_int(&m.graph->nodes[0], "axis", 0), 6);
    model_finish(&m);
}

static void deep_ranks_are_rejected(void **state) {
    (void)state;
    int64_t dims[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    Msg     g = chain();
    msg_sub(&g, 11, info_of("deep", 1, 9, dims));
    rejected(model_of(g, 13), ERR_UNSUPPORTED, "rank 9");
    g = chain();
    msg_sub(&g, 13, info_of("h", 1, 9, dims));  // a declared type of an intermediate value
    Model m;
    accepted(model_of(g, 13), &m);
    assert_int_equal(m.graph->values[graph_find(m.graph, "h")].type.rank, RANK_UNKNOWN);
    model_finish(&m);
}

// Far larger than real networks; memory and time stay proportional.
static void large_graphs_load(void **state) {
    (void)state;
    enum { NODES = 1000000, CONSTS = 100000 };
    Msg  g = {0};
    char from[16] = "x", to[16];
    for (int i = NODES; i > 0; i--, memcpy(from, to, sizeof to)) {
        (void)snprintf(to, sizeof to, "%d", i);
        msg_sub(&g, 1, node_of("Relu", from, to));
    }
    for (int i = 0; i < CONSTS; i++) {
        (void)snprintf(to, sizeof to, "w%d", i);
        msg_sub(&g, 5, floats_of(to, 1, (float[]){1}));
    }
    graph_ends(&g, "x", "1");
    Model m;
    accepted(model_of(g, 13), &m);
    assert_int_equal(m.graph->n_nodes, NODES);
    model_finish(&m);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_named_and_ordered),
        cmocka_unit_test(old_files_list_constants_as_inputs),
        cmocka_unit_test(no_imports_needed_before_ir_3),
        cmocka_unit_test(constants_have_many_forms),
        cmocka_unit_test(bodies_capture_and_order),
        cmocka_unit_test(wrong_graphs_are_rejected),
        cmocka_unit_test(wrong_operators_are_rejected),
        cmocka_unit_test(wrong_attributes_are_rejected),
        cmocka_unit_test(deep_ranks_are_rejected),
        cmocka_unit_test(large_graphs_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
