// Inputs and outputs declared in config.pbtxt must agree with the model.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "serve/models/model_signature.h"
#include "tests/runner.h"

static TensorSpec input, output;

// "a" is float32 [?, 3, ?], "b" int64 of any shape.
static ModelSignature signature(void) {
    input = (TensorSpec){.name = "a", .type = {.dtype = DT_F32, .rank = 3, .dims = {-1, 3, -1}}};
    output = (TensorSpec){.name = "b", .type = {.dtype = DT_I64, .rank = RANK_UNKNOWN}};
    return (ModelSignature){.inputs = &input, .outputs = &output, .n_inputs = 1, .n_outputs = 1};
}

static Err declare(const char *text) {
    Arena          a;
    Pbtxt          p = {0};
    ModelSignature x = signature();
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(pbtxt_parse("c", text, strlen(text), true, &a, &p), ERR_OK);
    Err e = signature_narrow(&x, &p);
    arena_finish(&a);
    return e;
}

static void test_agrees(void **state) {
    (void)state;
    assert_int_equal(declare(""), ERR_OK);
    assert_int_equal(declare("input { name: \"a\" }"), ERR_OK);
    assert_int_equal(declare("input { name: \"a\" data_type: TYPE_FP32 dims: [ -1, 3, 7 ] }"),
                     ERR_OK);
    assert_true(input.type.dims[0] == -1 && input.type.dims[1] == 3 && input.type.dims[2] == 7);
    assert_int_equal(declare("max_batch_size: 8 input { name: \"a\" dims: [ -1, 7 ] }"), ERR_OK);
    assert_true(input.type.dims[0] == -1 && input.type.dims[1] == 3 && input.type.dims[2] == 7);
    assert_int_equal(declare("output { name: \"b\" data_type: TYPE_INT64 dims: [ 5 ] }"), ERR_OK);
}

static void test_contradicts(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"\ninput { name: \"b\" }", "config.pbtxt:2: the model has no input 'b'"},
        {"output { name: \"a\" }", "config.pbtxt:1: the model has no output 'a'"},
        {"input { name: \"a\" data_type: TYPE_FP64 }", "'a' is float32 in the model, not float64"},
        {"input { name: \"a\" dims: [ 1, 3 ] }", "'a' has 3 dimensions in the model, not 2"},
        {"max_batch_size: 1 input { name: \"a\" dims: [ 1, 3, 1 ] }", "the batch included, not 4"},
        {"input { name: \"a\" dims: [ 1, 4, 1 ] }", "dimension 1 of input 'a' is 3 in the model"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(declare(wrong[i][0]), ERR_CONFIG);
        if (strstr(err_why(), wrong[i][1]) == NULL) fail_msg("%s\n%s", wrong[i][0], err_why());
    }
}

static void reshapes(const char *text, const char *type, const char *own) {
    char seen[160], inside[160];
    if (declare(text) != ERR_OK) fail_msg("%s\n%s", text, err_why());
    assert_true(input.reshaped);
    tensor_shape_text(&input.type, seen, sizeof seen);
    tensor_shape_text(&input.own, inside, sizeof inside);
    assert_string_equal(seen, type);
    assert_string_equal(inside, own);
}

static void gives(bool inward, Tensor t, const Tensor *want) {
    assert_int_equal(infer_apply_reshape(&input, inward, &t), ERR_OK);
    assert_true(tensor_same_shape(&t, want));
}

// Clients see dims, the model has the shape of the reshape; its own is ?x3x?.
static void test_reshape(void **state) {
    (void)state;
    reshapes("max_batch_size: 8 input { name: \"a\" dims: [ 21 ] reshape { shape: [ 3, 7 ] } }",
             "?x21", "?x3x7");
    Tensor outside = tensor_of(DT_F32, 2, (int64_t[]){5, 21}, NULL);
    Tensor inside = tensor_of(DT_F32, 3, (int64_t[]){5, 3, 7}, NULL);
    gives(true, outside, &inside);
    gives(false, inside, &outside);
    Tensor wrong = tensor_of(DT_F32, 3, (int64_t[]){5, 4, 7}, NULL);
    assert_int_equal(infer_apply_reshape(&input, false, &wrong), ERR_INVALID);
    assert_string_equal(err_why(), "'a' has shape 5x4x7; config.pbtxt reshapes ?x3x7");
    assert_int_equal(infer_apply_reshape(&input, false, &outside), ERR_INVALID);
    reshapes("input { name: \"a\" dims: [ 3, -1, 1, -1 ] reshape { shape: [ -1, 3, -1 ] } }",
             "3x?x1x?", "?x3x?");
    outside = tensor_of(DT_F32, 4, (int64_t[]){3, 2, 1, 9}, NULL);
    inside = tensor_of(DT_F32, 3, (int64_t[]){2, 3, 9}, NULL);
    gives(true, outside, &inside);
    gives(false, inside, &outside);
    reshapes("input { name: \"a\" dims: [ -1, -1, -1 ] reshape { shape: [ -1, -1, -1 ] } }",
             "?x3x?", "?x3x?");
    static const char *const bad[][2] = {
        {"input { name: \"a\" reshape { shape: [ 1, 3, 7 ] } }", "'a' needs its dims"},
        {"input { name: \"a\" dims: [ 20 ] reshape { shape: [ 1, 3, 7 ] } }",
         "dims of input 'a' have 20 elements, its reshape has 21"},
        {"input { name: \"a\" dims: [ -1 ] reshape { shape: [ 1, 3, 7 ] } }",
         "have 1 open dimensions (-1), its reshape has 0"},
        {"input { name: \"a\" dims: [ 21 ] reshape { shape: [ 3, 7 ] } }",
         "has 3 dimensions in the model, not 2"},
        {"input { name: \"a\" dims: [ 20 ] reshape { shape: [ 1, 4, 5 ] } }",
         "dimension 1 of input 'a' is 3 in the model, not 4"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(declare(bad[i][0]), ERR_CONFIG);
        if (strstr(err_why(), bad[i][1]) == NULL) fail_msg("%s\n%s", bad[i][0], err_why());
    }
}

static void test_graph(void **state) {
    (void)state;
    uint32_t       in = 0, out = 1;
    Value          values[2] = {{.name = "x", .type = {.dtype = DT_F32, .rank = 1, .dims = {-5}}},
                                {.name = "y", .type = {.dtype = DT_C64, .rank = 0}}};
    Graph          g = {.values = values, .inputs = &in, .n_inputs = 1};
    ModelSignature p = {0};
    Arena          a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(signature_from_graph(&g, &a, &p), ERR_OK);
    assert_true(p.n_inputs == 1 && p.n_outputs == 0);
    assert_string_equal(p.inputs[0].name, "x");
    assert_int_equal(p.inputs[0].type.dims[0], DIM_UNKNOWN);
    g.outputs = &out;
    g.n_outputs = 1;
    assert_int_equal(signature_from_graph(&g, &a, &p), ERR_UNSUPPORTED);
    assert_non_null(strstr(err_why(), "output 'y' has type complex64"));
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees),
        cmocka_unit_test(test_contradicts),
        cmocka_unit_test(test_reshape),
        cmocka_unit_test(test_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
