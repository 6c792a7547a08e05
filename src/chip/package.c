#include "chip/package.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/yamldoc.h"
#include "chip/chip_file.h"

static const Setting unit_rows[] = {
#define X(...) SETTING_ROW(UnitSpec, __VA_ARGS__)
    UNIT_SPEC_ROWS(X)
#undef X
};

static Err read_flow(const char *name, UnitSpec *u) {
    static const char *const names[] = {"row_stationary", "weight_stationary", "output_stationary"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(u->flow, names[i]) == 0) {
            u->dataflow = (Dataflow)i;
            return ERR_OK;
        }
    return err_set(ERR_CONFIG,
                   "%s: flow '%s'; give row_stationary, weight_stationary or output_stationary",
                   name, u->flow);
}

static Err check_values(const char *name, const UnitSpec *u) {
    if (u->dataflow != WEIGHT_STATIONARY && u->vectors * u->lanes != 1)
        return err_set(ERR_CONFIG, "%s: elements of a %s unit have vectors: 1 and lanes: 1", name,
                       u->flow);
    if (strcmp(u->energy, "own") != 0 && strcmp(u->energy, "relative") != 0)
        return err_set(ERR_CONFIG, "%s: energy '%s'; give own or relative", name, u->energy);
    return ERR_OK;
}

// Energy of a word in multiples of a multiply-accumulate, as in the Eyeriss paper (ISCA 2016):
// element buffer 1, neighbour 2, shared buffer 6, memory 200.
static void set_relative_energy(UnitSpec *u) {
    double word = u->word_bits / 8.0;
    u->input_pj = u->weight_pj = u->sum_pj = u->mac_pj;
    u->hop_pj = 2 * u->mac_pj;
    u->buffer_pj = 6 * u->mac_pj / word;
    u->memory_pj = 200 * u->mac_pj / word;
}

Err unit_spec_parse(const char *name, const char *text, size_t len, Arena *a, UnitSpec *out) {
    static const char *const optional[] = {
        "about",          "vectors", "lanes",      "depthwise",         "bank_bytes",
        "buffer_weights", "overlap", "efficiency", "buffer_efficiency", "lean",
        "energy",         "spread",  NULL};
    UnitSpec u = {0};
    Settings s = {unit_rows, sizeof unit_rows / sizeof *unit_rows, &u, a};
    TRY(chip_file_parse(name, text, len, &s, optional));
    TRY(read_flow(name, &u));
    TRY(check_values(name, &u));
    if (strcmp(u.energy, "relative") == 0) set_relative_energy(&u);
    *out = u;
    return ERR_OK;
}

Err unit_spec_load(const char *what, Arena *a, UnitSpec *out) {
    const char *name = NULL, *text = NULL;
    size_t      len = 0;
    TRY(chip_file_find(false, what, NULL, a, &name, &text, &len));
    return unit_spec_parse(name, text, len, a, out);
}

const char *unit_spec_name(uint32_t i) { return chip_file_name(false, i); }

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
    UnitSpec   *u = arena_try_new(a, UnitSpec, 1);
    if (u == NULL) return err_set(ERR_LIMIT, "no memory for a unit");
    if (p->n_kinds == CHIP_KINDS)
        return err_set(ERR_CONFIG, "more than %d kinds of units", CHIP_KINDS);
    TRY(chip_file_find(false, what, beside, a, &name, &text, &len));
    TRY(unit_spec_parse(name, text, len, a, u));
    for (uint32_t k = 0; k < p->n_kinds; k++)
        if (chip_file_same(p->kinds[k].unit->name, u->name))
            return err_set(ERR_CONFIG, "'%s' is named twice; add the counts up", u->name);
    p->kinds[p->n_kinds++] = (PackageKind){u, count};
    p->n_units += count;
    return ERR_OK;
}

// One item of "4 simba, 4 eyeriss"; *at moves behind it.
static Err read_kind(Package *p, const char **at, const char *beside, Arena *a) {
    char         *end = NULL;
    unsigned long count = isdigit((unsigned char)**at) ? strtoul(*at, &end, 10) : 0;
    if (end == NULL || *end != ' ')
        return err_set(ERR_CONFIG, "'%.40s': write numbers and units, as in 4 simba, 4 eyeriss",
                       *at);
    while (*end == ' ') end++;
    size_t n = strcspn(end, ",");
    *at = end + n;
    while (n > 0 && end[n - 1] == ' ') n--;
    if (n == 0)
        return err_set(ERR_CONFIG, "%lu: the name of a unit is missing after the number", count);
    if (count == 0) return err_set(ERR_CONFIG, "0 %.*s: leave it out", (int)n, end);
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
    static const char *const optional[] = {
        "about",  "clock_mhz", "period_us", "idle_mw",         "macs_cycle",     "ops_cycle",
        "mac_pj", "op_pj",     "byte_pj",   "dispatch_cycles", "throttle_floor", NULL};
    Package  p = {0};
    Settings s = {rows, sizeof rows / sizeof *rows, &p, a};
    TRY(chip_file_parse(name, text, len, &s, optional));
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
