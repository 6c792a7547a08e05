// LineReader against a search for line ends in the whole text, which comes in parts of any size.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/line_reader.h"
#include "base/rng.h"
#include "tests/runner.h"

enum { MOST = 400000 };

typedef struct Parts {
    Rng         rng;
    const char *at;
    size_t      left;
    uint64_t    most;
} Parts;

static size_t next_part(void *self, char *to, size_t size) {
    Parts *p = self;
    size_t n = 1 + (size_t)rng_below(&p->rng, p->most);
    n = n < p->left ? n : p->left;
    n = n < size ? n : size;
    memcpy(to, p->at, n);
    p->at += n;
    p->left -= n;
    return n;
}

static char       text[MOST];
static LineReader reader;

static size_t write_lines(Rng *rng) {
    size_t n = 0;
    while (n < MOST / 2) {
        size_t len = (size_t)rng_below(rng, rng_below(rng, 8) == 0 ? 2 * LINE_READER_BYTES : 40);
        if (rng_below(rng, 4) == 0) len = LINE_READER_BYTES - (size_t)rng_below(rng, 3);
        memset(text + n, 'a' + (int)rng_below(rng, 26), len);
        n += len;
        if (rng_below(rng, 5) == 0) text[n++] = '\r';
        text[n++] = '\n';
    }
    return n - (size_t)rng_below(rng, 2);  // the last line may lack its end
}

static void check_line(const char *from, size_t len, size_t whole) {
    const char *got = NULL;
    size_t      n = 0;
    LineResult  r = line_reader_next(&reader, &got, &n);
    if (whole > LINE_READER_BYTES) {
        assert_int_equal(r, LINE_TOO_LONG);
        return;
    }
    if (len > 0 && from[len - 1] == '\r') len--;
    assert_int_equal(r, LINE_READ);
    assert_int_equal(n, len);
    assert_memory_equal(got, from, n);
}

static void check_lines(size_t size) {
    const char *got = NULL;
    size_t      n = 0, at = 0;
    uint64_t    line = 0;
    while (at < size) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t      len = end != NULL ? (size_t)(end - text) - at : size - at;
        // A last line that fills the buffer may be complete or not.
        if (end == NULL && len == LINE_READER_BYTES) return;
        check_line(text + at, len, len + (end != NULL));
        assert_int_equal(reader.line, ++line);
        at += len + (end != NULL);
    }
    assert_int_equal(line_reader_next(&reader, &got, &n), LINE_END);
    assert_int_equal(line_reader_next(&reader, &got, &n), LINE_END);
}

static void test_lines(void **state) {
    (void)state;
    static const uint64_t most[] = {1, 7, 1000, 100000};
    for (uint64_t seed = 0; seed < 24; seed++) {
        Rng    rng = {seed};
        size_t size = write_lines(&rng);
        Parts  parts = {rng_fork(rng, 1), text, size, most[seed % 4]};
        line_reader_init(&reader, next_part, &parts);
        check_lines(size);
    }
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
