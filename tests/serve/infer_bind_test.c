// A request's inputs and requested outputs against a model's signature.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "serve/tensor/infer_request.h"
#include "tests/runner.h"

static const TensorSpec ins[] = {
    {.name = "image", .type = {.dtype = DT_F32, .rank = 4, .dims = {DIM_UNKNOWN, 3, 2, 2}}},
    {.name = "flag", .type = {.dtype = DT_BOOL, .rank = 1, .dims = {1}}},
    {.name = "bias", .type = {.dtype = DT_I64, .rank = RANK_UNKNOWN}, .optional = true}};
static const TensorSpec outs[] = {{.name = "y", .type = {.dtype = DT_F32, .rank = 1, .dims = {4}}},
                                  {.name = "z", .type = {.dtype = DT_F16, .rank = 1, .dims = {4}}}};
static const ModelSignature signature = {ins, outs, 3, 2};

static float   numbers[24];
static uint8_t truth = 1;

static InferTensor image(int64_t batch) {
    return (InferTensor){text_of("image"),
                         tensor_of(DT_F32, 4, (int64_t[]){batch, 3, 2, 2}, numbers)};
}

static InferTensor flag(void) {
    return (InferTensor){text_of("flag"), tensor_of(DT_BOOL, 1, (int64_t[]){1}, &truth)};
}

static void refuse(InferTensor *list, uint32_t n, const char *why) {
    InferRequest r = {.inputs = list, .n_inputs = n};
    Tensor       bound[3];
    Arena        a = {0};
    assert_int_equal(infer_bind_inputs(&signature, &r, &a, bound), ERR_INVALID);
    if (strstr(err_why(), why) == NULL) fail_msg("%s, not %s", err_why(), why);
}

static void test_order(void **state) {
    (void)state;
    InferTensor  list[] = {flag(), image(2)};
    InferRequest r = {.inputs = list, .n_inputs = 2};
    Tensor       bound[3];
    Arena        a = {0};
    assert_int_equal(infer_bind_inputs(&signature, &r, &a, bound), ERR_OK);
    assert_ptr_equal(bound[0].data, numbers);
    assert_int_equal(bound[0].dims[0], 2);
    assert_ptr_equal(bound[1].data, &truth);
    assert_int_equal(bound[2].dtype, DT_NONE);
    assert_null(bound[2].data);
}

static void test_misfits(void **state) {  // T2, T3
    (void)state;
    refuse(NULL, 0, "input 'image' is missing");
    refuse((InferTensor[]){flag()}, 1, "input 'image' is missing");
    refuse((InferTensor[]){image(1)}, 1, "input 'flag' is missing");
    refuse((InferTensor[]){image(1), flag(), image(1)}, 3, "inputs[2]: 'image' repeats inputs[0]");
    InferTensor t = image(1);
    t.name = text_of("Image");
    refuse((InferTensor[]){t, flag()}, 2, "inputs[0]: the model has no input 'Image'");
    t.name = text_of("a\n\"b");
    refuse((InferTensor[]){flag(), t}, 2, "inputs[1]: the model has no input 'a?\"b'");
    t = image(1);
    t.t.dtype = DT_F64;
    refuse((InferTensor[]){t, flag()}, 2, "input 'image' is FP64, the model takes FP32");
    t = image(1);
    t.t.rank = 3;
    refuse((InferTensor[]){t, flag()}, 2, "input 'image' has shape 1x3x2, the model takes ?x3x2x2");
    t = image(1);
    t.t.dims[3] = 3;
    refuse((InferTensor[]){t, flag()}, 2, "input 'image' has shape 1x3x2x3");
    t = image(0);
    refuse((InferTensor[]){t, flag()}, 2, "input 'image': dimension 0 is 0");
    t = flag();
    t.t.rank = 0;
    refuse((InferTensor[]){image(1), t}, 2, "input 'flag' has shape scalar, the model takes 1");
}

static void test_long_names_are_cut(void **state) {
    (void)state;
    char name[4096], shown[INFER_PRINTABLE];
    memset(name, 'x', sizeof name);
    memcpy(name, "\xE2\x82\xAC\xE2", 4);
    infer_printable((Str){name, sizeof name}, shown);
    assert_true(strlen(shown) < INFER_PRINTABLE);
    assert_memory_equal(shown, "\xE2\x82\xAC?xxx", 7);
    assert_string_equal(shown + strlen(shown) - 3, "...");
    assert_string_equal(infer_printable((Str){NULL, 0}, shown), "");
}

static void test_choice(void **state) {  // J7
    (void)state;
    uint32_t             index[2], n = 0;
    bool                 binary[2];
    InferRequestedOutput list[] = {{.name = text_of("z"), .binary = true, .has_binary = true},
                                   {.name = text_of("y"), .has_binary = true},
                                   {.name = text_of("z")}};
    InferRequest         r = {.requested = list, .n_requested = 2, .binary = true};
    assert_int_equal(infer_select_outputs(&signature, &r, index, binary, &n), ERR_OK);
    assert_true(n == 2 && index[0] == 1 && index[1] == 0 && binary[0] && !binary[1]);
    list[1].has_binary = false;
    assert_int_equal(infer_select_outputs(&signature, &r, index, binary, &n), ERR_OK);
    assert_true(binary[1]);
    r.n_requested = 3;
    assert_int_equal(infer_select_outputs(&signature, &r, index, binary, &n), ERR_INVALID);
    assert_non_null(strstr(err_why(), "outputs[2]: 'z' is requested twice"));
    list[0].name = text_of("no");
    assert_int_equal(infer_select_outputs(&signature, &r, index, binary, &n), ERR_INVALID);
    assert_non_null(strstr(err_why(), "outputs[0]: the model has no output 'no'"));
    r.n_requested = 0;
    r.binary = false;
    assert_int_equal(infer_select_outputs(&signature, &r, index, binary, &n), ERR_OK);
    assert_true(n == 2 && index[0] == 0 && index[1] == 1 && !binary[0] && !binary[1]);
}

typedef struct RawRow {
    Tensor      type;
    size_t      len;
    const char *why;  // NULL: it fits
    int64_t     open;
} RawRow;

static void test_raw_body(void **state) {
    (void)state;
    static const RawRow rows[] = {
        {{.dtype = DT_F32, .rank = 2, .dims = {DIM_UNKNOWN, 3}}, 24, NULL, 2},
        {{.dtype = DT_F32, .rank = 2, .dims = {2, 3}}, 24, NULL, 2},
        {{.dtype = DT_F32, .rank = 2, .dims = {DIM_UNKNOWN, 3}},
         25,
         "25 bytes are not a multiple of the 12",
         0},
        {{.dtype = DT_F32, .rank = 2, .dims = {DIM_UNKNOWN, 3}},
         0,
         "0 bytes are not a multiple",
         0},
        {{.dtype = DT_F32, .rank = 2, .dims = {2, 3}}, 20, "needs 24 bytes, got 20", 0},
        {{.dtype = DT_F32, .rank = 2, .dims = {DIM_UNKNOWN, DIM_UNKNOWN}},
         24,
         "two open dimensions",
         0},
        {{.dtype = DT_F32, .rank = RANK_UNKNOWN}, 24, "rank of the model", 0},
        {{.dtype = DT_STR, .rank = 1, .dims = {DIM_UNKNOWN}}, 20, NULL, 1},
        {{.dtype = DT_STR, .rank = 1, .dims = {2}}, 20, "more than one element", 0},
        {{.dtype = DT_BOOL, .rank = 1, .dims = {DIM_UNKNOWN}}, 20, "a BOOL is 0 or 1", 0},
        {{.dtype = DT_F16, .rank = 1, .dims = {DIM_UNKNOWN}}, 20, NULL, 10},
        {{.dtype = DT_F32, .rank = 2, .dims = {DIM_UNKNOWN, 0}}, 20, "not a multiple of the 0", 0}};
    Arena a;
    assert_int_equal(arena_init(&a, 1 << 16), ERR_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char  body[32];
        TensorSpec     spec = {.name = "x", .type = rows[i].type};
        ModelSignature one = {&spec, outs, 1, 2};
        InferRequest   r;
        Tensor         bound;
        memset(body, 7, sizeof body);
        assert_int_equal(infer_json_decode(body, rows[i].len, 0, &a, &r), ERR_OK);
        assert_true(r.raw_body && r.binary && r.n_inputs == 1);
        Err e = infer_bind_inputs(&one, &r, &a, &bound);
        assert_int_equal(e, rows[i].why != NULL ? ERR_INVALID : ERR_OK);
        if (e != ERR_OK) {
            if (strstr(err_why(), rows[i].why) == NULL)
                fail_msg("%s, not %s", err_why(), rows[i].why);
            assert_memory_equal(err_why(), "raw body: ", 10);
        } else if (bound.dtype == DT_STR) {
            assert_int_equal(((Str *)bound.data)->len, rows[i].len);
        } else {
            assert_int_equal(bound.dims[0], rows[i].open);
            assert_memory_equal(bound.data, body, rows[i].len);
        }
        assert_int_equal(infer_bind_inputs(&signature, &r, &a, &bound), ERR_INVALID);
        assert_non_null(strstr(err_why(), "models with one input, this one has 3"));
    }
    arena_finish(&a);
}

static void test_type_names(void **state) {
    (void)state;
    static const char *const names[] = {"BOOL", "UINT8", "UINT16", "UINT32", "UINT64",
                                        "INT8", "INT16", "INT32",  "INT64",  "FP16",
                                        "FP32", "FP64",  "BF16",   "BYTES"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        DType t = infer_dtype(text_of(names[i]));
        assert_int_not_equal(t, DT_NONE);
        assert_string_equal(infer_type_name(t), names[i]);
    }
    assert_null(infer_type_name(DT_C64));
    assert_null(infer_type_name(DT_SEQ));
    assert_int_equal(infer_dtype(text_of("FP3")), DT_NONE);
    assert_int_equal(infer_dtype((Str){NULL, 0}), DT_NONE);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_misfits),
        cmocka_unit_test(test_long_names_are_cut),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_raw_body),
        cmocka_unit_test(test_type_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
