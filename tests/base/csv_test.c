#include "base/csv.h"
#include "tests/runner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char text[4096];
static Csv  csv;

static Err open_text(const char *s, char sep, bool quotes) {
    memcpy(text, s, strlen(s) + 1);
    return csv_open(&csv, "t.csv", text, strlen(s), sep, quotes);
}

// The next row as its fields between bars, or "end".
static const char *row(void) {
    static char out[4096];
    bool        more = false;
    size_t      n = 0;
    assert_int_equal(csv_next(&csv, &more), ERR_OK);
    if (!more) return "end";
    for (uint32_t i = 0; i < csv.n; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", i > 0 ? "|" : "", csv.field[i]);
    return out;
}

static void line_ends(void **state) {
    (void)state;
    assert_int_equal(open_text("a,b\r\n1,\n\n,2", ',', true), ERR_OK);
    assert_string_equal(row(), "a|b");
    assert_string_equal(row(), "1|");
    assert_false(csv_blank(&csv));
    assert_string_equal(row(), "");
    assert_int_equal(csv.line, 3);
    assert_string_equal(row(), "|2");
    assert_string_equal(row(), "end");
    assert_int_equal(open_text("x\r", ',', true), ERR_OK);
    assert_string_equal(row(), "x");
    assert_int_equal(open_text("", ',', true), ERR_OK);
    assert_string_equal(row(), "end");
    assert_int_equal(open_text("\xEF\xBB\xBFx\n\r\n\n", ',', true), ERR_OK);
    assert_string_equal(row(), "x");
    assert_true(csv_blank(&csv));
}

static void quotes(void **state) {
    (void)state;
    assert_int_equal(open_text("\"a,b\",\"c\"\"d\"\n\"two\nlines\",\"\"\r\nlast", ',', true),
                     ERR_OK);
    assert_string_equal(row(), "a,b|c\"d");
    assert_string_equal(row(), "two\nlines|");
    assert_int_equal(csv.line, 2);
    assert_string_equal(row(), "last");
    assert_int_equal(csv.line, 4);
    assert_int_equal(open_text("a\t\"b\tc", '\t', false), ERR_OK);
    assert_string_equal(row(), "a|\"b|c");
}

static void refused(void **state) {
    (void)state;
    bool more;
    assert_int_equal(open_text("a\n\"open", ',', true), ERR_OK);
    assert_string_equal(row(), "a");
    assert_int_equal(csv_next(&csv, &more), ERR_PARSE);
    assert_non_null(strstr(err_why(), "t.csv:2:"));
    assert_int_equal(open_text("\"a\"b,c\n", ',', true), ERR_OK);
    assert_int_equal(csv_next(&csv, &more), ERR_PARSE);
    memcpy(text, "a\nb\0c", 6);
    assert_int_equal(csv_open(&csv, "t.csv", text, 5, ',', true), ERR_PARSE);
    assert_non_null(strstr(err_why(), "t.csv:2:"));
    char many[2 * CSV_FIELDS + 2];
    memset(many, ',', sizeof many);
    many[sizeof many - 1] = '\0';
    assert_int_equal(open_text(many, ',', true), ERR_OK);
    assert_int_equal(csv_next(&csv, &more), ERR_PARSE);
}

static void written(void **state) {
    (void)state;
    char  *out = NULL;
    size_t len = 0;
    FILE  *f = open_memstream(&out, &len);
    csv_put(f, "plain");
    csv_put(f, "a,\"b\"");
    csv_put(f, "");
    assert_int_equal(fclose(f), 0);
    assert_string_equal(out, "plain\"a,\"\"b\"\"\"\"\"");
    free(out);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_ends),
        cmocka_unit_test(quotes),
        cmocka_unit_test(refused),
        cmocka_unit_test(written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
