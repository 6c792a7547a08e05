// Unusual models: no compiled layers, no shapes, too large, never ending.
#include "tests/serve/registry_fixture.h"

#include <sys/resource.h>

#include "tests/serve/registry_files.h"
#include "tests/runner.h"

static RegistryFixture g;

static int open_fixture(void **state) {
    (void)state;
    fixture_open(&g);
    return 0;
}

static int close_fixture(void **state) {
    (void)state;
    fixture_close(&g);
    return 0;
}

static ModelInfo *serve(const char *path) {
    fixture_model(&g, "m", "1", path);
    fixture_start(&g);
    fixture_settle(&g);
    return fixture_find(&g, "m", NULL);
}

static Msg one_node(Msg node, Msg in, Msg out) {
    Msg graph = {0};
    msg_sub(&graph, 1, node);
    msg_sub(&graph, 11, in);
    msg_sub(&graph, 12, out);
    return graph;
}

static void nothing_of_it_can_be_compiled(void **state) {
    (void)state;
    FixtureCall   k;
    const int64_t in_dims[] = {4}, out_dims[] = {1, -1};
    float         data[] = {0, 3, 0, 5};
    Tensor        in = tensor_of(DT_F32, 1, in_dims, data);
    Msg           graph = one_node(node_of("NonZero", "x", "y"), info_of("x", 1, 1, in_dims),
                                   info_of("y", 7, 2, out_dims));
    ModelInfo    *s = serve(write_model(g.dir, "m", model_of(graph, 13)));
    assert_string_equal(s->reason, "");
    fixture_ask(&g, &k, s, &in);
    assert_int_equal(k.end, LIVE_DONE);
    assert_int_equal(k.out[0].dtype, DT_I64);
    assert_int_equal(k.out[0].dims[1], 2);
}

static void an_output_is_an_input(void **state) {
    (void)state;
    FixtureCall   k;
    const int64_t dims[] = {4};
    float         data[] = {7, 3, 0, 5};
    Tensor        in = tensor_of(DT_F32, 1, dims, data);
    Msg           graph =
        one_node(node_of("Identity", "x", "y"), info_of("x", 1, 1, dims), info_of("y", 1, 1, dims));
    fixture_ask(&g, &k, serve(write_model(g.dir, "m", model_of(graph, 13))), &in);
    assert_int_equal(k.end, LIVE_DONE);
    assert_true(k.first[0] == 7);
}

static void strings_are_served(void **state) {
    (void)state;
    FixtureCall   k;
    const int64_t dims[] = {2};
    Str           words[] = {{"ab", 2}, {"c", 1}};
    Tensor        in = tensor_of(DT_STR, 1, dims, words);
    Msg           graph = one_node(node_of("StringConcat", "x x", "y"), info_of("x", 8, 1, dims),
                                   info_of("y", 8, 1, dims));
    ModelInfo    *s = serve(write_model(g.dir, "m", model_of(graph, 20)));
    assert_string_equal(s->reason, "");
    fixture_ask(&g, &k, s, &in);
    assert_int_equal(k.end, LIVE_DONE);
    assert_int_equal(k.out[0].dtype, DT_STR);
}

// No rank, no shape: it is ready, and compiled when the first request says what it is.
static void shapes_are_not_known_before(void **state) {
    (void)state;
    FixtureCall k;
    float       data[8] = {-2};
    Msg         type = {0}, tensor = {0}, in = {0}, out = {0}, graph = {0};
    msg_int(&tensor, 1, 1);
    msg_sub(&type, 1, tensor);
    msg_text(&in, 1, "x");
    msg_bytes(&in, 2, type.at, type.n);
    msg_text(&out, 1, "y");
    msg_bytes(&out, 2, type.at, type.n);
    free(type.at);
    msg_sub(&graph, 1, node_of("Abs", "x", "y"));
    msg_sub(&graph, 11, in);
    msg_sub(&graph, 12, out);
    ModelInfo *s = serve(write_model(g.dir, "m", model_of(graph, 13)));
    assert_int_equal(s->state, MODEL_READY);
    assert_int_equal(s->signature.inputs[0].type.rank, RANK_UNKNOWN);
    for (int32_t rank = 1; rank <= 3; rank++) {
        Tensor t = tensor_of(DT_F32, rank, (int64_t[]){2, 2, 2}, data);
        fixture_ask(&g, &k, s, &t);
        assert_int_equal(k.end, LIVE_DONE);
        assert_true(k.first[0] == 2);
        assert_int_equal(k.out[0].rank, rank);
    }
    assert_true(s->target_ns > 0);
}

static void small_images_are_no_measure(void **state) {
    (void)state;
    const int64_t in_dims[] = {-1, 3, -1, -1}, out_dims[] = {-1, 3, -1, -1};
    Msg           node = node_of("MaxPool", "x", "y"), kernel = attr_of("kernel_shape", 7), graph;
    for (int i = 0; i < 2; i++) msg_int(&kernel, 8, 7);
    msg_sub(&node, 5, kernel);
    graph = one_node(node, info_of("x", 1, 4, in_dims), info_of("y", 1, 4, out_dims));
    ModelInfo *s = serve(write_model(g.dir, "m", model_of(graph, 13)));
    assert_int_equal(s->state, MODEL_READY);
    assert_true(registry_estimate_ns(s) > 0);
}

// 2^40 floats from a file of a hundred bytes.
static void what_is_too_large_is_refused_before(void **state) {
    (void)state;
    const int64_t in_dims[] = {1}, out_dims[] = {1 << 20, 1 << 20}, n = 2;
    Msg           graph = one_node(node_of("Expand", "x s", "y"), info_of("x", 1, 1, in_dims),
                                   info_of("y", 1, 2, out_dims));
    Msg           shape = tensor_head("s", 7, 1, &n);
    msg_bytes(&shape, 9, out_dims, sizeof out_dims);
    msg_sub(&graph, 5, shape);
    ModelInfo *s = serve(write_model(g.dir, "m", model_of(graph, 13)));
    assert_int_equal(s->state, MODEL_UNAVAILABLE);
    if (strstr(s->reason, "bytes") == NULL) fail_msg("%s", s->reason);
}

static void a_tenant_has_no_more_than_its_memory(void **state) {
    (void)state;
    fixture_model(&g, "little", "1", "zoo:squeezenet1_1")->set.memory_mb = 4;
    fixture_model(&g, "more", "1", "zoo:squeezenet1_1")->set.memory_mb = 8;
    fixture_model(&g, "enough", "1", "zoo:squeezenet1_1")->set.memory_mb = 40;
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *little = fixture_find(&g, "little", NULL), *more = fixture_find(&g, "more", NULL);
    ModelInfo *enough = fixture_find(&g, "enough", NULL);
    assert_int_equal(little->state, MODEL_UNAVAILABLE);
    assert_non_null(strstr(little->reason, "5 MiB"));
    assert_int_equal(more->state, MODEL_UNAVAILABLE);
    assert_non_null(strstr(more->reason, "MiB"));
    assert_string_equal(enough->reason, "");
    assert_int_equal(enough->state, MODEL_READY);
    assert_true(enough->memory_bytes <= 40 << 20);
}

// Loop without an end: it is ready or refused, but the loader goes on to the next.
static void a_loop_without_an_end(void **state) {
    (void)state;
    Msg           body = {0}, graph = {0}, loop = node_of("Loop", "- yes x", "y");
    const int64_t dims[] = {1};
    uint8_t       yes = 1;
    Msg           truth = tensor_head("yes", 9, 0, NULL);
    msg_bytes(&truth, 9, &yes, 1);
    msg_sub(&body, 1, node_of("Identity", "c", "c_out"));
    msg_sub(&body, 1, node_of("Identity", "v", "v_out"));
    msg_sub(&body, 11, info_of("i", 7, 0, NULL));
    msg_sub(&body, 11, info_of("c", 9, 0, NULL));
    msg_sub(&body, 11, info_of("v", 1, 1, dims));
    msg_sub(&body, 12, info_of("c_out", 9, 0, NULL));
    msg_sub(&body, 12, info_of("v_out", 1, 1, dims));
    msg_sub(&loop, 5, graph_attr("body", body));
    msg_sub(&graph, 1, loop);
    msg_sub(&graph, 5, truth);
    msg_sub(&graph, 11, info_of("x", 1, 1, dims));
    msg_sub(&graph, 12, info_of("y", 1, 1, dims));
    fixture_model(&g, "endless", "1", write_model(g.dir, "m", model_of(graph, 13)));
    fixture_model(&g, "next", "1", "zoo:lstm_kws");
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "endless", NULL);
    assert_int_equal(s->state, MODEL_UNAVAILABLE);
    assert_non_null(strstr(s->reason, "exceeded `watchdog_ms`"));
    assert_int_equal(fixture_find(&g, "next", NULL)->state, MODEL_READY);
}

// The interpreter would compute 300 million floats for an input of ones or zeros.
static const char *write_hog(const char *dir, const char *name) {
    const int64_t dims[] = {1}, one = 1, floats = 300000000;
    Msg           graph = {0}, n = tensor_head("n", 7, 1, &one);
    msg_bytes(&n, 9, &floats, sizeof floats);
    msg_sub(&graph, 1, node_of("Exp", "x", "e"));
    msg_sub(&graph, 1, node_of("NonZero", "e", "z"));
    msg_sub(&graph, 1, node_of("Shape", "z", "s"));
    msg_sub(&graph, 1, node_of("ReduceProd", "s", "k"));
    msg_sub(&graph, 1, node_of("Mul", "k n", "m"));
    msg_sub(&graph, 1, node_of("ConstantOfShape", "m", "c"));
    msg_sub(&graph, 1, node_of("Add", "c x", "d"));
    msg_sub(&graph, 1, node_of("ReduceMax", "d", "y"));
    msg_sub(&graph, 5, n);
    msg_sub(&graph, 11, info_of("x", 1, 1, dims));
    msg_sub(&graph, 12, info_of("y", 1, 1, dims));
    return write_model(dir, name, model_of(graph, 13));
}

// Measuring and warming up a model takes no more memory than a request may.
static void a_load_takes_the_memory_of_a_request(void **state) {
    (void)state;
    struct rusage before, after;
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    fixture_model(&g, "hog", "1", write_hog(g.dir, "hog"))->set.request_mb = 64;
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "hog", NULL);
    assert_string_equal(s->reason, "");
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    assert_true(after.ru_maxrss < before.ru_maxrss + (400 << 10));
    assert_int_equal(budget_used(&s->memory), 0);
}

// Products of two constants of the input's size: folding them takes many minutes.
static const char *write_slow_fold(const char *dir, const char *name) {
    enum { PRODUCTS = 2000 };
    const int64_t in_dims[] = {-1}, out_dims[] = {-1, -1};
    Msg           graph = {0}, concat = node_of("Concat", "s s", "d"), axis = attr_of("axis", 2);
    msg_int(&axis, 3, 0);
    msg_sub(&concat, 5, axis);
    msg_sub(&graph, 1, node_of("Shape", "x", "s"));
    msg_sub(&graph, 1, concat);
    msg_sub(&graph, 1, node_of("ConstantOfShape", "d", "m0"));
    for (int i = 0; i < PRODUCTS; i++) {
        char ins[32], out[32];
        (void)snprintf(ins, sizeof ins, "m%d m0", i);
        (void)snprintf(out, sizeof out, "m%d", i + 1);
        msg_sub(&graph, 1, node_of("MatMul", ins, out));
    }
    msg_sub(&graph, 1, node_of("Identity", "m2000", "y"));
    msg_sub(&graph, 11, info_of("x", 1, 1, in_dims));
    msg_sub(&graph, 12, info_of("y", 1, 2, out_dims));
    return write_model(dir, name, model_of(graph, 13));
}

static bool waits(RegistryFixture *f, void *until) {
    (void)f;
    return clock_monotonic_ns() > *(const TimeNs *)until;
}

// The requests for a shape leave while it is compiled, which would take minutes: the shape of
// another model is compiled soon.
static void a_compile_without_requests_ends(void **state) {
    (void)state;
    FixtureCall gone, k;
    float       data[500] = {5};
    Tensor      in = tensor_of(DT_F32, 1, (int64_t[]){500}, data);
    Tensor      other = tensor_of(DT_F32, 2, (int64_t[]){3, 8}, data);
    fixture_model(&g, "slow", "1", write_slow_fold(g.dir, "slow"));
    fixture_model(&g, "adder", "1", write_adder(g.dir, "adder", 1, -1));
    fixture_start(&g);
    fixture_settle(&g);
    ModelInfo *s = fixture_find(&g, "slow", NULL);
    assert_string_equal(s->reason, "");
    fixture_submit(&g, &gone, s, &in);
    TimeNs soon = clock_monotonic_ns() + 300000000;
    fixture_until(&g, waits, &soon);
    assert_int_equal(gone.answered, 0);
    registry_cancel_wait(g.registry, s, &gone.when);
    registry_release(g.registry, s);
    fixture_ask(&g, &k, fixture_find(&g, "adder", NULL), &other);
    assert_int_equal(k.end, LIVE_DONE);
}

static void a_class_says_how_far_the_deadline_is(void **state) {
    (void)state;
    fixture_model(&g, "a", "1", "zoo:lstm_kws")->set.target_ms = 20;
    fixture_model(&g, "b", "1", "zoo:lstm_kws")->set.class = "best_effort";
    ConfigModel *c = fixture_model(&g, "c", "1", "zoo:lstm_kws");
    c->set.class = "throughput";
    c->set.target_ms = 20;
    fixture_start(&g);
    fixture_settle(&g);
    assert_int_equal(fixture_find(&g, "a", NULL)->target_ns, 20000000);
    assert_int_equal(fixture_find(&g, "b", NULL)->target_ns, INT64_C(60000000000));
    assert_int_equal(fixture_find(&g, "c", NULL)->target_ns, 200000000);
}

TEST_MAIN() {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(nothing_of_it_can_be_compiled),
        TEST(an_output_is_an_input),
        TEST(strings_are_served),
        TEST(shapes_are_not_known_before),
        TEST(small_images_are_no_measure),
        TEST(what_is_too_large_is_refused_before),
        TEST(a_tenant_has_no_more_than_its_memory),
        TEST(a_loop_without_an_end),
        TEST(a_load_takes_the_memory_of_a_request),
        TEST(a_compile_without_requests_ends),
        TEST(a_class_says_how_far_the_deadline_is),
    };
    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
