#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "report/page.h"
#include "tests/runner.h"

static char  *text;
static size_t text_len;

typedef struct Sheet {
    Arena arena;
    Page  page;
} Sheet;

static void begin(Sheet *s, const char *title) {
    FILE *f = open_memstream(&text, &text_len);
    assert_non_null(f);
    assert_int_equal(arena_init(&s->arena, 1 << 22), ERR_OK);
    page_begin(&s->page, f, &s->arena, title);
}

static void end(Sheet *s) {
    assert_int_equal(page_end(&s->page), ERR_OK);
    (void)fclose(s->page.out);
    arena_finish(&s->arena);
}

static uint32_t count(const char *what) {
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++) n++;
    return n;
}

static void has(const char *what) {
    if (strstr(text, what) == NULL) fail_msg("the page lacks %s", what);
}

static void test_text_is_escaped(void **state) {
    (void)state;
    Sheet        s;
    const Column cols[] = {{.key = "a", .head = "<a>"},
                           {.key = "n", .head = "n", .unit = "\"ms\"", .decimals = 2}};
    Table        t;
    begin(&s, "<script>alert(1)</script> & 'more'");
    page_heading(&s.page, "a < b");
    page_text(&s.page, "%s is %d", "<img src=x>", 7);
    table_init(&t, &s.arena, cols, 2);
    table_row(&t);
    table_text(&t, "<b>");
    table_real(&t, 1.005);
    assert_int_equal(page_table(&s.page, &t, "caption > all"), ERR_OK);
    end(&s);
    assert_int_equal(count("<script>"), 0);
    has("<title>&lt;script&gt;alert(1)&lt;/script&gt; &amp; &#39;more&#39;</title>");
    has("<h2>a &lt; b</h2>");
    has("<p>&lt;img src=x&gt; is 7</p>");
    has("<th class=\"text\">&lt;a&gt;</th><th>n [&quot;ms&quot;]</th>");
    has("<td class=\"text\">&lt;b&gt;</td><td>1.00</td>");
    has("<figcaption>caption &gt; all</figcaption>");
    free(text);
}

static void add_charts(Page *p) {
    const double       x[] = {1, 2, 3}, y[] = {5, NAN, 7}, half[] = {1, 1, INFINITY};
    const char *const  groups[] = {"one", "</script><script>", "three"};
    const ChartSeries  s[] = {{"first", x, y, half, 3, false}, {"second", x, x, NULL, 3, true}};
    static const char *names[] = {"lines", "bars", "points", "spread"};
    for (ChartKind k = CHART_LINE; k <= CHART_DISTRIBUTION; k++) {
        Chart c = {.kind = k,
                   .title = names[k],
                   .x_label = "x [1]",
                   .y_label = "y [ms]",
                   .groups = groups,
                   .series = s,
                   .n_series = 2};
        assert_int_equal(page_chart(p, &c), ERR_OK);
    }
}

static void test_a_page_with_charts_is_complete(void **state) {
    (void)state;
    Sheet s;
    begin(&s, "charts");
    add_charts(&s.page);
    end(&s);
    assert_int_equal(count("<canvas"), 4);
    assert_int_equal(count("<script type=\"application/json\""), 4);
    assert_int_equal(count("<script"), 6);
    assert_int_equal(count("</script>"), 6);
    has("Content-Security-Policy");
    has("prefers-color-scheme: dark");
    assert_true(text_len > asset_chart_js_bytes);
    assert_int_equal(count(" src="), 0);
    assert_int_equal(count("<link rel=\"stylesheet\""), 0);
    assert_true(strcmp(text + text_len - 16, "</body>\n</html>\n") == 0);
    free(text);
}

static void test_charts_are_json(void **state) {
    (void)state;
    Sheet s;
    begin(&s, "charts");
    add_charts(&s.page);
    end(&s);
    const char *at = text, *types[] = {"line", "bar", "scatter", "line"};
    for (int i = 0; i < 4; i++) {
        at = strchr(strstr(at, "<script type=\"application/json\""), '>') + 1;
        json_t *doc = json_loadb(at, (size_t)(strstr(at, "</script>") - at), 0, NULL);
        assert_non_null(doc);
        const char *type = NULL;
        json_t     *sets = NULL;
        assert_int_equal(
            json_unpack(doc, "{s:s,s:{s:o}}", "type", &type, "data", "datasets", &sets), 0);
        assert_string_equal(type, types[i]);
        assert_int_equal(json_array_size(sets), 2);
        json_t *data = json_object_get(json_array_get(sets, 0), "data");
        assert_int_equal(json_array_size(data), 3);
        if (i == 1) {
            json_t *p = json_array_get(data, 1);
            assert_string_equal(json_string_value(json_object_get(p, "x")), "</script><script>");
            assert_true(json_is_null(json_object_get(p, "y")));
            assert_null(json_object_get(json_array_get(data, 2), "lo"));
            assert_true(json_real_value(json_object_get(json_array_get(data, 0), "hi")) == 6);
        }
        json_decref(doc);
    }
    free(text);
}

static void test_a_page_without_charts_carries_no_script(void **state) {
    (void)state;
    Sheet s;
    begin(&s, "words");
    page_text(&s.page, "only words");
    end(&s);
    assert_int_equal(count("<script"), 0);
    assert_true(text_len < 8192);
    free(text);
}

static void test_a_full_disk_is_reported(void **state) {
    (void)state;
    Arena a;
    Page  p;
    FILE *f = fopen("/dev/full", "w");
    if (f == NULL) skip();
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    page_begin(&p, f, &a, "lost");
    assert_int_equal(page_end(&p), ERR_IO);
    (void)fclose(f);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_escaped),
        cmocka_unit_test(test_a_page_with_charts_is_complete),
        cmocka_unit_test(test_charts_are_json),
        cmocka_unit_test(test_a_page_without_charts_carries_no_script),
        cmocka_unit_test(test_a_full_disk_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
