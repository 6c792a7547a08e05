// Functions of a model: calls are inlined, names stay distinct, size and depth are bounded.
#include "tests/model/onnx_build.h"

#include <stdio.h>

#include "model/attr.h"
#include "tests/runner.h"

static Msg call_of(const char *name, const char *in, const char *out) {
    Msg n = node_of(name, in, out);
    msg_text(&n, 7, "own");
    return n;
}

static Msg function_head(const char *name, const char *in, const char *out) {
    Msg f = {0};
    msg_text(&f, 1, name);
    msg_names(&f, 4, in);
    msg_names(&f, 5, out);
    msg_text(&f, 10, "own");
    msg_sub(&f, 9, import_of("", 12));
    return f;
}

static Msg model_calling(Msg call, Msg function) {
    Msg g = {0};
    msg_sub(&g, 1, call);
    graph_ends(&g, "x", "y");
    Msg m = model_of(g, 13);
    msg_sub(&m, 25, function);
    return m;
}

static Msg twice(void) {
    Msg f = function_head("Twice", "a", "b");
    msg_sub(&f, 7, node_of("Relu", "a", "t"));
    msg_sub(&f, 7, node_of("Relu", "t", "b"));
    return f;
}

static void calls_become_bodies(void **state) {
    (void)state;
    Model m;
    Msg   g = {0};
    msg_sub(&g, 1, call_of("Twice", "x", "h"));
    msg_sub(&g, 1, call_of("Twice", "h", "y"));
    graph_ends(&g, "x", "y");
    Msg file = model_of(g, 13);
    msg_sub(&file, 25, twice());
    accepted(file, &m);
    assert_int_equal(m.graph->n_nodes, 4);
    assert_string_equal(m.graph->nodes[0].name, "Twice.0/Relu");
    assert_int_equal(m.graph->nodes[0].version, 12);  // the function's import
    assert_int_equal(m.graph->nodes[0].in[0], graph_find(m.graph, "x"));
    assert_int_equal(m.graph->nodes[1].out[0], graph_find(m.graph, "h"));
    assert_int_equal(m.graph->nodes[2].in[0], graph_find(m.graph, "h"));
    assert_int_not_equal(m.graph->nodes[0].out[0], m.graph->nodes[2].out[0]);
    model_finish(&m);
}

static Msg refer(const char *name, const char *to) {
    Msg a = attr_of(name, 2);
    msg_text(&a, 21, to);
    return a;
}

static void attributes_are_passed_to_bodies(void **state) {
    (void)state;
    Model m;
    Msg   f = function_head("F", "a", "b"), n = node_of("Relu", "a", "b");
    msg_sub(&n, 5, refer("axis", "outer"));
    msg_sub(&n, 5, refer("group", "absent"));
    msg_sub(&f, 7, n);
    Msg call = call_of("F", "x", "y");
    msg_sub(&call, 5, int_attr("outer", 5));
    accepted(model_calling(call, f), &m);
    assert_int_equal(m.graph->nodes[0].n_attr, 1);
    assert_int_equal(attr_int(&m.graph->nodes[0], "axis", 0), 5);
    model_finish(&m);
}

// A body inside a function captures the function's names, renamed to the caller's.
static void bodies_inside_functions(void **state) {
    (void)state;
    Model m;
    Msg   f = function_head("F", "a c", "b"), n = node_of("If", "c", "b"), branch[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        msg_sub(&branch[i], 1, call_of("Twice", i == 0 ? "a" : "h", "out"));
        graph_ends(&branch[i], "", "out");
    }
    msg_sub(&f, 7, node_of("Relu", "a", "h"));
    msg_sub(&n, 5, graph_attr("then_branch", branch[0]));
    msg_sub(&n, 5, graph_attr("else_branch", branch[1]));
    msg_sub(&f, 7, n);
    Msg     g = {0};
    int64_t one = 1;
    msg_sub(&g, 1, call_of("F", "x cond", "y"));
    msg_sub(&g, 11, info_of("cond", 9, 1, &one));
    graph_ends(&g, "x", "y");
    Msg file = model_of(g, 13);
    msg_sub(&file, 25, f);
    msg_sub(&file, 25, twice());
    accepted(file, &m);
    assert_int_equal(m.graph->n_nodes, 2);
    const Graph *then_branch = attr_graph(&m.graph->nodes[1], "then_branch");
    assert_int_equal(then_branch->n_nodes, 2);
    assert_int_equal(then_branch->captures[0].outer, graph_find(m.graph, "x"));
    model_finish(&m);
}

static void wrong_calls_are_rejected(void **state) {
    (void)state;
    rejected(model_calling(call_of("Twice", "x x", "y"), twice()), ERR_INVALID, "more inputs");
    rejected(model_calling(call_of("Absent", "x", "y"), twice()), ERR_UNSUPPORTED, "Absent");
    Msg file = model_calling(call_of("Twice", "x", "y"), twice());
    msg_sub(&file, 25, twice());
    rejected(file, ERR_INVALID, "defined twice");
    Msg f = function_head("F", "a", "b");
    msg_sub(&f, 7, node_of("Relu", "x", "b"));  // functions see their parameters only
    rejected(model_calling(call_of("F", "x", "y"), f), ERR_INVALID, "nothing produces");
    f = function_head("F", "a", "b");
    msg_sub(&f, 7, call_of("F", "a", "b"));
    rejected(model_calling(call_of("F", "x", "y"), f), ERR_LIMIT, "recursive");
}

static void bombs_are_rejected(void **state) {
    (void)state;
    Msg file = model_calling(call_of("F0", "x", "y"), twice());
    for (int level = 0; level < 12; level++) {  // each level calls the next ten times
        char name[8], next[8];
        (void)snprintf(name, sizeof name, "F%d", level);
        (void)snprintf(next, sizeof next, "F%d", level + 1);
        Msg f = function_head(name, "a", "b");
        for (int i = 0; i < 10; i++) {
            char out[8];
            (void)snprintf(out, sizeof out, i == 0 ? "b" : "t%d", i);
            msg_sub(&f, 7, call_of(level == 11 ? "Twice" : next, "a", out));
        }
        msg_sub(&file, 25, f);
    }
    rejected(file, ERR_LIMIT, "");
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_become_bodies),
        cmocka_unit_test(attributes_are_passed_to_bodies),
        cmocka_unit_test(bodies_inside_functions),
        cmocka_unit_test(wrong_calls_are_rejected),
        cmocka_unit_test(bombs_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
