// The writer: what it writes reads back equal, and ONNX's own checker accepts it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/onnx/onnx.h"
#include "tests/model/graph_equal.h"
#include "tests/runner.h"

#define SUITE "/usr/share/libonnx-testdata/data"

static char folder[] = "/tmp/onnx_write_XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

// "/…/data/node/test_relu/model.onnx" is written as "FOLDER/node:test_relu".
static void written_path(const char *from, char *to, size_t size) {
    const char *name = from + strlen(SUITE) + 1;
    (void)snprintf(to, size, "%s/%.*s", folder, (int)(strlen(name) - strlen("/model.onnx")), name);
    char *slash = strrchr(to, '/');
    *slash = ':';
}

static bool round_trip(const char *path) {
    char  to[512];
    Model m, again;
    Err   e = onnx_read(path, &m);
    if (e != ERR_OK) return false;
    written_path(path, to, sizeof to);
    e = onnx_write(&m, to);
    if (e != ERR_OK) fail_msg("%s: %s", path, err_why());
    e = onnx_read(to, &again);
    if (e != ERR_OK) fail_msg("%s: %s", path, err_why());
    assert_int_equal(m.opset, again.opset);
    if (!graph_equal(m.graph, again.graph)) fail_msg("%s: reads back different", path);
    model_finish(&m);
    model_finish(&again);
    return true;
}

static void suite_reads_back_equal(void **state) {
    (void)state;
    glob_t found = {0};
    size_t n = 0;
    if (glob(SUITE "/*/*/model.onnx", 0, NULL, &found) != 0) skip();
    for (size_t i = 0; i < found.gl_pathc; i++) n += round_trip(found.gl_pathv[i]);
    print_message("%zu of %zu models went through\n", n, found.gl_pathc);
    globfree(&found);
    assert_true(n > 1000);
}

// A model that the checker rejects as ONNX ships it need not pass after writing.
static const char checker[] = "import glob, onnx, sys\n"
                              "bad = 0\n"
                              "def ok(f):\n"
                              "    try: onnx.checker.check_model(onnx.load(f)); return None\n"
                              "    except onnx.checker.ValidationError as e: return str(e)\n"
                              "for f in sorted(glob.glob(sys.argv[1] + '/*:*')):\n"
                              "    why = ok(f)\n"
                              "    if why and not ok(sys.argv[2] + '/' + "
                              "f.split('/')[-1].replace(':', '/') + '/model.onnx'):\n"
                              "        print(f, why); bad += 1\n"
                              "sys.exit(bad > 0 or len(glob.glob(sys.argv[1] + '/*:*')) < 1000)\n";

static void checker_accepts(void **state) {
    (void)state;
    if (system("/usr/bin/python3 -c 'import onnx' 2>/dev/null") != 0) {
        print_message("skipped: python3-onnx is not installed\n");
        skip();
    }
    char script[128], command[512];
    (void)snprintf(script, sizeof script, "%s/check.py", folder);
    FILE *f = fopen(script, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(checker, 1, sizeof checker - 1, f), sizeof checker - 1);
    assert_int_equal(fclose(f), 0);
    (void)snprintf(command, sizeof command, "/usr/bin/python3 %s %s " SUITE, script, folder);
    assert_int_equal(system(command), 0);
}

static Tensor f32(int32_t rank, const int64_t *dims) { return tensor_of(DT_F32, rank, dims, NULL); }

// A model built by hand, with weights that are generated on demand.
static void build_filled(Model *m, const RandomFill *fill) {
    static const int64_t weight[] = {3, 4}, data[] = {DIM_UNKNOWN, 4};
    static const char   *symbols[] = {"N", NULL};
    static uint32_t      in[1], out[1];
    assert_int_equal(model_init(m, "filled"), ERR_OK);
    m->opset = 13;
    Graph   *g = m->graph;
    uint32_t x = graph_value(g, "x"), y = graph_value(g, "y");
    g->values[x].type = g->values[y].type = f32(2, data);
    g->values[x].symbols = g->values[y].symbols = symbols;
    graph_input(g, x);
    graph_output(g, y);
    graph_const(g, "w", f32(2, weight), fill);
    in[0] = x;
    out[0] = y;
    graph_node(g, (Node){"relu", OP_Relu, 13, 1, 1, 0, in, out, NULL});
    assert_int_equal(graph_sort(g), ERR_OK);
}

static void random_weights_are_written(void **state) {
    (void)state;
    RandomFill fill = {1.0f, 0.5f, {42}};
    Model      m, again;
    char       path[128];
    float      want[12];
    build_filled(&m, &fill);
    (void)snprintf(path, sizeof path, "%s/filled.onnx", folder);
    assert_int_equal(onnx_write(&m, path), ERR_OK);
    assert_int_equal(onnx_read(path, &again), ERR_OK);
    assert_true(graph_equal(m.graph, again.graph));
    const Value *w = &again.graph->values[graph_find(again.graph, "w")];
    random_fill_make(&fill, &w->type, want);
    assert_memory_equal(w->type.data, want, sizeof want);
    const Value *x = &again.graph->values[again.graph->inputs[0]];
    assert_string_equal(x->symbols[0], "N");
    assert_null(x->symbols[1]);
    model_finish(&m);
    model_finish(&again);
}

static void too_large_is_rejected(void **state) {
    (void)state;
    RandomFill fill = {0};
    Model      m;
    char       path[128];
    int64_t    dims[] = {1 << 15, 1 << 15};
    build_filled(&m, &fill);
    graph_const(m.graph, "big", f32(2, dims), &fill);
    (void)snprintf(path, sizeof path, "%s/big.onnx", folder);
    assert_int_equal(onnx_write(&m, path), ERR_LIMIT);
    assert_int_not_equal(access(path, F_OK), 0);
    model_finish(&m);
}

static void unwritable_is_reported(void **state) {
    (void)state;
    RandomFill fill = {0};
    Model      m;
    build_filled(&m, &fill);
    assert_int_equal(onnx_write(&m, "/nonexistent/x.onnx"), ERR_IO);
    assert_non_null(strstr(err_why(), "/nonexistent/x.onnx"));
    model_finish(&m);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suite_reads_back_equal),     cmocka_unit_test(checker_accepts),
        cmocka_unit_test(random_weights_are_written), cmocka_unit_test(too_large_is_rejected),
        cmocka_unit_test(unwritable_is_reported),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
