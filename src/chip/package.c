#include "chip/package.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/yamldoc.h"
#include "chip/chip_file.h"

static const Setting rows[] = {
#define X(...) SETTING_ROW(Package, __VA_ARGS__)
    PACKAGE_ROWS(X)
#undef X
};

static size_t line_of(const char *name, const char *text, size_t len, const char *key, Arena *a) {
    YamlDocKey *keys = NULL;
    size_t      n = 0, line = 1, mark = a->used;
    if (yamldoc_keys(name, text, len, a, &keys, &n) != ERR_OK) return line;
    for (size_t i = 0; i < n; i++)
        if (strcmp(keys[i].key, key) == 0) line = keys[i].line;
    arena_rewind(a, mark);
    return line;
}

static Err add_kind(Package *p, const char *what, uint32_t count, const char *beside, Arena *a) {
    const char *name = NULL, *text = NULL;
    size_t      len = 0;
    Unit       *u = arena_try_new(a, Unit, 1);
    if (u == NULL) return err_set(ERR_LIMIT, "no memory for a unit");
    if (p->n_kinds == CHIP_KINDS)
        return err_set(ERR_CONFIG, "more than %d kinds of units", CHIP_KINDS);
    TRY(chip_file_find(false, what, beside, a, &name, &text, &len));
    TRY(unit_parse(name, text, len, a, u));
    for (uint32_t k = 0; k < p->n_kinds; k++)
        if (chip_file_same(p->kinds[k].unit->name, u->name))
            return err_set(ERR_CONFIG, "'%s' stands there twice; add up the counts", u->name);
    p->kinds[p->n_kinds++] = (PackageKind){u, count};
    p->n_units += count;
    return ERR_OK;
}

// One of "4 simba, 4 eyeriss"; *at moves behind it.
static Err read_kind(Package *p, const char **at, const char *beside, Arena *a) {
    char         *end = NULL;
    unsigned long count = isdigit((unsigned char)**at) ? strtoul(*at, &end, 10) : 0;
    if (end == NULL || *end != ' ')
        return err_set(ERR_CONFIG, "'%.40s': write how many of which, as in 4 simba, 4 eyeriss",
                       *at);
    while (*end == ' ') end++;
    size_t n = strcspn(end, ",");
    *at = end + n;
    while (n > 0 && end[n - 1] == ' ') n--;
    if (n == 0) return err_set(ERR_CONFIG, "%lu of what? Name a unit behind the number", count);
    if (count == 0) return err_set(ERR_CONFIG, "0 %.*s; leave it out", (int)n, end);
    if (count > CHIP_UNITS || p->n_units + count > CHIP_UNITS)
        return err_set(ERR_CONFIG, "more than %d units", CHIP_UNITS);
    return add_kind(p, arena_printf(a, "%.*s", (int)n, end), (uint32_t)count, beside, a);
}

static Err read_units(Package *p, const char *beside, Arena *a) {
    const char *at = p->units;
    for (;;) {
        while (*at == ' ') at++;
        TRY(read_kind(p, &at, beside, a));
        if (*at == '\0') return ERR_OK;
        at++;
    }
}

Err package_parse(const char *name, const char *text, size_t len, Arena *a, Package *out) {
    static const char *const optional[] = {"about",      "clock_mhz",       "period_us", "idle_mw",
                                           "macs_cycle", "ops_cycle",       "mac_pj",    "op_pj",
                                           "byte_pj",    "dispatch_cycles", NULL};
    Package                  p = {0};
    Settings                 s = {rows, sizeof rows / sizeof *rows, &p, a};
    settings_default(&s);
    TRY(chip_file_whole(name, text, len, &s, optional));
    TRY(settings_parse(&s, name, text, len));
    Err e = read_units(&p, name, a);
    if (e != ERR_OK)
        return err_add(ERR_CONFIG, "%s:%zu: units", name, line_of(name, text, len, "units", a));
    *out = p;
    return ERR_OK;
}

Err package_load(const char *what, Arena *a, Package *out) {
    const char *name = NULL, *text = NULL;
    size_t      len = 0;
    TRY(chip_file_find(true, what, NULL, a, &name, &text, &len));
    return package_parse(name, text, len, a, out);
}

const char *package_name(uint32_t i) { return chip_file_name(true, i); }
