// docs/serve-config.md has a row for every setting, equal to its definition, and no others.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/settings.h"
#include "serve/config/config.h"
#include "tests/runner.h"

static void line_of(const Setting *row, char *out, size_t size) {
    char        value[96], range[96] = "text";
    const char *def = setting_text(row, row->def, value, sizeof value);
    if (row->kind != SETTING_string) setting_range_text(row, range, sizeof range);
    (void)snprintf(out, size, "| `%s` | %s | %s | %s |\n", row->key, def, range, row->about);
}

static uint32_t check_rows(const Setting *rows, uint32_t n, const char *text) {
    uint32_t lacks = 0;
    for (uint32_t i = 0; i < n; i++) {
        char line[512];
        line_of(&rows[i], line, sizeof line);
        if (strstr(text, line) != NULL) continue;
        (void)fprintf(stderr, "%s", line);
        lacks++;
    }
    return lacks;
}

// Of the tables of settings.
static uint32_t count_lines(const char *text) {
    uint32_t    n = 0;
    const char *tables = strstr(text, "\n## The server\n");
    for (const char *at = tables != NULL ? tables : text; (at = strstr(at, "\n| `")) != NULL; at++)
        n++;
    return n;
}

static void test_documented(void **state) {
    (void)state;
    const char    *src = getenv("SRC");
    char           path[4096], *text = NULL;
    size_t         len = 0;
    uint32_t       n_serve = 0, n_tenant = 0;
    const Setting *serve = config_serve_rows(&n_serve), *tenant = config_tenant_rows(&n_tenant);
    Arena          a;
    if (src == NULL) skip();
    (void)snprintf(path, sizeof path, "%s/docs/serve-config.md", src);
    assert_int_equal(arena_init(&a, 1 << 20), ERR_OK);
    if (file_read(path, 1 << 19, &a, &text, &len) != ERR_OK) fail_msg("%s", err_why());
    uint32_t lacks = check_rows(serve, n_serve, text) + check_rows(tenant, n_tenant, text);
    if (lacks > 0) fail_msg("docs/serve-config.md lacks the %u lines above", lacks);
    assert_int_equal(count_lines(text), n_serve + n_tenant);
    arena_finish(&a);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_documented)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
