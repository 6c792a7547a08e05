// The reader on ONNX's own test data: every model loads or is rejected with a reason.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "model/onnx/onnx.h"
#include "tests/runner.h"

#define SUITE "/usr/share/libonnx-testdata/data"

static void relu_loads(void **state) {
    (void)state;
    Model m;
    if (onnx_read(SUITE "/node/test_relu/model.onnx", &m) == ERR_IO) skip();
    assert_int_equal(m.graph->n_nodes, 1);
    assert_int_equal(m.graph->n_inputs, 1);
    assert_int_equal(m.graph->n_outputs, 1);
    assert_int_equal(m.graph->nodes[0].op, OP_Relu);
    assert_int_equal(m.graph->nodes[0].version, 14);
    const Tensor *in = &m.graph->values[m.graph->inputs[0]].type;
    assert_int_equal(in->dtype, DT_F32);
    assert_int_equal(in->rank, 3);
    assert_int_equal(in->dims[2], 5);
    Tensor t;
    assert_int_equal(
        onnx_read_value(SUITE "/node/test_relu/test_data_set_0/input_0.pb", NULL, &m.arena, &t),
        ERR_OK);
    assert_true(tensor_same_shape(&t, in));
    model_finish(&m);
}

// A rejection names the node, or a type that Tensor cannot represent.
static void all_load_or_reject(void **state) {
    (void)state;
    glob_t found = {0};
    if (glob(SUITE "/*/*/model.onnx", 0, NULL, &found) != 0) skip();
    size_t loaded = 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        Model m;
        Err   e = onnx_read(found.gl_pathv[i], &m);
        if (e == ERR_OK)
            loaded++;
        else if (e != ERR_UNSUPPORTED)
            print_message("%s\n", err_why());
        assert_true(e == ERR_OK || e == ERR_UNSUPPORTED);
        if (e != ERR_OK) assert_null(m.arena.base);
        model_finish(&m);
    }
    print_message("%zu of %zu models load\n", loaded, found.gl_pathc);
    globfree(&found);
    assert_true(loaded > 1000);
}

static void missing_file(void **state) {
    (void)state;
    Model m;
    assert_int_equal(onnx_read("/nonexistent/x.onnx", &m), ERR_IO);
    assert_non_null(strstr(err_why(), "/nonexistent/x.onnx"));
    assert_int_equal(onnx_read("/", &m), ERR_IO);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relu_loads),
        cmocka_unit_test(all_load_or_reject),
        cmocka_unit_test(missing_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
