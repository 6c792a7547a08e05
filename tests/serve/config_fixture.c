#include "tests/serve/config_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <ftw.h>

#include "base/file.h"

void config_fixture_begin(ConfigFixture *x) {
    *x = (ConfigFixture){.folder = "/tmp/cotenant-config-XXXXXX"};
    assert_non_null(mkdtemp(x->folder));
    x->s = (ConfigSources){.sources = x->sources, .flags = x->flags, .environment = x->environment};
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void config_fixture_end(ConfigFixture *x) {
    config_finish(&x->c);
    assert_int_equal(nftw(x->folder, drop, 8, FTW_DEPTH | FTW_PHYS), 0);
}

const char *config_fixture_path(const ConfigFixture *x, const char *path) {
    static char     paths[8][256];
    static unsigned turn;
    char           *out = paths[turn++ % 8];
    (void)snprintf(out, sizeof paths[0], "%s/%s", x->folder, path);
    return out;
}

void config_fixture_write(const ConfigFixture *x, const char *path, const char *text) {
    char whole[256];
    (void)snprintf(whole, sizeof whole, "%s/%s", x->folder, path);
    char *slash = text != NULL ? strrchr(whole, '/') : NULL;
    if (slash != NULL) *slash = '\0';
    assert_int_equal(file_make_dirs(whole), ERR_OK);
    if (slash != NULL) *slash = '/';
    if (text != NULL) assert_int_equal(file_replace(whole, text, strlen(text)), ERR_OK);
}

void config_fixture_source(ConfigFixture *x, const char *source) {
    assert_true(x->s.n_sources < 8);
    x->sources[x->s.n_sources++] = source;
}

void config_fixture_flag(ConfigFixture *x, const char *flag) {
    assert_true(x->s.n_flags < 8);
    x->flags[x->s.n_flags++] = flag;
}

void config_fixture_variable(ConfigFixture *x, const char *assignment) {
    uint32_t n = 0;
    while (x->environment[n] != NULL) n++;
    assert_true(n < 7);
    x->environment[n] = (char *)(uintptr_t)assignment;
}

Err config_fixture_load(ConfigFixture *x, const char *yaml) {
    if (yaml != NULL) {
        config_fixture_write(x, "cotenant.yaml", yaml);
        x->s.file = config_fixture_path(x, "cotenant.yaml");
    }
    config_finish(&x->c);
    return config_load(&x->c, &x->s);
}

const ConfigModel *config_fixture_model(const ConfigFixture *x, const char *name,
                                        const char *version) {
    for (uint32_t i = 0; i < x->c.n_models; i++)
        if (strcmp(x->c.models[i].name, name) == 0 &&
            (version == NULL || strcmp(x->c.models[i].version, version) == 0))
            return &x->c.models[i];
    fail_msg("no model %s", name);
    return NULL;
}

const char *config_fixture_origin(const ConfigFixture *x, const char *model, const char *key) {
    uint32_t       n = 0;
    const Setting *rows = model != NULL ? config_tenant_rows(&n) : config_serve_rows(&n);
    const char   **origins =
        model != NULL ? config_fixture_model(x, model, NULL)->origins : x->c.origins;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(rows[i].key, key) == 0) return origins[i];
    fail_msg("no setting %s", key);
    return NULL;
}
