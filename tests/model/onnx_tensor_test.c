// Tensors of every element type, from raw bytes, typed fields and sparse form.
#include "tests/model/onnx_build.h"

#include <stdio.h>

#include "model/onnx/onnx_int.h"
#include "tests/runner.h"

static Err read_tensor(Msg m, Arena *a, Tensor *out) {
    Err e = onnx_parse_value(m.at, m.n, DT_NONE, a, out);
    free(m.at);
    return e;
}

enum { FLOATS = 4, INT32S = 5, STRINGS = 6, INT64S = 7, RAW = 9, DOUBLES = 10, UINT64S = 11 };

typedef struct Row {
    DType    dtype;
    uint32_t field;
} Row;

static const Row rows[] = {
    {DT_U8, INT32S},   {DT_I8, INT32S},   {DT_U16, INT32S},  {DT_I16, INT32S},
    {DT_I32, INT32S},  {DT_I64, INT64S},  {DT_F16, INT32S},  {DT_BF16, INT32S},
    {DT_U32, UINT64S}, {DT_U64, UINT64S}, {DT_BOOL, INT32S},
};

// The values 1 and 0, packed, unpacked and raw, give the same tensor.
static void integers_agree_in_every_form(void **state) {
    (void)state;
    int64_t dim = 2;
    Arena   a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Tensor  packed, loose, raw;
        uint8_t bytes[16] = {1};
        Msg     m = tensor_head("t", rows[i].dtype, 1, &dim);
        msg_bytes(&m, rows[i].field, (uint8_t[]){1, 0}, 2);
        assert_int_equal(read_tensor(m, &a, &packed), ERR_OK);
        m = tensor_head("t", rows[i].dtype, 1, &dim);
        msg_int(&m, rows[i].field, 1);
        msg_int(&m, rows[i].field, 0);
        assert_int_equal(read_tensor(m, &a, &loose), ERR_OK);
        m = tensor_head("t", rows[i].dtype, 1, &dim);
        msg_bytes(&m, RAW, bytes, 2 * dtype_size(rows[i].dtype));
        assert_int_equal(read_tensor(m, &a, &raw), ERR_OK);
        assert_int_equal(raw.dtype, rows[i].dtype);
        assert_true(tensor_equal(&packed, &loose));
        assert_true(tensor_equal(&packed, &raw));
    }
    arena_finish(&a);
}

static void floats_and_complex(void **state) {
    (void)state;
    int64_t dim = 2;
    float   f[4] = {1, -2, 3, -4};
    double  d[4] = {1, -2, 3, -4};
    Tensor  t;
    Arena   a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    const struct {
        DType       dtype;
        uint32_t    field;
        const void *from;
        size_t      bytes;
    } cases[] = {{DT_F32, FLOATS, f, 8},    {DT_C64, FLOATS, f, 16}, {DT_F64, DOUBLES, d, 16},
                 {DT_C128, DOUBLES, d, 32}, {DT_F32, RAW, f, 8},     {DT_C64, RAW, f, 16},
                 {DT_F64, RAW, d, 16},      {DT_C128, RAW, d, 32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Msg m = tensor_head("t", cases[i].dtype, 1, &dim);
        msg_bytes(&m, cases[i].field, cases[i].from, cases[i].bytes);
        assert_int_equal(read_tensor(m, &a, &t), ERR_OK);
        assert_int_equal(t.dtype, cases[i].dtype);
        assert_memory_equal(t.data, cases[i].from, cases[i].bytes);
    }
    arena_finish(&a);
}

static void strings_and_bools(void **state) {
    (void)state;
    int64_t dim = 3;
    Tensor  t;
    Arena   a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    Msg m = tensor_head("t", DT_STR, 1, &dim);
    msg_text(&m, STRINGS, "a");
    msg_text(&m, STRINGS, "");
    msg_bytes(&m, STRINGS, "\0\xff", 2);
    assert_int_equal(read_tensor(m, &a, &t), ERR_OK);
    assert_int_equal(((Str *)t.data)[1].len, 0);
    assert_memory_equal(((Str *)t.data)[2].at, "\0\xff", 2);
    m = tensor_head("t", DT_BOOL, 1, &dim);
    msg_bytes(&m, RAW, (uint8_t[]){0, 2, 255}, 3);
    assert_int_equal(read_tensor(m, &a, &t), ERR_OK);
    assert_memory_equal(t.data, ((uint8_t[]){0, 1, 1}), 3);
    arena_finish(&a);
}

static void large_weights_are_aligned(void **state) {
    (void)state;
    static float numbers[1000];
    int64_t      dim = 1000;
    Tensor       t;
    Arena        a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(read_tensor(floats_of("odd name", dim, numbers), &a, &t), ERR_OK);
    assert_int_equal((uintptr_t)t.data % TENSOR_ALIGN, 0);
    arena_finish(&a);
}

static void wrong(Msg m, Err e, const char *why) {
    Arena  a;
    Tensor t;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    Err got = read_tensor(m, &a, &t);
    if (got != e || strstr(err_why(), why) == NULL)
        fail_msg("wanted '%s', got %s: %s", why, err_text(got), err_why());
    arena_finish(&a);
}

static void wrong_tensors_are_rejected(void **state) {
    (void)state;
    int64_t dim = 2, minus = -1, huge[4] = {65536, 65536, 65536, 65536}, nine[9] = {1};
    uint8_t zeros[16] = {0};
    Msg     m = tensor_head("t", DT_F32, 1, &dim);
    msg_bytes(&m, RAW, zeros, 7);
    wrong(m, ERR_INVALID, "tensor 't': its shape needs 8 bytes, raw_data has 7");
    m = tensor_head("t", DT_F32, 1, &dim);
    msg_bytes(&m, FLOATS, zeros, 4);
    wrong(m, ERR_INVALID, "needs 2 elements, the file has 1");
    m = tensor_head("t", DT_F32, 1, &dim);
    msg_bytes(&m, INT64S, zeros, 2);
    wrong(m, ERR_INVALID, "field of another type");
    m = tensor_head("t", DT_F32, 1, &dim);
    msg_bytes(&m, RAW, zeros, 8);
    msg_bytes(&m, FLOATS, zeros, 8);
    wrong(m, ERR_INVALID, "both raw_data and typed data");
    m = tensor_head("t", DT_U8, 1, &dim);
    msg_int(&m, INT32S, 255);
    msg_int(&m, INT32S, 256);
    wrong(m, ERR_INVALID, "element 1 is 256, which does not fit uint8");
    m = tensor_head("t", DT_STR, 1, &dim);
    msg_bytes(&m, RAW, zeros, 16);
    wrong(m, ERR_INVALID, "strings cannot be in raw_data");
    wrong(tensor_head("t", DT_F32, 1, &dim), ERR_INVALID, "the file has 0");
    wrong(tensor_head("t", DT_F32, 1, &minus), ERR_INVALID, "dimension");
    wrong(tensor_head("t", DT_F32, 4, huge), ERR_LIMIT, "2^47");
    wrong(tensor_head("t", DT_F32, 9, nine), ERR_UNSUPPORTED, "rank 9");
    wrong(tensor_head("t", 17, 1, &dim), ERR_UNSUPPORTED, "element type 17");
    wrong(tensor_head("t", 0, 1, &dim), ERR_UNSUPPORTED, "element type 0");
    wrong(tensor_head("t", DT_SEQ, 1, &dim), ERR_UNSUPPORTED, "element type 30");
}

static void empty_tensors_have_data(void **state) {
    (void)state;
    int64_t dims[2] = {0, 3};
    Tensor  t;
    Arena   a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    assert_int_equal(read_tensor(tensor_head("t", DT_F32, 2, dims), &a, &t), ERR_OK);
    assert_int_equal(tensor_count(&t), 0);
    assert_non_null(t.data);
    arena_finish(&a);
}

static Msg sparse(int32_t rank, const int64_t *dims, int32_t index_rank, const int64_t *indices) {
    int64_t n[2] = {2, rank};
    Msg     m = {0}, at = tensor_head("", DT_I64, index_rank, n);
    msg_bytes(&at, RAW, indices, sizeof *indices * (size_t)(index_rank == 2 ? 2 * rank : 2));
    msg_sub(&m, 1, floats_of("s", 2, (float[]){5, 6}));
    msg_sub(&m, 2, at);
    for (int32_t i = 0; i < rank; i++) msg_int(&m, 3, dims[i]);
    return m;
}

static Msg sparse_model(Msg tensor) {
    Msg g = {0};
    msg_sub(&g, 15, tensor);
    msg_sub(&g, 1, node_of("Relu", "s", "y"));
    graph_ends(&g, "", "y");
    return model_of(g, 13);
}

static void sparse_becomes_dense(void **state) {
    (void)state;
    int64_t dims[2] = {2, 3}, linear[2] = {1, 5}, rows_at[4] = {0, 1, 1, 2};
    float   want[6] = {0, 5, 0, 0, 0, 6};
    for (int32_t r = 1; r <= 2; r++) {
        Model m;
        accepted(sparse_model(sparse(2, dims, r, r == 1 ? linear : rows_at)), &m);
        const Value *v = &m.graph->values[graph_find(m.graph, "s")];
        assert_int_equal(v->type.rank, 2);
        assert_memory_equal(v->type.data, want, sizeof want);
        model_finish(&m);
    }
    int64_t past[2] = {1, 6}, minus[2] = {-1, 1}, wide[4] = {0, 3, 0, 0};
    int64_t huge[2] = {1 << 20, 1 << 20};
    rejected(sparse_model(sparse(2, dims, 1, past)), ERR_INVALID, "index 6");
    rejected(sparse_model(sparse(2, dims, 1, minus)), ERR_INVALID, "index -1");
    rejected(sparse_model(sparse(2, dims, 2, wide)), ERR_INVALID, "index 3");
    rejected(sparse_model(sparse(2, huge, 1, linear)), ERR_LIMIT, "as a dense tensor");
}

static void sequences_and_optionals(void **state) {
    (void)state;
    Tensor t;
    Arena  a;
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    Msg seq = {0}, opt = {0};
    msg_text(&seq, 1, "seq");
    msg_int(&seq, 2, 1);
    msg_sub(&seq, 3, floats_of("", 1, (float[]){1}));
    msg_sub(&seq, 3, floats_of("", 2, (float[]){2, 3}));
    assert_int_equal(onnx_parse_value(seq.at, seq.n, DT_SEQ, &a, &t), ERR_OK);
    assert_int_equal(t.dtype, DT_SEQ);
    assert_int_equal(t.dims[0], 2);
    assert_int_equal(((Tensor *)t.data)[1].dims[0], 2);
    msg_sub(&opt, 5, seq);
    assert_int_equal(onnx_parse_value(opt.at, opt.n, DT_OPT, &a, &t), ERR_OK);
    assert_int_equal(t.dtype, DT_OPT);
    assert_int_equal(((Tensor *)t.data)[0].dtype, DT_SEQ);
    msg_sub(&opt, 3, floats_of("", 1, (float[]){1}));
    assert_int_equal(onnx_parse_value(opt.at, opt.n, DT_OPT, &a, &t), ERR_INVALID);
    free(opt.at);
    Msg deep = {0};
    for (int i = 0; i < 20; i++) {
        Msg outer = {0};
        msg_sub(&outer, 5, deep);
        deep = outer;
    }
    assert_int_equal(onnx_parse_value(deep.at, deep.n, DT_SEQ, &a, &t), ERR_LIMIT);
    free(deep.at);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_agree_in_every_form),
        cmocka_unit_test(floats_and_complex),
        cmocka_unit_test(strings_and_bools),
        cmocka_unit_test(large_weights_are_aligned),
        cmocka_unit_test(wrong_tensors_are_rejected),
        cmocka_unit_test(empty_tensors_have_data),
        cmocka_unit_test(sparse_becomes_dense),
        cmocka_unit_test(sequences_and_optionals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
