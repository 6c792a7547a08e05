#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/npy.h"
#include "tests/runner.h"

static Arena arena;

static int setup(void **state) {
    (void)state;
    return arena_init(&arena, 1 << 24) == ERR_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

// An .npy file of a given version with this header text and these bytes of numbers.
static size_t forge(unsigned char *out, int version, const char *text, const void *data,
                    size_t len) {
    size_t n = strlen(text), start = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)version;
    out[7] = 0;
    for (size_t i = 8; i < start; i++) out[i] = (unsigned char)(n >> 8 * (i - 8));
    memcpy(out + start, text, n);
    if (len > 0) memcpy(out + start + n, data, len);
    return start + n + len;
}

static Err read_forged(const char *text, const void *data, size_t len, Tensor *out) {
    unsigned char file[1024];
    return npy_read_bytes(file, forge(file, 1, text, data, len), &arena, out);
}

static void test_versions(void **state) {
    (void)state;
    const float   x[6] = {1, 2, 3, 4, 5, 6};
    unsigned char file[512];
    for (int v = 1; v <= 3; v++) {
        Tensor t;
        size_t n =
            forge(file, v, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", x,
                  sizeof x);
        assert_int_equal(npy_read_bytes(file, n, &arena, &t), ERR_OK);
        assert_int_equal(t.dtype, DT_F32);
        assert_int_equal(t.rank, 2);
        assert_int_equal(t.dims[0], 2);
        assert_int_equal(t.dims[1], 3);
        assert_memory_equal(t.data, x, sizeof x);
        assert_int_equal((uintptr_t)t.data % TENSOR_ALIGN, 0);
    }
    file[6] = 4;
    Tensor t;
    assert_int_equal(npy_read_bytes(file, 200, &arena, &t), ERR_UNSUPPORTED);
}

static void test_shapes(void **state) {
    (void)state;
    Tensor  t;
    int64_t one = 7;
    assert_int_equal(
        read_forged("{'shape':(), 'fortran_order':False, 'descr':\"<i8\"}", &one, 8, &t), ERR_OK);
    assert_int_equal(t.rank, 0);
    assert_int_equal(*(int64_t *)t.data, 7);
    assert_int_equal(
        read_forged("{'shape':(1L,), 'fortran_order':False, 'descr':'i8'}", &one, 8, &t), ERR_OK);
    assert_int_equal(t.rank, 1);
    assert_int_equal(
        read_forged("{'shape':(0, 5), 'fortran_order':True, 'descr':'<f4'}", &one, 0, &t), ERR_OK);
    assert_non_null(t.data);
    assert_int_equal(tensor_count(&t), 0);
}

static void test_fortran_order(void **state) {
    (void)state;
    const int16_t file[6] = {0, 3, 1, 4, 2, 5}, want[6] = {0, 1, 2, 3, 4, 5};
    Tensor        t;
    assert_int_equal(
        read_forged("{'descr':'<i2','fortran_order':True,'shape':(2,3)}", file, sizeof file, &t),
        ERR_OK);
    assert_memory_equal(t.data, want, sizeof want);
    assert_true(arena.used < 1 << 20);
    const unsigned char big[8] = {0, 1, 0, 2, 0, 3, 1, 0};  // 2x2 of >i2: 1 3 / 2 256
    const int16_t       swapped[4] = {1, 3, 2, 256};
    assert_int_equal(read_forged("{'descr':'>i2','fortran_order':True,'shape':(2,2)}", big, 8, &t),
                     ERR_OK);
    assert_memory_equal(t.data, swapped, sizeof swapped);
}

static void test_big_endian(void **state) {
    (void)state;
    const unsigned char two[8] = {0x40, 0, 0, 0, 0x3F, 0x80, 0, 0};
    const float         want[2] = {2, 1};
    Tensor              t;
    assert_int_equal(read_forged("{'descr':'>f4','fortran_order':False,'shape':(2,)}", two, 8, &t),
                     ERR_OK);
    assert_memory_equal(t.data, want, 8);
    assert_int_equal(read_forged("{'descr':'>c8','fortran_order':False,'shape':(1,)}", two, 8, &t),
                     ERR_OK);
    assert_memory_equal(t.data, want, 8);
}

static void test_bool_bytes_become_bools(void **state) {
    (void)state;
    const unsigned char raw[3] = {0, 2, 255}, want[3] = {0, 1, 1};
    Tensor              t;
    assert_int_equal(read_forged("{'descr':'|b1','fortran_order':False,'shape':(3,)}", raw, 3, &t),
                     ERR_OK);
    assert_memory_equal(t.data, want, 3);
}

static void test_strings(void **state) {
    (void)state;
    const uint32_t points[6] = {'h', 0x20AC, 0, 0x1F600, 'x', 'y'};
    Tensor         t;
    assert_int_equal(read_forged("{'descr':'<U3','fortran_order':False,'shape':(2,)}", points,
                                 sizeof points, &t),
                     ERR_OK);
    const Str *s = t.data;
    assert_int_equal(s[0].len, 4);
    assert_memory_equal(s[0].at, "h\xE2\x82\xAC", 4);
    assert_int_equal(s[1].len, 6);
    assert_memory_equal(s[1].at, "\xF0\x9F\x98\x80xy", 6);
    const uint32_t wild[1] = {0xD8001234u};  // not a code point
    assert_int_equal(read_forged("{'descr':'<U1','fortran_order':False,'shape':(1,)}", wild, 4, &t),
                     ERR_OK);
    assert_memory_equal(((Str *)t.data)->at, "\xEF\xBF\xBD", 3);
    assert_int_equal(
        read_forged("{'descr':'|S2','fortran_order':True,'shape':(2,2)}", "a\0bbcdd\0", 8, &t),
        ERR_OK);
    s = t.data;
    assert_int_equal(s[0].len, 1);
    assert_memory_equal(s[1].at, "cd", 2);
    assert_int_equal(
        read_forged("{'descr':'<U0','fortran_order':False,'shape':(1000000,)}", "", 0, &t),
        ERR_UNSUPPORTED);
}

static void test_hostile_headers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        Err         want;
    } bad[] = {
        {"", ERR_PARSE},
        {"{", ERR_PARSE},
        {"{}", ERR_PARSE},
        {"{'descr", ERR_PARSE},
        {"{'descr':'<f4','fortran_order':False}", ERR_PARSE},
        {"{'descr':'<f4','fortran_order':False,'shape':(1,)} x", ERR_PARSE},
        {"{'descr':'<f4','fortran_order':Maybe,'shape':(1,)}", ERR_PARSE},
        {"{'descr':'<f4','fortran_order':False,'shape':(-1,)}", ERR_PARSE},
        {"{'descr':'<f4','fortran_order':False,'shape':(1)}", ERR_PARSE},
        {"{'descr':'<f4','fortran_order':False,'shape':(1,", ERR_PARSE},
        {"{'descr':'<f4','fortran_order':False,'shape':(1 2,)}", ERR_PARSE},
        {"{'descr':'<f4','descr':'<f4','fortran_order':False,'shape':(1,)}", ERR_PARSE},
        {"{'descr':'<f4','fortran_order':False,'shape':(1,),'more':1}", ERR_PARSE},
        {"{'descr':'<f4','fortran_order':False,'shape':(2,)}", ERR_PARSE},
        {"{'descr':'|b1','fortran_order':False,'shape':(3,)}", ERR_PARSE},
        {"{'descr':'<f4','fortran_order':False,'shape':(99999999999999999999,)}", ERR_PARSE},
        {"{'descr':'<f4','fortran_order':False,'shape':(4294967296,4294967296)}", ERR_LIMIT},
        {"{'descr':'<U2147483647','fortran_order':False,'shape':(9999999999,)}", ERR_LIMIT},
        {"{'descr':'<U4294967296','fortran_order':False,'shape':(1,)}", ERR_PARSE},
        {"{'descr':'<f4','fortran_order':False,'shape':(1,1,1,1,1,1,1,1,1)}", ERR_UNSUPPORTED},
        {"{'descr':'|O','fortran_order':False,'shape':(1,)}", ERR_UNSUPPORTED},
        {"{'descr':'','fortran_order':False,'shape':(1,)}", ERR_UNSUPPORTED},
        {"{'descr':[('a','<f4')],'fortran_order':False,'shape':(1,)}", ERR_UNSUPPORTED},
        {"{'descr':'<f4444444444','fortran_order':False,'shape':(1,)}", ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Tensor t = {.rank = 77};
        size_t before = arena.used;
        assert_int_equal(read_forged(bad[i].text, "abcd", 4, &t), bad[i].want);
        assert_int_equal(t.rank, 77);
        assert_int_equal(arena.used, before);
    }
}

// Every prefix of a valid file is an error, and nothing beyond it is read.
static void test_cut_files(void **state) {
    (void)state;
    unsigned char file[512];
    const double  x[3] = {1, 2, 3};
    for (int v = 1; v <= 3; v++) {
        size_t n =
            forge(file, v, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n", x, 24);
        for (size_t cut = 0; cut < n; cut++) {
            unsigned char *part = malloc(cut + 1);
            Tensor         t;
            assert_non_null(part);
            memcpy(part, file, cut);
            unsigned char *exact = realloc(part, cut > 0 ? cut : 1);
            assert_int_not_equal(npy_read_bytes(exact, cut, &arena, &t), ERR_OK);
            free(exact);
        }
    }
}

static void test_no_memory(void **state) {
    (void)state;
    Arena small;
    assert_int_equal(arena_init(&small, 4096), ERR_OK);
    unsigned char *file = calloc(1, 10000);
    assert_non_null(file);
    char   zeros[8000] = {0};
    size_t n = forge(file, 1, "{'descr':'|u1','fortran_order':False,'shape':(8000,)}", zeros, 8000);
    Tensor t;
    assert_int_equal(npy_read_bytes(file, n, &small, &t), ERR_LIMIT);
    assert_int_equal(small.used, 0);
    free(file);
    arena_finish(&small);
}

static void test_write_reads_back(void **state) {
    (void)state;
    char dir[] = "/tmp/npy_test.XXXXXX";
    assert_non_null(mkdtemp(dir));
    const char   *path = arena_printf(&arena, "%s/a.npy", dir);
    unsigned char bytes[96];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i % 2);
    for (int d = 1; d < DT_COUNT; d++) {
        if (dtype_numpy((DType)d) == NULL) continue;
        for (int32_t rank = 0; rank <= 3; rank++) {
            Tensor t = tensor_of((DType)d, rank, (int64_t[]){3, 1, 2}, bytes), back;
            assert_int_equal(npy_write(path, &t), ERR_OK);
            assert_int_equal(npy_read(path, &arena, &back), ERR_OK);
            assert_true(tensor_equal(&t, &back));
        }
    }
    Str    words[4] = {{NULL, 0}, {"na\xC3\xAFve", 6}, {"\xF0\x9F\x98\x80", 4}, {"bad\xFF", 4}};
    Tensor t = tensor_of(DT_STR, 2, (int64_t[]){2, 2}, words), back;
    assert_int_equal(npy_write(path, &t), ERR_OK);
    assert_int_equal(npy_read(path, &arena, &back), ERR_OK);
    assert_int_equal(back.rank, 2);
    words[3] = (Str){"bad\xEF\xBF\xBD", 6};
    assert_true(tensor_equal(&t, &back));
    uint16_t brain[2] = {0x3F80, 0xC000};
    t = tensor_of(DT_BF16, 1, (int64_t[]){2}, brain);
    assert_int_equal(npy_write(path, &t), ERR_OK);
    assert_int_equal(npy_read(path, &arena, &back), ERR_OK);
    assert_int_equal(back.dtype, DT_F32);
    assert_true(((float *)back.data)[0] == 1.0f && ((float *)back.data)[1] == -2.0f);
    t = tensor_of(DT_SEQ, 1, (int64_t[]){0}, bytes);
    assert_int_equal(npy_write(path, &t), ERR_UNSUPPORTED);
    t = tensor_of(DT_F32, 1, (int64_t[]){2}, NULL);
    assert_int_equal(npy_write(path, &t), ERR_INVALID);
    assert_int_equal(npy_read(path, &arena, &back), ERR_OK);  // failed writes left it unchanged
    assert_int_equal(unlink(path), 0);
    assert_int_equal(npy_read(path, &arena, &back), ERR_IO);
    assert_non_null(strstr(err_why(), path));
    assert_int_equal(rmdir(dir), 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_versions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shapes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fortran_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_big_endian, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bool_bytes_become_bools, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_headers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_write_reads_back, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
