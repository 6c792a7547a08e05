// Feeds YAML to the reader of configurations; what it accepts is complete and within its ranges.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/settings.h"
#include "serve/config/config.h"
#include "tests/fuzz/fuzz.h"

static void within(const Setting *rows, uint32_t n, const void *values,
                   const char *const *origins) {
    for (uint32_t i = 0; i < n; i++) {
        SettingValue v = {0};
        const void  *at = (const char *)values + rows[i].offset;
        switch (rows[i].kind) {
        case SETTING_int: v.i = *(const int *)at; break;
        case SETTING_int64: v.i = *(const int64_t *)at; break;
        case SETTING_double: v.d = *(const double *)at; break;
        case SETTING_bool: v.i = *(const bool *)at; break;
        case SETTING_string: v.s = *(const char *const *)at; break;
        }
        CHECK(setting_in_range(&rows[i], v));
        CHECK(origins[i] != NULL && origins[i][0] != '\0');
    }
}

static void inspect(const Config *c) {
    uint32_t       n = 0;
    const Setting *rows = config_serve_rows(&n);
    within(rows, n, &c->serve, c->origins);
    rows = config_tenant_rows(&n);
    for (uint32_t i = 0; i < c->n_models; i++) {
        const ConfigModel *m = &c->models[i];
        CHECK(config_valid_name(m->name, strlen(m->name)));
        CHECK(m->path != NULL && m->version != NULL);
        CHECK(i == 0 || strcmp(c->models[i - 1].name, m->name) <= 0);
        within(rows, n, &m->set, m->origins);
    }
    for (uint32_t i = 0; i < c->n_warnings; i++) CHECK(c->warnings[i] != NULL);
    for (uint32_t i = 0; i < c->n_problems; i++) CHECK(c->problems[i] != NULL);
}

// What follows a byte 0 are flags, one a line.
static uint32_t cut_flags(char *at, const char *end, const char **flags) {
    uint32_t n = 0;
    while (at < end && n < 16) {
        size_t len = strcspn(at, "\n");
        bool   last = at[len] == '\0';
        at[len] = '\0';
        flags[n++] = at;
        at += len + 1;
        if (last) break;
    }
    return n;
}

FUZZ_TARGET(data, size) {
    static char   path[64], empty[] = "";
    static int    fd = -1;
    static char  *none[] = {NULL};
    const char   *flags[16];
    char         *text = malloc(size + 2);
    ConfigSources s = {.file = path, .flags = flags, .environment = none};
    Config        c = {0};
    if (fd < 0) fd = memfd_create("config", MFD_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (text == NULL || fd < 0) abort();
    memcpy(text, data, size);
    text[size] = text[size + 1] = '\0';
    const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
    size_t         yaml = zero != NULL ? (size_t)(zero - data) : size;
    s.n_flags = cut_flags(yaml < size ? text + yaml + 1 : empty, text + size, flags);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, yaml, 0) != (ssize_t)yaml) abort();
    if (config_read(&c, &s) == ERR_OK) inspect(&c);
    config_finish(&c);
    if (config_load(&c, &s) == ERR_OK) CHECK(c.n_problems == 0);
    config_finish(&c);
    free(text);
    return 0;
}
