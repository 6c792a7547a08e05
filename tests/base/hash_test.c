#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "tests/runner.h"

static void check(const char *text, size_t times, const char *expect) {
    Sha256 s;
    char   got[SHA256_TEXT];
    sha256_begin(&s);
    for (size_t i = 0; i < times; i++) sha256_add(&s, text, strlen(text));
    sha256_end(&s, got);
    assert_string_equal(got, expect);
}

// The vectors of FIPS 180-4.
static void known_answers(void **state) {
    (void)state;
    check("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check("aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void pieces_do_not_matter(void **state) {
    (void)state;
    uint8_t bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 7);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        Sha256 whole, cut;
        char   a[SHA256_TEXT], b[SHA256_TEXT];
        sha256_begin(&whole);
        sha256_add(&whole, bytes, n);
        sha256_end(&whole, a);
        sha256_begin(&cut);
        sha256_add(&cut, bytes, n / 3);
        sha256_add(&cut, bytes + n / 3, n - n / 3);
        sha256_end(&cut, b);
        assert_string_equal(a, b);
    }
}

// The published answers of FNV-1a, 64 bits.
static void fnv_known_answers(void **state) {
    (void)state;
    assert_true(hash_fnv(HASH_FNV_START, "", 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(hash_fnv(HASH_FNV_START, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(hash_fnv(HASH_FNV_START, "foobar", 6) == UINT64_C(0x85944171f73967e8));
    assert_true(hash_fnv(hash_fnv_add(HASH_FNV_START, 'f'), "oobar", 5) ==
                UINT64_C(0x85944171f73967e8));
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(fnv_known_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
