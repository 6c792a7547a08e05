// The protobuf wire format: written data is read back; malformed data is rejected.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "serve/grpc/wire.h"
#include "tests/runner.h"

static Arena arena;

static int begin(void **state) {
    (void)state;
    return arena_init(&arena, 1 << 22) == ERR_OK ? 0 : -1;
}

static int finish(void **state) {
    (void)state;
    arena_finish(&arena);
    return 0;
}

// Reads all fields from a buffer of exactly n bytes, so that a sanitizer sees one byte too many.
static Err walk(const void *bytes, size_t n, uint32_t *fields) {
    unsigned char *copy = malloc(n > 0 ? n : 1);
    assert_non_null(copy);
    if (n > 0) memcpy(copy, bytes, n);
    WireReader in = wire_reader(copy, n);
    WireField  f;
    bool       more = true;
    Err        e = ERR_OK;
    *fields = 0;
    while (e == ERR_OK && more) {
        e = wire_next(&in, &f, &more);
        if (e == ERR_OK && more) ++*fields;
    }
    free(copy);
    return e;
}

static void reads_what_it_wrote(void **state) {
    (void)state;
    const uint64_t values[] = {1, 127, 128, 300, UINT32_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        WireWriter o = wire_writer(&arena, 100);
        WireField  f;
        bool       more;
        wire_put_uint(&o, (1 << 29) - 1, values[i]);
        assert_int_equal(wire_done(&o), ERR_OK);
        WireReader in = wire_reader(o.at, o.len);
        assert_int_equal(wire_next(&in, &f, &more), ERR_OK);
        assert_true(more && f.number == (1 << 29) - 1 && f.kind == WIRE_VARINT);
        assert_true(f.value == values[i] && f.len == wire_varint_bytes(values[i]));
        assert_int_equal(wire_next(&in, &f, &more), ERR_OK);
        assert_false(more);
    }
}

static void messages_nest(void **state) {
    (void)state;
    const int64_t dims[] = {1, -1, 70000};
    WireWriter    o = wire_writer(&arena, 1 << 20);
    size_t        outer = wire_begin(&o, 1);
    for (uint32_t i = 0; i < 100; i++) {
        size_t inner = wire_begin(&o, 2);
        wire_put_text(&o, 1, "name");
        wire_put_packed(&o, 3, dims, 3);
        wire_end(&o, inner);
    }
    wire_end(&o, outer);
    assert_int_equal(wire_done(&o), ERR_OK);
    WireReader in = wire_reader(o.at, o.len), inside;
    WireField  f;
    bool       more;
    assert_int_equal(wire_next(&in, &f, &more), ERR_OK);
    assert_true(in.at == in.end && f.number == 1);
    inside = wire_inside(&in, &f);
    for (uint32_t i = 0; i < 100; i++) {
        Str    s;
        size_t n;
        assert_int_equal(wire_next(&inside, &f, &more), ERR_OK);
        WireReader one = wire_inside(&inside, &f);
        assert_int_equal(wire_next(&one, &f, &more), ERR_OK);
        assert_int_equal(wire_text(&in, &f, &s), ERR_OK);
        assert_int_equal(s.len, 4);
        assert_int_equal(wire_next(&one, &f, &more), ERR_OK);
        assert_int_equal(wire_count(&in, &f, WIRE_VARINT, &n), ERR_OK);
        assert_int_equal(n, 3);
    }
    assert_true(inside.at == inside.end);
}

static void writing_ends_at_the_limit(void **state) {
    (void)state;
    WireWriter o = wire_writer(&arena, 10);
    wire_put(&o, "0123456789", 10);
    assert_int_equal(wire_done(&o), ERR_OK);
    wire_put_uint(&o, 1, 1);
    assert_int_equal(wire_done(&o), ERR_LIMIT);
    Arena small;
    assert_int_equal(arena_init(&small, 4096), ERR_OK);
    o = wire_writer(&small, SIZE_MAX);
    for (uint32_t i = 0; i < 1000; i++) wire_put_text(&o, 1, "more than there is room for");
    assert_int_equal(wire_done(&o), ERR_LIMIT);
    arena_finish(&small);
}

static void grows_beside_others(void **state) {
    (void)state;
    WireWriter a = wire_writer(&arena, 1 << 20), b = wire_writer(&arena, 1 << 20);
    for (uint32_t i = 0; i < 3000; i++) {
        unsigned char c = (unsigned char)i;
        wire_put(&a, &c, 1);
        c ^= 0xff;
        wire_put(&b, &c, 1);
    }
    assert_true(a.len == 3000 && b.len == 3000 && !a.full && !b.full);
    for (uint32_t i = 0; i < 3000; i++) assert_true(a.at[i] == (unsigned char)~b.at[i]);
}

static void broken_bytes_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t      n;
        const char *why;
    } cases[] = {
        {"\x00", 1, "invalid field number"},                                 // number 0
        {"\x08", 1, "truncated number"},                                     // no value
        {"\x08\x80", 2, "truncated number"},                                 // half a value
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "exceeds 64"},  // 65 bits
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "truncated number"},  // 11 bytes
        {"\x0a\x05xxxx", 6, "exceeds the message"},  // one byte short
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11,
         "exceeds the message"},                    // 2^64 - 1 bytes
        {"\x09xxxxxxx", 8, "exceeds the message"},  // half a double
        {"\x0dxxx", 4, "exceeds the message"},      // half a float
        {"\x0e", 1, "wire type"},                   // 6
        {"\x0f", 1, "wire type"},                   // 7
        {"\x0c", 1, "without start"},               // end of a group
        {"\x0b", 1, "truncated number"},            // a group without end
        {"\x0b\x14", 2, "mismatched end"},
        {"\xf8\xff\xff\xff\x7f\x00", 6, "invalid field number"},  // number 2^32 - 1
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t n;
        assert_int_equal(walk(cases[i].bytes, cases[i].n, &n), ERR_PARSE);
        assert_non_null(strstr(err_why(), cases[i].why));
    }
}

static void groups_are_passed_over(void **state) {
    (void)state;
    unsigned char deep[20000];
    uint32_t      n;
    assert_int_equal(walk("\x08\x01\x0b\x13\x08\x05\x14\x0c\x10\x07", 10, &n), ERR_OK);
    assert_int_equal(n, 2);
    memset(deep, 0x0b, 10000);
    memset(deep + 10000, 0x0c, 10000);
    assert_int_equal(walk(deep, sizeof deep, &n), ERR_PARSE);
    assert_non_null(strstr(err_why(), "too deep"));
    assert_int_equal(walk(deep + 10000 - 32, 64, &n), ERR_OK);
    assert_int_equal(n, 0);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_what_it_wrote, begin, finish),
        cmocka_unit_test_setup_teardown(messages_nest, begin, finish),
        cmocka_unit_test_setup_teardown(writing_ends_at_the_limit, begin, finish),
        cmocka_unit_test_setup_teardown(grows_beside_others, begin, finish),
        cmocka_unit_test_setup_teardown(broken_bytes_are_refused, begin, finish),
        cmocka_unit_test_setup_teardown(groups_are_passed_over, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
