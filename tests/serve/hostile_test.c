// Malicious model files, loaded as a server does: read, compiled, measured. Each is rejected with a
// reason or runs; memory errors show under the sanitizers. COTENANT_LONG: more.
#include "tests/serve/registry_files.h"

#include <glob.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "model/onnx/onnx.h"
#include "model/zoo/zoo.h"
#include "node/prepared_model.h"
#include "tests/runner.h"

#define SUITE "/usr/share/libonnx-testdata/data/*/*/model.onnx"

enum { ROOM = 64, FILE_MOST = 1 << 24, LARGE = 1 << 16 };

static Host host;
static char dir[] = "/tmp/cotenant_hostile_XXXXXX";
static char path[64];

static int begin(void **state) {
    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/model.onnx", dir);
    if (host_open(&host, 2, "/dev/null/none") != ERR_OK) fail_msg("%s", err_why());
    host_quiet(&host);
    return 0;
}

static int end(void **state) {
    char command[96];
    (void)state;
    host_close(&host);
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static Err prepare(const Source *s, PreparedModel *out) {
    PrepareOptions o = {.runs = 1,
                        .background = true,
                        .interpret = true,
                        .max_bytes = 256 << 20,
                        .most_ns = 1000000000};
    return prepared_model_make(out, s, &host, &o);
}

// As the loader does it; afterwards one run from the outside.
static Err load_and_run(const char *file) {
    Source        s;
    PreparedModel t;
    TRY(source_read(&s, file, &(SourceOptions){.name = "model", .max_bytes = 256 << 20}));
    Err e = prepare(&s, &t);
    if (e == ERR_OK) {
        RunMemory space = {0};
        Arena     a = {0};
        Tensor   *out = NULL;
        e = arena_init(&a, (size_t)1 << 36);
        if (e == ERR_OK) e = run_memory_init(&space, &t.program, 1);
        if (e == ERR_OK) out = arena_try_new(&a, Tensor, s.model.graph->n_outputs);
        t.program.limits =
            (InterpLimits){.max_bytes = 256 << 20, .max_iterations = 1000, .max_macs = 100000000};
        if (out != NULL) e = program_run(&t.program, &space, NULL, t.inputs, &a, out);
        run_memory_finish(&space);
        arena_finish(&a);
        prepared_model_finish(&t);
    }
    source_finish(&s);
    return e;
}

static size_t mutate(Rng *r, char *at, size_t n) {
    size_t where = (size_t)rng_below(r, n), len = 1 + (size_t)rng_below(r, ROOM - 1);
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

typedef struct Count {
    uint32_t refused, ran;
} Count;

static void damage(const char *file, uint64_t seed, uint32_t rounds, Count *count) {
    Arena  a;
    char  *bytes = NULL, *bad = NULL;
    size_t n = 0;
    Rng    r = {seed};
    assert_int_equal(arena_init(&a, (size_t)1 << 30), ERR_OK);
    assert_int_equal(file_read(file, FILE_MOST, &a, &bytes, &n), ERR_OK);
    bad = arena_try(&a, n + ROOM, 1, 1);
    assert_non_null(bad);
    for (uint32_t i = 0; n > 0 && i < rounds; i++) {
        memcpy(bad, bytes, n);
        write_bytes(path, bad, mutate(&r, bad, n));
        Err e = load_and_run(path);
        count->ran += e == ERR_OK;
        count->refused += e != ERR_OK;
        if (e != ERR_OK) assert_true(err_why()[0] != '\0');
    }
    arena_finish(&a);
}

static uint32_t rounds(uint32_t few) { return getenv("COTENANT_LONG") != NULL ? few * 10 : few; }

static void networks_of_the_zoo(void **state) {
    (void)state;
    Model m;
    char  file[80];
    Count c = {0};
    (void)snprintf(file, sizeof file, "%s/whole.onnx", dir);
    assert_int_equal(zoo_build("lstm_kws", NULL, &m), ERR_OK);
    assert_int_equal(onnx_write(&m, file), ERR_OK);
    model_finish(&m);
    damage(file, 7, rounds(60), &c);
    assert_true(c.ran > 0 && c.refused > 0);
}

// Every operator there is, in small models.
static void cases_of_the_suite(void **state) {
    (void)state;
    glob_t all;
    Count  c = {0};
    if (glob(SUITE, 0, NULL, &all) != 0) skip();
    for (size_t i = 0; i < all.gl_pathc; i++) {
        FILE  *f = NULL;
        size_t n = 0;
        if (file_open(all.gl_pathv[i], &f, &n) != ERR_OK) continue;
        (void)fclose(f);
        if (n < LARGE) damage(all.gl_pathv[i], 1000 + i, rounds(1), &c);
    }
    globfree(&all);
    assert_true(c.ran > 0 && c.refused > 0);
}

static Msg ints_attr(const char *name, const int64_t *v, uint32_t n) {
    Msg m = attr_of(name, 7);
    for (uint32_t i = 0; i < n; i++) msg_int(&m, 8, v[i]);
    return m;
}

static Msg ints_of(const char *name, const int64_t *v, int64_t n) {
    Msg m = tensor_head(name, 7, 1, &n);
    msg_bytes(&m, 9, v, (size_t)n * sizeof *v);
    return m;
}

typedef struct Case {
    const char *op, *in;  // x, and what else there is of w, n
    const char *attr;     // NULL: none
    int64_t     ints[8];  // of the attribute; a list when the name begins with '*'
    uint32_t    n_ints;
    int64_t     x[5], w[6];  // shapes of the input and of a weight, rank first; w[0] 0: none
    int64_t     n[4];        // numbers of a constant, their count first
} Case;

#define X1                                                                                         \
    { 4, 1, 4, 9, 9 }
#define W1                                                                                         \
    { 4, 4, 4, 3, 3 }
#define NO                                                                                         \
    { 0 }
#define BIG     INT64_C(0x7fffffffffffffff)
#define FOUR(v) {v, v, v, v}, 4

static const Case cases[] = {
    {"Conv", "x w", NULL, {0}, 0, X1, {3, 4, 4, 3}, NO},
    {"Conv", "x w", NULL, {0}, 0, X1, {5, 4, 4, 3, 3, 3}, NO},
    {"Conv", "x w", NULL, {0}, 0, {2, 4, 9}, W1, NO},
    {"Conv", "x w", "*strides", {0, 1}, 2, X1, W1, NO},
    {"Conv", "x w", "*strides", {-1, 1}, 2, X1, W1, NO},
    {"Conv", "x w", "*strides", {1}, 1, X1, W1, NO},
    {"Conv", "x w", "*dilations", {0, 0}, 2, X1, W1, NO},
    {"Conv", "x w", "*dilations", {-2, 1}, 2, X1, W1, NO},
    {"Conv", "x w", "*dilations", {BIG, BIG}, 2, X1, W1, NO},
    {"Conv", "x w", "group", {0}, 1, X1, W1, NO},
    {"Conv", "x w", "group", {-1}, 1, X1, W1, NO},
    {"Conv", "x w", "group", {3}, 1, X1, W1, NO},
    {"Conv", "x w", "group", {BIG}, 1, X1, W1, NO},
    {"Conv", "x w", "*pads", FOUR(BIG), X1, W1, NO},
    {"Conv", "x w", "*pads", FOUR(-9), X1, W1, NO},
    {"Conv", "x w", "*pads", FOUR(1 << 30), X1, W1, NO},
    {"Conv", "x w", "*kernel_shape", {5, 5}, 2, X1, W1, NO},
    {"MaxPool", "x", "*kernel_shape", {0, 0}, 2, X1, NO, NO},
    {"MaxPool", "x", "*kernel_shape", {-3, 3}, 2, X1, NO, NO},
    {"MaxPool", "x", "*kernel_shape", {3}, 1, X1, NO, NO},
    {"MaxPool", "x", "*kernel_shape", {BIG, BIG}, 2, X1, NO, NO},
    {"Softmax", "x", "axis", {4}, 1, X1, NO, NO},
    {"Softmax", "x", "axis", {-5}, 1, X1, NO, NO},
    {"Softmax", "x", "axis", {INT64_MIN}, 1, X1, NO, NO},
    {"Concat", "x w", "axis", {9}, 1, X1, W1, NO},
    {"Concat", "x w", "axis", {0}, 1, X1, {2, 4, 4}, NO},
    {"Transpose", "x", "*perm", {0, 0, 1, 2}, 4, X1, NO, NO},
    {"Transpose", "x", "*perm", {0, 1, 2, 7}, 4, X1, NO, NO},
    {"Transpose", "x", "*perm", {0, 1}, 2, X1, NO, NO},
    {"Reshape", "x n", NULL, {0}, 0, X1, NO, {2, -1, -1}},
    {"Reshape", "x n", NULL, {0}, 0, X1, NO, {2, 7, -1}},
    {"Reshape", "x n", NULL, {0}, 0, X1, NO, {2, BIG, BIG}},
    {"Reshape", "x n", NULL, {0}, 0, X1, NO, {1, -2}},
    {"Split", "x n", "axis", {1}, 1, X1, NO, {1, 3}},
    {"Split", "x n", "axis", {1}, 1, X1, NO, {1, -4}},
    {"Expand", "x n", NULL, {0}, 0, X1, NO, {2, 1000000, 1000000}},
    {"Tile", "x n", NULL, {0}, 0, X1, NO, {2, BIG, BIG}},
    {"Gather", "x n", "axis", {0}, 1, X1, NO, {1, 4}},
    {"Gather", "x n", "axis", {0}, 1, X1, NO, {1, -2}},
    {"Gather", "x n", "axis", {0}, 1, X1, NO, {1, INT64_MIN}},
    {"Gather", "x n", "axis", {8}, 1, X1, NO, {1, 0}},
    {"Pad", "x n", NULL, {0}, 0, {1, 9}, NO, {2, BIG, BIG}},
    {"Pad", "x n", NULL, {0}, 0, {1, 9}, NO, {2, -9, -9}},
    {"Unsqueeze", "x n", NULL, {0}, 0, X1, NO, {1, 99}},
    {"Squeeze", "x n", NULL, {0}, 0, X1, NO, {1, 3}},
    {"OneHot", "n n x", NULL, {0}, 0, {1, 2}, NO, {1, BIG}},
    {"Flatten", "x", "axis", {-9}, 1, X1, NO, NO},
    {"MatMul", "x w", NULL, {0}, 0, X1, {2, 7, 7}, NO},
    {"Gemm", "x w", NULL, {0}, 0, X1, {2, 7, 7}, NO},
    {"InstanceNormalization", "x w w", NULL, {0}, 0, X1, {1, 5}, NO},
    {"ReduceSum", "x n", NULL, {0}, 0, X1, NO, {1, 44}},
    {"DepthToSpace", "x", "blocksize", {0}, 1, X1, NO, NO},
    {"DepthToSpace", "x", "blocksize", {BIG}, 1, X1, NO, NO},
    {"TopK", "x n", "axis", {3}, 1, X1, NO, {1, 10}},
    {"TopK", "x n", "axis", {3}, 1, X1, NO, {1, -1}},
    {"CumSum", "x n", NULL, {0}, 0, X1, NO, {1, 9}},
    {"ConvTranspose", "x w", "*output_padding", {BIG, BIG}, 2, X1, W1, NO},
    {"ConvTranspose", "x w", "*output_shape", {1 << 30, 1 << 30}, 2, X1, W1, NO},
    {"LRN", "x", "size", {0}, 1, X1, NO, NO},
    {"Einsum", "x x", NULL, {0}, 0, X1, NO, NO},
    {"Range", "n n n", NULL, {0}, 0, X1, NO, {1, 0}},
    {"ConstantOfShape", "n", NULL, {0}, 0, X1, NO, {3, 1 << 20, 1 << 20, 1}},
    {"Upsample", "x", NULL, {0}, 0, X1, NO, NO},
    {"ScatterND", "x n w", NULL, {0}, 0, X1, W1, {1, 99}},
    {"GatherND", "x n", NULL, {0}, 0, {1, 4}, NO, {1, 4}},
};

static Msg case_model(const Case *c) {
    Msg   graph = {0}, node = node_of(c->op, c->in, "y");
    bool  list = c->attr != NULL && c->attr[0] == '*';
    float one = 1;
    if (list) msg_sub(&node, 5, ints_attr(c->attr + 1, c->ints, c->n_ints));
    if (c->attr != NULL && !list) msg_sub(&node, 5, int_attr(c->attr, c->ints[0]));
    msg_sub(&graph, 1, node);
    if (c->w[0] > 0) {
        Msg     w = tensor_head("w", 1, (int32_t)c->w[0], c->w + 1);
        int64_t n = 1;
        for (int64_t i = 1; i <= c->w[0]; i++) n *= c->w[i];
        Msg raw = {0};
        for (int64_t i = 0; i < n; i++) msg_raw(&raw, &one, sizeof one);
        msg_sub(&w, 9, raw);
        msg_sub(&graph, 5, w);
    }
    if (c->n[0] > 0) msg_sub(&graph, 5, ints_of("n", c->n + 1, c->n[0]));
    msg_sub(&graph, 11, info_of("x", 1, (int32_t)c->x[0], c->x + 1));
    Msg out = {0};
    msg_text(&out, 1, "y");
    msg_sub(&graph, 12, out);
    return model_of(graph, 13);
}

static void operators_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Err e = load_and_run(write_model(dir, "case", case_model(&cases[i])));
        if (e == ERR_OK)
            fail_msg("case %zu: %s with a bad %s runs", i, cases[i].op,
                     cases[i].attr != NULL ? cases[i].attr : "input");
        assert_true(err_why()[0] != '\0');
    }
}

// Resize by 1e9, by a constant.
static void scales_are_bounded(void **state) {
    (void)state;
    Msg           graph = {0};
    const int64_t dims[] = {1, 1, 2, 2};
    const float   scales[] = {1, 1, 1e9f, 1e9f};
    msg_sub(&graph, 1, node_of("Resize", "x - s", "y"));
    msg_sub(&graph, 5, floats_of("s", 4, scales));
    msg_sub(&graph, 11, info_of("x", 1, 4, dims));
    Msg out = {0};
    msg_text(&out, 1, "y");
    msg_sub(&graph, 12, out);
    assert_int_not_equal(load_and_run(write_model(dir, "case", model_of(graph, 13))), ERR_OK);
}

// Many layers that do not fuse: time and memory in proportion, also in the compiler.
static void long_graphs_are_prepared(void **state) {
    (void)state;
    enum { NODES = 100000 };
    Msg  graph = {0};
    char from[16] = "x", to[16];
    for (int i = NODES; i > 0; i--, memcpy(from, to, sizeof to)) {
        (void)snprintf(to, sizeof to, "%d", i);
        msg_sub(&graph, 1, node_of("Softmax", from, to));
    }
    graph_ends(&graph, "x", "1");
    Err e = load_and_run(write_model(dir, "long", model_of(graph, 13)));
    if (e != ERR_OK) fail_msg("%s", err_why());
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_of_the_zoo),      cmocka_unit_test(cases_of_the_suite),
        cmocka_unit_test(operators_are_refused),    cmocka_unit_test(scales_are_bounded),
        cmocka_unit_test(long_graphs_are_prepared),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
